"""Arrays are as large as they were declared: a threadgroup's, and a thread's of pointers. See spirv/storage.py."""

from __future__ import annotations

import array
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spirv_modules import applied, instructions, module, opcodes, validate, without

import metalnb as mnb

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
    every = [list(words) for words in instructions(code)]
    first = next(n for n, words in enumerate(every) if words[0] & 0xFFFF == 54)
    fresh = array.array("I", code)[3]
    declared = [[5 << 16 | 54, every[first][1], fresh, 0, every[first][4]], [1 << 16 | 56]]
    header = array.array("I", code[:20])
    header[3] += 1
    longer = header + array.array("I", [w for words in (*every[:first], *declared, *every[first:]) for w in words])
    mended = opcodes(applied("declared_storage", longer.tobytes()))
    assert mended[mended.index(54) + 1] == 56


def test_a_module_is_mended_once_and_others_are_left_alone() -> None:
    code = module(SCAN, "scan")
    mended = applied("declared_storage", code)
    assert mended != code
    assert applied("declared_storage", mended) == mended
    plain: Any = module(SCAN.replace("from = to", "from[l] = to[l]").replace("to = other", "").replace(
        "from[l] = x[i];", "from[l] = to[l] = x[i];"), "scan")  # fmt: skip
    assert applied("declared_storage", plain) == plain


CHILD = """
import numpy as np, sys
from metalnb.engine.cpu.spirv import pass_table
import metalnb as mnb
pass_table.PASSES = tuple(p for p in pass_table.PASSES if p.name != "declared_storage")
x = np.arange(128, dtype=np.float32)
out = mnb.compile(sys.stdin.read(), engine="cpu").turned(x, rounds=2, threadgroup=128)
sys.exit(0 if out.tolist() == ((x + 2) * 1000 + 2 - np.arange(128)).tolist() else 3)
"""


def test_without_the_pass_the_runtime_breaks_down() -> None:
    """A canary, in a process of its own: the device's compiler may crash."""
    done = subprocess.run([sys.executable, "-c", CHILD], input=TURNED, text=True, capture_output=True, check=False)
    assert done.returncode != 0, "clang and the runtime no longer need the pass declared_storage"
    assert "ImportError" not in done.stderr, done.stderr


# A thread's arrays of pointers: clang's backend declares one element of each.
CELL = HEAD + """
kernel void k(device const float* x, device float* y, constant uint& n, constant float* c,
              uint i [[thread_position_in_grid]]) {
    float own[64];
    for (uint r = 0; r < 64; ++r) own[r] = r;
    // BODY
}"""
ROWS = "for (uint r = 0; r < 4; ++r)"
BODIES = {
    "device": f"device const float* a[4]; {ROWS} a[r] = x + r * n; {ROWS} y[4 * i + r] = a[r][i % n];",
    "constant": f"constant float* a[4]; {ROWS} a[r] = c + r * n; {ROWS} y[4 * i + r] = a[r][i % n];",
    # Without a barrier, with which clang unrolls the loops and no array is left: each thread writes all that it reads.
    "threadgroup": "threadgroup float t[64]; for (uint r = 0; r < 64; ++r) t[r] = r; "
    f"threadgroup float* a[4]; {ROWS} a[r] = t + r * n; {ROWS} y[4 * i + r] = a[r][i % n];",
    "thread": f"thread float* a[4]; {ROWS} a[r] = own + r * n; {ROWS} y[4 * i + r] = a[r][i % n];",
    "of an index of its own": f"device const float* a[4]; {ROWS} a[r] = x + r * n; {ROWS} y[4 * i + (r ^ (i & 3))] = "
    "a[(r ^ i) & 3][i % n];",
    "rows of them": f"device const float* a[2][2]; {ROWS} a[r / 2][r % 2] = x + r * n; {ROWS} "
    "y[4 * i + r] = a[r / 2][r % 2][i % n];",
    "in a struct": f"struct {{ device const float* a[4]; uint m; }} s; s.m = i % n; {ROWS} s.a[r] = x + r * n; {ROWS} "
    "y[4 * i + r] = s.a[r][s.m];",
}  # fmt: skip


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("group", [1, 32, 64])
@pytest.mark.parametrize("what", BODIES)
def test_each_pointer_is_one_of_its_own(what: str, group: int, checked: bool) -> None:
    kernel = mnb.compile(CELL.replace("// BODY", BODIES[what]), engine="cpu", checked=checked).k
    x = np.arange(64, dtype=np.float32)
    y = np.zeros((64, 4), np.float32)
    kernel(x, y, 16, x, grid=64, threadgroup=group)
    np.testing.assert_array_equal(y, x.reshape(4, 16).T[np.arange(64) % 16])


def test_without_the_pass_all_are_the_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cell = CELL.replace("// BODY", BODIES["device"])
    validate(applied("pointer_arrays", module(cell, "k")), tmp_path)
    without(monkeypatch, "pointer_arrays")
    x, y = np.arange(64, dtype=np.float32), np.zeros((64, 4), np.float32)
    mnb.compile(f"{cell}// without", engine="cpu", checked=False).k(x, y, 16, x, grid=64)
    right = x.reshape(4, 16).T[np.arange(64) % 16]
    assert not np.array_equal(y, right), "clang no longer needs the pass pointer_arrays"
