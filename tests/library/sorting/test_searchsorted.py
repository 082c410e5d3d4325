"""Searching sorted arrays, compared with NumPy and with exact comparisons of Python numbers."""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np
import pytest

import metalnb as mnb

pytestmark = pytest.mark.usefixtures("threads")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "uint64", "float16", "float32"])
def test_searchsorted_takes_any_python_number(dtype: str) -> None:
    most = np.iinfo(dtype).max if "int" in dtype else 1
    x = np.array([0, 1, 1, most], dtype)
    for value in (-1, 0, 1, 2, 300, 2**63, 2**70, -(2**70), 0.5, 1.5, np.inf, -np.inf, True, [2**70, 1, -1], [True, 2],
                  [[0.5, 1], [2, 3]], range(3), []):  # fmt: skip
        values = np.asarray(value, object)  # NumPy would search among floats here; bisect is exact
        for side, find in (("left", bisect.bisect_left), ("right", bisect.bisect_right)):
            got = mnb.searchsorted(mnb.asarray(x), value, side=side)
            assert got.shape == values.shape
            assert got.read().ravel().tolist() == [find(x.tolist(), v) for v in values.flat], (value, side)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_numbers_beyond_a_dtype_lie_between_its_finite_numbers_and_the_infinities(dtype: str) -> None:
    most = float(mnb.finfo(dtype).max)
    x = [-np.inf, -most, 1, most, np.inf]
    values = [most, 65510, 65530.0, 100_000, 3.4e38, 1e39, 1e300, 10**400, np.inf]
    backward = [4, 2, 0, 3, 1]
    for value in (*values, *(-v for v in values), values[-3:-2] * 2, [10**30, -(10**400)], [[1e39, -1e39, 2]]):
        flat = np.asarray(value, object).ravel()
        for side, find in (("left", bisect.bisect_left), ("right", bisect.bisect_right)):
            expected = [find(x, v) for v in flat]
            got = mnb.searchsorted(mnb.asarray(x, dtype=dtype), value, side=side)
            assert got.ravel().tolist() == expected, (value, side)
            unsorted = mnb.asarray([x[backward.index(i)] for i in range(5)], dtype=dtype)
            got = mnb.searchsorted(unsorted, value, side=side, sorter=backward)
            assert got.ravel().tolist() == expected, (value, side)


@pytest.mark.parametrize("side", ["left", "right"])
def test_large_integers_are_finite_among_float16(side: Any) -> None:
    halves, integers = np.array([-np.inf, 1, np.inf], np.float16), np.array([-100_000, 0, 100_000, 2**31 - 1], np.int32)
    for x, values in ((halves, integers), (integers, halves)):
        got = mnb.searchsorted(mnb.asarray(x), mnb.asarray(values), side=side)
        assert got.tolist() == np.searchsorted(x, values, side).tolist()


@pytest.mark.parametrize("n", [0, 1, 2, 31, 33, 1024, 70_000])
def test_searchsorted_among_ties_and_nan(n: int, rng: np.random.Generator) -> None:
    x = np.sort(rng.integers(0, max(n // 3, 1), n).astype(np.float32))
    x[n - n // 10 :] = np.nan
    values = np.array([*rng.integers(-2, n + 2, 500), np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    for side in ("left", "right"):
        got = mnb.searchsorted(mnb.asarray(x), mnb.asarray(values), side=side)
        assert np.array_equal(got.read(), np.searchsorted(x, values, side))  # type: ignore[arg-type]


def test_searchsorted_with_a_sorter_and_mixed_dtypes_matches_numpy(rng: np.random.Generator) -> None:
    x = rng.integers(0, 1000, 300).astype(np.int16)
    values = rng.integers(-70_000, 70_000, 50).astype(np.int32)
    got = mnb.searchsorted(mnb.asarray(x), mnb.asarray(values), sorter=mnb.argsort(mnb.asarray(x)))
    assert np.array_equal(got.read(), np.searchsorted(np.sort(x), values))
    assert mnb.searchsorted(mnb.asarray(np.sort(x)), 500).read() == np.searchsorted(np.sort(x), 500)
    with pytest.raises(IndexError, match=r"searchsorted: index 300 "):
        mnb.searchsorted(mnb.asarray(x), mnb.asarray(values), sorter=np.arange(1, 301))
    for sorter in ([1, 2], [0, *range(300)], np.arange(300)[None], 0, []):
        for value in (values[:2], 70_000):
            with pytest.raises(ValueError, match=r"sorter must have the sorted array's shape \(300,\); got shape \("):
                mnb.searchsorted(mnb.asarray(x), value, sorter=sorter)
    with pytest.raises(ValueError, match=r"must be one-dimensional; got shape \(1, 300\)"):
        mnb.searchsorted(mnb.asarray(x[None]), 5)
    with pytest.raises(ValueError, match="side must be 'left' or 'right'; got 'middle'"):
        mnb.searchsorted(mnb.asarray(x), 5, side="middle")
