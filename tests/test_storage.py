"""Threadgroup arrays that a kernel only assigns to pointers keep their size: see engine/storage.py."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb.engine import clang
from metalnb.engine.cpu.spirv.module import instructions, words_of
from metalnb.engine.cpu.spirv.storage import declared_storage
from metalnb.msl.lower import opencl

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
SCAN = HEAD + """
kernel void scan(device const float* x, device float* out, uint i [[thread_position_in_grid]],
                 uint l [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
    threadgroup float one[256], two[256];
    threadgroup float *from = one, *to = two;
    from[l] = x[i];
    for (uint step = 1; step < n; step *= 2) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        to[l] = l >= step ? from[l] + from[l - step] : from[l];
        threadgroup float* other = from;
        from = to;
        to = other;
    }
    out[i] = from[l];
}
"""
TURNED = HEAD + """
struct Pair { float a; int b; };
kernel void turned(device const float* x, device float* out, constant uint& rounds,
                   uint l [[thread_position_in_threadgroup]]) {
    threadgroup Pair first[128], second[128], third[128];
    threadgroup int kept[128];
    threadgroup Pair *p = first, *q = second, *r = third;
    kept[l] = -int(l);
    p[l] = Pair{x[l], 0};
    for (uint k = 0; k < rounds; ++k) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        q[l] = Pair{p[127 - l].a + 1, p[127 - l].b + 1};
        r[l] = Pair{-1, -1};
        threadgroup Pair* last = r;
        r = p;
        p = q;
        q = last;
    }
    out[l] = p[l].a * 1000 + p[l].b + kept[l];
}
"""


@pytest.mark.parametrize("n", [1, 31, 32, 100, 256])
def test_two_arrays_are_swapped_in_a_loop(n: int) -> None:
    x = np.arange(1, n + 1, dtype=np.float32)
    out = mnb.compile(SCAN).scan(x, threadgroup=n)
    assert out.tolist() == np.cumsum(x).tolist()


@pytest.mark.parametrize("rounds", [0, 1, 2, 7])
def test_three_arrays_take_turns_and_spoil_no_other(rounds: int) -> None:
    x = np.arange(128, dtype=np.float32)
    out = mnb.compile(TURNED).turned(x, rounds=rounds, threadgroup=128)
    turned = x[::-1] if rounds % 2 else x
    assert out.tolist() == ((turned + rounds) * 1000 + rounds - np.arange(128)).tolist()


def test_a_function_that_is_only_declared_gets_no_instruction() -> None:
    code = module(SCAN, "scan")
    words = words_of(code)
    assert words is not None
    first = next(i for i in instructions(words) if i.opcode == 54)
    declared = array.array("I", [5 << 16 | 54, words[first.at + 1], words[3], 0, words[first.at + 4], 1 << 16 | 56])
    longer = words[: first.at] + declared + words[first.at :]
    longer[3] += 1
    mended = words_of(declared_storage(longer.tobytes()))
    assert mended is not None
    every = list(instructions(mended))
    place = next(k for k, i in enumerate(every) if i.opcode == 54)
    assert every[place + 1].opcode == 56


def module(source: str, name: str) -> bytes:
    unit = mnb.compile(source, engine="cpu")[name].unit
    return clang.spirv(unit, opencl(unit, flat=False, even=True, wide=False))


def test_a_module_is_mended_once_and_others_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    code = module(SCAN, "scan")
    mended = declared_storage(code)
    assert mended != code
    assert declared_storage(mended) == mended
    plain: Any = module(SCAN.replace("from = to", "from[l] = to[l]").replace("to = other", "").replace(
        "from[l] = x[i];", "from[l] = to[l] = x[i];"), "scan")  # fmt: skip
    assert declared_storage(plain) == plain
    for nothing in (b"", b"abc", b"\0" * 64):
        assert declared_storage(nothing) == nothing
