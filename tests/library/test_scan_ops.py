"""Running sums and products where scans are split: long ones, columns, any layout; initial values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import metalnb as mnb


@pytest.mark.parametrize(
    "shape", [(5000,), (2**20 + 17,), (5, 70_001), (70_001, 3), (3000, 65), (3, 1000, 40)], ids=str
)
@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_long_scans_match_numpy(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
    host = rng.integers(-3, 4, shape).astype(dtype)  # sums of small integers are exact in any order
    x = mnb.asarray(host)
    for axis in range(host.ndim):
        expected = host.astype(np.float64).cumsum(axis)
        assert np.array_equal(mnb.cumulative_sum(x, axis=axis).numpy(), expected), axis
        longer = mnb.cumulative_sum(x, axis=axis, include_initial=True).numpy()
        first, others = np.split(longer, [1], axis=axis)
        assert not first.any()
        assert np.array_equal(others, expected), axis


@pytest.mark.parametrize("view", [
    lambda a: a.T, lambda a: a[::-1], lambda a: a[:, 1::2], lambda a: np.broadcast_to(a, (4, *a.shape)),
])  # fmt: skip
def test_running_sums_of_views_match_numpy(view: Any, rng: np.random.Generator) -> None:
    host = rng.integers(-3, 4, (70, 600)).astype(np.float32)
    base = mnb.asarray(host, copy=True)
    x = base.viewed(view(base.host))
    for axis in range(x.ndim):
        assert np.array_equal(mnb.cumulative_sum(x, axis=axis).numpy(), view(host).cumsum(axis)), axis


def test_products_wrap_as_integers_and_pass_zeros(rng: np.random.Generator) -> None:
    host = rng.integers(1, 2**31, 100_003) | 1  # odd: a product never becomes 0
    assert np.array_equal(mnb.cumulative_prod(mnb.asarray(host)).numpy(), host.cumprod())
    one = np.ones(50_000, np.float32)
    one[33_333] = 0
    assert np.array_equal(mnb.cumulative_prod(mnb.asarray(one)).numpy(), one.cumprod())
    assert mnb.cumulative_prod(mnb.asarray([2.0, 3.0]), include_initial=True).tolist() == [1, 2, 6]


def test_running_sums_propagate_nan_and_infinities() -> None:
    host = np.ones(40_000, np.float32)
    host[20_000] = np.inf
    host[30_000] = np.nan
    got = mnb.cumulative_sum(mnb.asarray(host)).numpy()
    assert np.array_equal(got, host.cumsum(), equal_nan=True)


def test_running_sums_are_at_least_as_exact_as_numpys() -> None:
    host = np.random.default_rng(3).random(2**20, np.float32)
    exact = host.cumsum(dtype=np.float64)
    ours = np.abs(mnb.cumulative_sum(mnb.asarray(host)).numpy() - exact).max()
    assert ours <= np.abs(host.cumsum() - exact).max()


def test_running_sums_have_the_standards_dtypes() -> None:
    assert mnb.cumulative_sum(mnb.asarray(np.ones(3, np.uint8))).dtype == np.uint64
    assert mnb.cumulative_sum(mnb.asarray(np.ones(3, np.bool_))).tolist() == [1, 2, 3]
    assert mnb.cumulative_sum(mnb.asarray([1.5, 1.5]), dtype="int32").tolist() == [1, 2]


def test_running_sums_of_an_empty_array_are_empty() -> None:
    none = mnb.asarray(np.zeros((0, 3), np.float32))
    assert mnb.cumulative_sum(none, axis=0).shape == (0, 3)
    assert mnb.cumulative_sum(none, axis=0, include_initial=True).tolist() == [[0, 0, 0]]
    assert mnb.cumulative_prod(none, axis=0, include_initial=True).tolist() == [[1, 1, 1]]


def test_invalid_calls_name_the_op_and_the_values() -> None:
    x = mnb.asarray(np.zeros((2, 3), np.float32))
    with pytest.raises(ValueError, match=r"^cumulative_sum: axis is required for an array of 2 axes"):
        mnb.cumulative_sum(x)
    with pytest.raises(IndexError, match=r"^cumulative_prod: axis 2 is out of bounds"):
        mnb.cumulative_prod(x, axis=2)
    with pytest.raises(ValueError, match=r"^cumulative_sum: x must have at least one axis"):
        mnb.cumulative_sum(mnb.asarray(1.0))
