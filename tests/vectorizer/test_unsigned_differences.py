"""Unsigned differences of 64 bits, where some lanes are known not to wrap."""

import platform

import numpy as np
import pytest
from vectorizer.vector_kernels import HEAD, engine_is_here

import metalnb as mnb

__all__ = ["engine_is_here"]

X, Y = "ulong(i <= 1)", "ulong(long(s[0]))"
FORMS = {
    f"absdiff({X}, {Y})": 1,
    f"absdiff({Y}, {X})": 1,
    f"{X} > {Y} ? {X} - {Y} : {Y} - {X}": 1,
    f"{X} <= {Y} ? {Y} - {X} : {X} - {Y}": 1,
    f"{X} < {Y} ? {X} - {Y} : {Y} - {X}": -1,
    f"{Y} >= {X} ? {X} - {Y} : {Y} - {X}": -1,
    f"max({X}, {Y}) - min({X}, {Y})": 1,
    f"min({X}, {Y}) - max({X}, {Y})": -1,
    f"absdiff(ulong2({X}, {Y}), ulong2({Y}, 3)).x": 1,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("march", ["x86-64-v2", "x86-64-v3", ""])
def test_a_difference_of_numbers_far_apart_is_bounded(form: str, march: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if march and platform.machine().lower() not in {"x86_64", "amd64"}:
        pytest.skip("instruction sets of x86-64")
    if march:
        monkeypatch.setenv("METALNB_MARCH", march)
    kernel = mnb.compile(f"""{HEAD}kernel void f(device ulong* out, device const int* s,
        uint i [[thread_position_in_threadgroup]]) {{ out[i] = {form}; }}""", engine="cpu").f  # fmt: skip
    for far in (-358306977, -1, -(2**31), 0, 1, 2**31 - 1):
        out, y = np.zeros(32, np.uint64), far % 2**64
        kernel(out, np.array([far], np.int32), grid=32, threadgroup=32)
        expected = [FORMS[form] * abs(int(i <= 1) - y) % 2**64 for i in range(32)]
        assert out.tolist() == expected, far
