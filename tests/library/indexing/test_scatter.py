"""Writing and adding elements by their indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import metalnb as mnb

pytestmark = pytest.mark.usefixtures("threads")


@pytest.mark.parametrize(("n", "count"), [(1, 5000), (10, 5000), (300, 5000), (100_000, 5000), (5000, 100_000)])
def test_scatter_add_sums_in_the_order_of_numpys_loop(n: int, count: int, rng: np.random.Generator) -> None:
    x, values = rng.standard_normal(n, np.float32), rng.standard_normal(count, np.float32)
    indices = rng.integers(-n, n, count)
    expected = x.copy()
    np.add.at(expected, indices, values)
    for _ in range(2):
        got = mnb.scatter_add(mnb.asarray(x), mnb.asarray(indices), mnb.asarray(values))
        assert np.array_equal(got.read(), expected)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
@pytest.mark.parametrize(("n", "count"), [(1, 5000), (300, 5000), (100_000, 5000), (5000, 100_000)])
def test_last_of_several_values_for_an_index_remains(n: int, count: int, dtype: str, rng: np.random.Generator) -> None:
    x = np.zeros(n, dtype)
    values, indices = rng.integers(0, 200, count).astype(dtype), rng.integers(-n, n, count)
    got = mnb.asarray(x.copy())
    got[mnb.asarray(indices)] = mnb.asarray(values)
    x[indices] = values
    assert np.array_equal(got.read(), x)


def test_scatter_add_of_rows(rng: np.random.Generator) -> None:
    x, values = rng.standard_normal((70, 45), np.float32), rng.standard_normal((500, 45), np.float32)
    indices = rng.integers(-70, 70, 500)
    expected = x.copy()
    np.add.at(expected, indices, values)
    assert np.array_equal(mnb.scatter_add(mnb.asarray(x), indices, mnb.asarray(values)).read(), expected)
    assert np.array_equal(mnb.scatter_add(mnb.asarray(x), indices, 1.0).read(),
                          _added(x, indices, np.float32(1)))  # fmt: skip


def _added(x: Any, indices: Any, value: Any) -> Any:
    out = x.copy()
    np.add.at(out, indices, value)
    return out


def test_out_of_range_index_writes_nothing(rng: np.random.Generator) -> None:
    x = rng.standard_normal(100, np.float32)
    target = mnb.asarray(x.copy())
    for bad in (100, -101, 2**32, 2**63 - 1):
        with pytest.raises(IndexError, match=rf"put: index {bad} \(at \(1,\) of the indices\)"):
            mnb.put(target, [3, bad, 4], 1.0)
        with pytest.raises(IndexError, match=rf"scatter_add: index {bad} "):
            mnb.scatter_add(target, [3, bad, 4], 1.0)
    assert np.array_equal(target.read(), x)


def test_values_that_the_dtype_cannot_hold_are_refused() -> None:
    x, at = mnb.zeros(3, dtype="uint8"), mnb.asarray([1])
    for values in (300, [300], -1):
        with pytest.raises(OverflowError, match="out of bounds for uint8"):
            mnb.scatter_add(x, at, values)
        for axis in (None, 0):
            with pytest.raises(OverflowError, match="out of bounds for uint8"):
                mnb.put(x, at, values, axis=axis)
    for floats in (2.7, [2.7], mnb.asarray([2.7]), np.float32(2.7)):
        with pytest.raises(TypeError, match="scatter_add: adding floats to an array of uint8"):
            mnb.scatter_add(x, at, floats)
    assert mnb.scatter_add(x, at, 200).tolist() == [0, 200, 0]
    assert mnb.scatter_add(mnb.zeros(3), at, 2).tolist() == [0, 2, 0]


def test_put_refuses_a_broadcast_array() -> None:
    base = mnb.zeros(1)
    wide = mnb.broadcast_to(base, (3,))
    for axis in (None, 0):
        with pytest.raises(ValueError, match=r"put: x is broadcast, shape \(3,\): elements share memory"):
            mnb.put(wide, [1], 5.0, axis=axis)
    assert base.tolist() == [0]
    assert mnb.scatter_add(wide, [1], 5.0).tolist() == [0, 5, 0]


@pytest.mark.usefixtures("shared_memory")
def test_put_writes_to_numpy_memory_or_raises() -> None:
    x = np.zeros(6, np.float32)
    mnb.put(x, mnb.asarray([1, -1]), 5.0)
    assert x.tolist() == [0, 5, 0, 0, 0, 5]
    frozen = x.copy()
    frozen.flags.writeable = False
    for target in (x[::2], frozen, x.astype(np.float64)):
        with pytest.raises((ValueError, TypeError), match=r"asarray: |float64"):
            mnb.put(target, mnb.asarray([0]), 7.0)
    assert x.tolist() == [0, 5, 0, 0, 0, 5]
