"""Sums of a position and its complement are right in every SIMD-group, however the complement is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from spirv_modules import HEAD, SIZES, module, opcodes, validate, without, without_options

import metalnb as mnb
from metalnb.engine.cpu.spirv.opcodes import Spv
from metalnb.engine.cpu.spirv.pass_table import rewritten

FORMS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "difference": ("~x - x", lambda x: ~x - x),
    "choice": ("x < ~x ? ~x - x : x - ~x", lambda x: ~x - x),
    "absdiff": ("absdiff(x, ~x)", lambda x: ~x - x),
    "sum": ("~x + 3 * x", lambda x: ~x + 3 * x),
    "twice": ("~x - 2 * x", lambda x: ~x - 2 * x),
    "less one": ("-x - 1 - x", lambda x: ~x - x),
    "from -1": ("0xffffffffu - x - x", lambda x: ~x - x),
    "exclusive or": ("(x ^ 0xffffffffu) - x", lambda x: ~x - x),
    "long": ("uint(~ulong(x) - ulong(x))", lambda x: ~x - x),
    "narrow": ("uint(ushort(~ushort(x) + 3 * ushort(x)))", lambda x: (~x + 3 * x) & 0xFFFF),
    "vector": ("(~uint2(x, i) + 3 * uint2(x, i)).x", lambda x: ~x + 3 * x),
    "of another position": ("~lid - i + lid - x", lambda x: ~x - x),
    "of a sum": ("~(lid + i) + i - x", lambda x: ~x - x),
}
TEXT = HEAD + """
kernel void k(device uint* out, device const uint* a, uint i [[thread_position_in_grid]],
              uint lid [[thread_position_in_threadgroup]]) {
    uint x = POSITION;
    out[WHERE] = a[x % 40];
    out[WHERE + 1] = FORM;
}
"""


def text(form: str, position: str, where: str = "2 * i") -> str:
    return TEXT.replace("FORM", form).replace("POSITION", position).replace("WHERE", where)


def wrong(kernel: mnb.Kernel, size: int, want: Callable[[np.ndarray], np.ndarray]) -> int:
    """The number of threads of one threadgroup with a wrong answer."""
    out = np.zeros(2 * size, np.uint32)
    kernel(out, np.zeros(64, np.uint32), grid=size, threadgroup=size)
    return int((out[1::2] != want(np.arange(size, dtype=np.uint32))).sum())


@pytest.mark.parametrize("math", ["fast", "precise"])
@pytest.mark.parametrize("where", ["2 * i", "2 * lid"])
@pytest.mark.parametrize("position", ["i", "lid"])
@pytest.mark.parametrize("form", FORMS)
def test_each_simdgroup_begins_where_it_stands(form: str, position: str, where: str, math: str) -> None:
    expression, want = FORMS[form]
    kernel = mnb.compile(text(expression, position, where), engine="cpu", math=math).k
    assert {size: wrong(kernel, size, want) for size in SIZES} == dict.fromkeys(SIZES, 0)


@pytest.mark.parametrize("form", ["difference", "absdiff", "sum", "exclusive or", "of another position"])
def test_without_the_pass_only_the_first_is_right(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """A canary for a compiler without options: with them it does not move what counts evenly out of loops."""
    without(monkeypatch, "opaque_complements")
    without_options(monkeypatch)
    expression, want = FORMS[form]
    kernel = mnb.compile(text(expression, "lid") + "// without", engine="cpu").k
    assert wrong(kernel, 96, want) == 64, "the runtime no longer needs the pass opaque_complements"


@pytest.mark.parametrize("form", FORMS)
def test_the_module_is_valid(form: str, tmp_path: Path) -> None:
    validate(rewritten(module(text(FORMS[form][0], "lid"), "k"), wide=False), tmp_path)


def test_a_vector_has_a_vector_of_ones(tmp_path: Path) -> None:
    source = "kernel void k(device uint4* v, uint i [[thread_position_in_grid]]) { v[i] = ~uint4(i, i + 1, 2 * i, 5); }"
    code = rewritten(module(HEAD + source, "k"), wide=False)
    validate(code, tmp_path)
    assert Spv.CONSTANT_COMPOSITE in opcodes(code)


SAME = HEAD + """
kernel void k(device int* out, device const int* x, uint i [[thread_position_in_grid]],
              uint size [[threads_per_threadgroup]]) {
    out[i] = min(x[0], max(x[size], ~x[0]));
}
"""


def bounded(text: str, math: str = "fast") -> list[int]:
    """How many threads are wrong, for several values that all threads have."""
    kernel, found = mnb.compile(text, engine="cpu", math=math).k, []
    for first, other in ((1_000_000, 1_000), (-1_000_000, 1_000), (5, -70_000), (-5, 1_000), (1_000, 5)):
        out = np.zeros(64, np.int32)
        kernel(out, np.array([first, *[other] * 32], np.int32), grid=64, threadgroup=32)
        found.append(int((out != min(first, max(other, ~first))).sum()))
    return found


@pytest.mark.parametrize("math", ["fast", "precise"])
def test_between_a_value_and_its_complement(math: str) -> None:
    assert bounded(SAME, math) == [0] * 5
