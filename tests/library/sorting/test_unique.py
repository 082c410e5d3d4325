"""Distinct values, with indices and counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb.arrays.promotion import as_dtype
from metalnb.library_kernels.sorting import unique

pytestmark = pytest.mark.usefixtures("threads")


# Each length but 33 remains, for cores or for lanes.
@pytest.mark.long(every=3)
@pytest.mark.parametrize("n", [0, 1, 33, 3000, 100_000])
def test_unique_returns_index_inverse_and_counts(n: int, rng: np.random.Generator) -> None:
    x = rng.integers(-50, 50, (n, 2)).astype(np.float32)
    x[rng.random((n, 2)) < 0.05] = np.nan
    for equal_nan in (True, False):
        options = {"return_index": True, "return_inverse": True, "return_counts": True, "equal_nan": equal_nan}
        got = mnb.unique(mnb.asarray(x), **options)
        expected: Any = np.unique(x, **options)  # type: ignore[call-overload]
        for ours, numpys in zip(got, expected, strict=True):
            assert np.array_equal(ours.read(), numpys.reshape(ours.shape), equal_nan=ours.dtype == np.float32)


def test_unique_all_keeps_each_nan() -> None:
    distinct = mnb.unique_all(mnb.asarray(np.array([np.nan, 1, np.nan, 1, -0.0, 0.0], np.float32)))
    assert np.array_equal(distinct.values.read(), [0, 1, np.nan, np.nan], equal_nan=True)
    assert distinct.indices.tolist() == [4, 1, 0, 2]
    assert distinct.inverse_indices.tolist() == [2, 1, 3, 1, 0, 0]
    assert distinct.counts.tolist() == [2, 2, 1, 1]


# The kernels have one source for all dtypes; bool, uint64 and float32 remain.
@pytest.mark.long(every=5)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16", "float32", "uint64"])
def test_unique_of_many_equal_values(dtype: str, rng: np.random.Generator) -> None:
    """More elements than are sorted directly, and not a multiple of the tile size."""
    x = rng.integers(-900, 900, 700_001).astype(as_dtype(dtype))
    if dtype in {"float16", "bfloat16", "float32"}:
        x[rng.integers(0, x.size, 50)] = np.nan
        x[rng.integers(0, x.size, 50)] = -0.0
    wide = x.astype(np.float64) if dtype == "bfloat16" else x
    for equal_nan, got in ((True, mnb.unique(mnb.asarray(x))), (False, mnb.unique_values(mnb.asarray(x)))):
        expected = np.unique(wide, equal_nan=equal_nan)
        assert np.array_equal(got.read().astype(expected.dtype), expected, equal_nan=expected.dtype.kind == "f")


def test_dropping_duplicates_before_the_sort_keeps_every_value(rng: np.random.Generator) -> None:
    x = rng.integers(0, 300, 400_000)
    row = mnb.asarray(x)
    kept = unique._drop_duplicates(row).read()
    assert set(kept.tolist()) == set(range(300))
    assert len(kept) < 2000 if row.engine.caps.serial else len(kept) == len(x)
    without_duplicates = mnb.asarray(np.arange(400_000))
    assert unique._drop_duplicates(without_duplicates) is without_duplicates
