"""A thread's arrays of pointers have all their elements: clang's backend declares one element of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from spirv_modules import applied, module, validate, without

import metalnb as mnb

CELL = """#include <metal_stdlib>
using namespace metal;
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
