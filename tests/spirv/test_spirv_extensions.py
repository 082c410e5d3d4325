"""What wraps between two threads wraps where it is made wider, too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from spirv_modules import HEAD, applied, module, without, without_options

import metalnb as mnb

NEAR = 2_147_483_640  # eight before the largest int


def signed(value: int, bits: int = 32) -> int:
    """The integer of so many bits that a value wraps to."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


# A text for a long, and what it is of the position `t` in a threadgroup of 64; n is 7.
Case = tuple[str, Callable[[int], int]]
CASES: dict[str, Case] = {
    "a sum": (f"long(int({NEAR}u + t))", lambda t: signed(NEAR + t)),
    "a difference": (f"long(int({NEAR + 16}u - t)) * 3", lambda t: signed(NEAR + 16 - t) * 3),
    "a multiple": ("long(int(t * 0x10000000u)) * n", lambda t: signed(t << 28) * 7),
    "a shift": ("long(int(t << 31))", lambda t: signed(t << 31)),
    "of the grid": ("long(int(i << 31))", lambda t: signed(t << 31)),
    "a sum of what all have": ("long(int(n * 306783376u + t))", lambda t: signed(306_783_376 * 7 + t)),
    "a vector": (f"long2(int2(int({NEAR}u + t), 3)).x", lambda t: signed(NEAR + t)),
    "short": ("long(short(i * 0x1000u)) * n", lambda t: signed(t << 12, 16) * 7),
    "short to int": ("int(short(t * 0x1000u))", lambda t: signed(t << 12, 16)),
    "char": ("int(char(t * 0x10u)) * long(n)", lambda t: signed(t << 4, 8) * 7),
    "mulhi": (f"mulhi(int({NEAR}u + t), int(n))", lambda t: signed(NEAR + t) * 7 >> 32),
    "mulhi of a shift": ("mulhi(5, int(i << 30))", lambda t: signed(t << 30) * 5 >> 32),
    "madhi": (f"madhi(int({NEAR}u + t), int(n), 5)", lambda t: (signed(NEAR + t) * 7 >> 32) + 5),
    "compared": (f"long(int({NEAR}u + t)) * 2 < long(n)", lambda t: signed(NEAR + t) * 2 < 7),
    "unsigned": (f"long(ulong({NEAR * 2}u + t * 3) * n)", lambda t: (NEAR * 2 + t * 3) % 2**32 * 7),
    "in a loop": (
        "({ long r = 0; for (uint k = 0; k < n; ++k) r += int(k * 0x30000000u + t) * 3l; r; })",
        lambda t: sum(signed(k * 0x30000000 + t) * 3 for k in range(7)),
    ),
    "as a place": ("x[64 + long(int(t - 8))]", lambda t: 56 + t),
    "as a place and more": ("x[64 + long(int(t - 8))] + long(int(t - 8)) * n", lambda t: 56 + t + (t - 8) * 7),
}  # fmt: skip


def _source(text: str, mark: str = "") -> str:
    return f"""{HEAD}// {mark}
kernel void k(device long* y, device const int* x, constant uint& n, uint i [[thread_position_in_grid]],
              uint t [[thread_position_in_threadgroup]]) {{ y[i] = {text}; }}"""


def _wrong(case: Case, *, mark: str = "", math: str = "fast") -> list[tuple[int, int]]:
    """The threads that have another value than theirs, with what they have."""
    text, expected = case
    y = np.zeros(128, np.int64)
    kernel = mnb.compile(_source(text, mark), math=math, engine="cpu").k
    kernel(y, np.arange(128, dtype=np.int32), 7, grid=128, threadgroup=64)
    return [(n, int(v)) for n, v in enumerate(y) if v != expected(n % 64)]


@pytest.mark.parametrize("math", ["fast", "precise"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_wraps_is_made_wider_as_it_is(case: Case, math: str) -> None:
    """Seeds 740584 and 10102162 of the fuzzer."""
    assert _wrong(case, math=math) == []


@pytest.mark.parametrize("name", ["a sum", "a shift", "short to int", "mulhi"])
def test_without_the_pass_threads_count_on(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A canary: it tells when the runtime no longer needs the pass; two of them for a compiler without options."""
    without(monkeypatch, "opaque_extensions")
    if name in {"a shift", "short to int"}:
        without_options(monkeypatch)
    assert _wrong(CASES[name], mark="without"), "the runtime no longer needs the pass opaque_extensions"


ALONE = {
    "an index": "x[int(t) - 1 + 8]",
    "an index in 64 bits": "x[long(int(t * 2u - 1)) + 8]",
    "an index that is computed on": "x[(long(int(t + n)) + 4) * 2 + long(n)]",
    "a position": "long(int(t))",
    "data": "long(x[t] + int(n)) * 3",
    "unsigned": "long(ulong(t + 9u) * n)",
    "half of it": "int(t * 4u + n) >> 3",
}


@pytest.mark.parametrize("text", ALONE.values(), ids=ALONE.keys())
def test_what_cannot_count_on_is_left_alone(text: str) -> None:
    """Places above all: loads would become gathers."""
    code = applied("without_stubs", module(_source(text), "k"))
    assert applied("opaque_extensions", code) == code
