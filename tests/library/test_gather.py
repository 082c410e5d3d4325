"""Gather, scatter, search, unique, and indexing by arrays: compared with NumPy, and with out-of-range indices."""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np
import pytest
from oracle import laid

import metalnb as mnb
from metalnb.arrays.promotion import as_dtype
from metalnb.library_kernels.sorting import unique

pytestmark = pytest.mark.usefixtures("threads")

X = np.random.default_rng(5).standard_normal((5, 6, 7), np.float32)
I34 = np.random.default_rng(6).integers(-5, 5, (3, 4))
J4 = np.random.default_rng(7).integers(-6, 6, 4)
K31 = np.random.default_rng(8).integers(0, 7, (3, 1))
M567, M56, M6, M7 = (np.random.default_rng(9).random(s) < 0.4 for s in ((5, 6, 7), (5, 6), 6, 7))
ALL = slice(None)

KEYS: dict[str, Any] = {
    "i": I34, "i,j": (I34, J4), "i,j,k": (I34, J4, K31), ":,j": (ALL, J4), ":,:,k": (ALL, ALL, K31),
    "apart i,:,k": (I34, ALL, K31), "apart i,1:4,k": (I34, slice(1, 4), K31), "...,k": (..., K31),
    "i,...,k": (I34, ..., K31), "2,j": (2, J4), "j,2": (J4 % 5, 2), ":,2,k": (ALL, 2, K31),
    "2,:,k": (2, ALL, K31[:, 0]), "None,i": (None, I34), "i,None": (I34, None), ":,None,j": (ALL, None, J4),
    "i,None,j": (I34, None, J4), "mask": M567, "mask of 2 axes": M56, ":,mask": (ALL, M6), "mask,3": (M56, 3),
    "mask,::-1": (M56, slice(None, None, -1)), "...,mask": (..., M7), "mask,k": (M56, K31[0]), "list": [1, 2, 3],
    "lists": ([1, 2], [3, 4]), "::-2,list": (slice(None, None, -2), [0, 1]), "none": np.zeros(0, int), "[]": [],
    "0-d": (np.array(2),), "3:0:-1,:,k": (slice(3, 0, -1), ALL, K31), "mask of none": M567 & False,
    "mask of 2, none": M56 & False, "list of bool": [True, False, True, False, True],
}  # fmt: skip


def ours(key: Any) -> Any:
    """Return the same key with metalnb's arrays in place of NumPy's."""
    if isinstance(key, tuple):
        return tuple(map(ours, key))
    return mnb.asarray(key.copy()) if isinstance(key, np.ndarray) else key


# ---- Indexing.
@pytest.mark.parametrize("layout", ["plain", "transposed", "reversed"])
@pytest.mark.parametrize("name", KEYS)
def test_reading_by_arrays_matches_numpy(name: str, layout: str) -> None:
    key = KEYS[name]
    x = laid(X, layout)
    for k in (key, ours(key)):
        got = x[k]
        assert got.dtype == np.float32
        assert np.array_equal(got.read(), X[key])


@pytest.mark.long(every=3)  # Indices alternate
@pytest.mark.parametrize("layout", ["plain", "transposed", "reversed"])
@pytest.mark.parametrize("name", KEYS)
def test_writing_by_arrays_matches_numpy(name: str, layout: str, rng: np.random.Generator) -> None:
    key = KEYS[name]
    shape = X[key].shape
    values = [2.5, rng.standard_normal(shape, np.float32), rng.integers(-9, 9, shape), np.float32(7)]
    if shape:
        values.append(rng.standard_normal(shape[-1:], np.float32))
    for value in values:
        want, got = X.copy(), laid(X, layout)
        want[key] = value
        got[ours(key)] = mnb.asarray(value.copy()) if isinstance(value, np.ndarray) else value
        assert np.array_equal(got.read(), want), (name, np.shape(value))


@pytest.mark.parametrize(
    ("key", "error", "says"),
    [
        (np.array([0, 5]), IndexError, r"index 5 \(at \(1,\) of the indices\) is out of bounds for axis 0 with 5 ele"),
        ((ALL, [[0, -7]]), IndexError, r"index -7 \(at \(0, 1\) of the indices\) .* axis 1 with 6 elements: -6 to 5"),
        ((I34, J4 * 0 + 6), IndexError, r"index 6 .* axis 1"),
        (np.zeros((4, 6), bool), IndexError, r"the mask has shape \(4, 6\); the array has \(5, 6\) there"),
        (np.array([1.0], np.float32), IndexError, r"indices are integers, slices, .* got float32"),
        ((I34, I34, I34, I34), IndexError, r"4 indices for an array of 3 axes"),
        (([1, 2, 3], [1, 2]), IndexError, r"index arrays of shapes \(3,\) and \(2,\) do not broadcast"),
    ],
)
def test_a_wrong_index_is_named_and_nothing_is_written(key: Any, error: type[Exception], says: str) -> None:
    x = mnb.array(X)
    with pytest.raises(error, match=says):
        x[key]
    with pytest.raises(error, match=says):
        x[key] = 1.0
    with pytest.raises(error, match=says):
        x[ours(key)] = mnb.zeros(())
    assert np.array_equal(x.read(), X)


def test_a_value_of_another_shape_is_refused() -> None:
    x = mnb.array(X)
    with pytest.raises(ValueError, match=r"shape \(3,\) does not broadcast to \(3, 4, 6, 7\)"):
        x[I34] = mnb.zeros(3)
    with pytest.raises(ValueError, match=rf"the mask chooses {M567.sum()} elements; got values of shape \(2,\)"):
        x[M567] = np.ones(2, np.float32)
    assert np.array_equal(x.read(), X)


# ---- Gather.
@pytest.mark.parametrize("n", [1, 31, 32, 33, 1023, 1025, 100_000])
def test_take_of_every_length(n: int, rng: np.random.Generator) -> None:
    x = rng.standard_normal(n, np.float32)
    indices = rng.integers(-n, n, n + 1)
    assert np.array_equal(mnb.take(mnb.asarray(x), mnb.asarray(indices)).read(), x[indices])


@pytest.mark.parametrize("axis", [0, 1])
def test_the_first_wild_index_of_many_is_named(axis: int, rng: np.random.Generator) -> None:
    """However many indices are wrong, and wherever, none is read, and the error is the same on every run."""
    x = mnb.zeros((50, 60))
    n = x.shape[axis]
    indices = rng.integers(-n, n, 5000)
    indices[rng.integers(1000, 5000, 40)] = rng.choice([n, -n - 1, 2**40, -(2**62), 2**32], 40)
    indices[999] = 2**32 + 1
    says = rf"take: index 4294967297 \(at \(999,\) of the indices\) is out of bounds for axis {axis} with {n} elements"
    for _ in range(3):
        with pytest.raises(IndexError, match=says):
            mnb.take(x, mnb.asarray(indices), axis=axis)


def test_gathering_from_nothing() -> None:
    x = mnb.zeros((0, 3))
    assert mnb.take(x, [], axis=0).shape == (0, 3)
    assert mnb.take(x, [0, 2], axis=1).shape == (0, 2)
    with pytest.raises(IndexError, match="take: index 0 into axis 0 with no elements"):
        mnb.take(x, [0], axis=0)


def test_indices_are_integers() -> None:
    with pytest.raises(TypeError, match=r"take: indices must be integers; got float32"):
        mnb.take(mnb.zeros(3), mnb.zeros(3))
    for indices in (1.0, [0.0, 1.0], np.ones(2)):
        with pytest.raises(TypeError, match=r"take: indices must be integers; got float64"):
            mnb.take(mnb.zeros(3), indices)
    with pytest.raises(ValueError, match=r"take_along_axis: indices need as many axes"):
        mnb.take_along_axis(mnb.zeros((3, 3)), mnb.asarray([1]))


# ---- Scatter.
@pytest.mark.parametrize(("n", "count"), [(1, 5000), (10, 5000), (300, 5000), (100_000, 5000), (5000, 100_000)])
def test_sums_are_those_of_numpys_loop_to_the_bit(n: int, count: int, rng: np.random.Generator) -> None:
    x, values = rng.standard_normal(n, np.float32), rng.standard_normal(count, np.float32)
    indices = rng.integers(-n, n, count)
    want = x.copy()
    np.add.at(want, indices, values)
    for _ in range(2):
        got = mnb.scatter_add(mnb.asarray(x), mnb.asarray(indices), mnb.asarray(values))
        assert np.array_equal(got.read(), want)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
@pytest.mark.parametrize(("n", "count"), [(1, 5000), (300, 5000), (100_000, 5000), (5000, 100_000)])
def test_last_of_several_values_for_an_index_remains(n: int, count: int, dtype: str, rng: np.random.Generator) -> None:
    x = np.zeros(n, dtype)
    values, indices = rng.integers(0, 200, count).astype(dtype), rng.integers(-n, n, count)
    got = mnb.asarray(x.copy())
    got[mnb.asarray(indices)] = mnb.asarray(values)
    x[indices] = values
    assert np.array_equal(got.read(), x)


def test_rows_are_scattered(rng: np.random.Generator) -> None:
    x, values = rng.standard_normal((70, 45), np.float32), rng.standard_normal((500, 45), np.float32)
    indices = rng.integers(-70, 70, 500)
    want = x.copy()
    np.add.at(want, indices, values)
    assert np.array_equal(mnb.scatter_add(mnb.asarray(x), indices, mnb.asarray(values)).read(), want)
    assert np.array_equal(mnb.scatter_add(mnb.asarray(x), indices, 1.0).read(),
                          _added(x, indices, np.float32(1)))  # fmt: skip


def _added(x: Any, indices: Any, value: Any) -> Any:
    out = x.copy()
    np.add.at(out, indices, value)
    return out


def test_a_wild_index_writes_nothing(rng: np.random.Generator) -> None:
    x = rng.standard_normal(100, np.float32)
    given = mnb.asarray(x.copy())
    for bad in (100, -101, 2**32, 2**63 - 1):
        with pytest.raises(IndexError, match=rf"put: index {bad} \(at \(1,\) of the indices\)"):
            mnb.put(given, [3, bad, 4], 1.0)
        with pytest.raises(IndexError, match=rf"scatter_add: index {bad} "):
            mnb.scatter_add(given, [3, bad, 4], 1.0)
    assert np.array_equal(given.read(), x)


def test_values_that_do_not_fit_are_refused() -> None:
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


def test_elements_that_share_memory_are_not_written() -> None:
    base = mnb.zeros(1)
    wide = mnb.broadcast_to(base, (3,))
    for axis in (None, 0):
        with pytest.raises(ValueError, match=r"put: x is broadcast, shape \(3,\): elements share memory"):
            mnb.put(wide, [1], 5.0, axis=axis)
    assert base.tolist() == [0]
    assert mnb.scatter_add(wide, [1], 5.0).tolist() == [0, 5, 0]


# ---- Search.
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "uint64", "float16", "float32"])
def test_searching_for_any_number_of_pythons(dtype: str) -> None:
    most = np.iinfo(dtype).max if "int" in dtype else 1
    x = np.array([0, 1, 1, most], dtype)
    for value in (-1, 0, 1, 2, 300, 2**63, 2**70, -(2**70), 0.5, 1.5, np.inf, -np.inf, True, [2**70, 1, -1], [True, 2],
                  [[0.5, 1], [2, 3]], range(3), []):  # fmt: skip
        values = np.asarray(value, object)  # NumPy would search among floats here; bisect is exact
        for side, find in (("left", bisect.bisect_left), ("right", bisect.bisect_right)):
            got = mnb.searchsorted(mnb.asarray(x), value, side=side)
            assert got.shape == values.shape
            assert got.read().ravel().tolist() == [find(x.tolist(), v) for v in values.flat], (value, side)


@pytest.mark.parametrize("n", [0, 1, 2, 31, 33, 1024, 70_000])
def test_searching_among_ties_and_nan(n: int, rng: np.random.Generator) -> None:
    x = np.sort(rng.integers(0, max(n // 3, 1), n).astype(np.float32))
    x[n - n // 10 :] = np.nan
    values = np.array([*rng.integers(-2, n + 2, 500), np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    for side in ("left", "right"):
        got = mnb.searchsorted(mnb.asarray(x), mnb.asarray(values), side=side)
        assert np.array_equal(got.read(), np.searchsorted(x, values, side))  # type: ignore[arg-type]


def test_searching_with_a_sorter_and_mixed_dtypes(rng: np.random.Generator) -> None:
    x = rng.integers(0, 1000, 300).astype(np.int16)
    values = rng.integers(-70_000, 70_000, 50).astype(np.int32)
    got = mnb.searchsorted(mnb.asarray(x), mnb.asarray(values), sorter=mnb.argsort(mnb.asarray(x)))
    assert np.array_equal(got.read(), np.searchsorted(np.sort(x), values))
    assert mnb.searchsorted(mnb.asarray(np.sort(x)), 500).read() == np.searchsorted(np.sort(x), 500)
    with pytest.raises(IndexError, match=r"searchsorted: index 300 "):
        mnb.searchsorted(mnb.asarray(x), mnb.asarray(values), sorter=np.arange(1, 301))
    with pytest.raises(ValueError, match="side is 'left' or 'right'; got 'middle'"):
        mnb.searchsorted(mnb.asarray(x), 5, side="middle")


@pytest.mark.long(every=3)  # Lengths alternate
@pytest.mark.parametrize("n", [1, 32, 1023, 1024, 1025, 16_384, 700_001])
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 1])
def test_compaction_of_every_length(n: int, share: float, rng: np.random.Generator) -> None:
    mask = rng.random(n) < share
    x = rng.standard_normal(n, np.float32)
    assert np.array_equal(mnb.nonzero(mnb.asarray(mask))[0].read(), np.flatnonzero(mask))
    assert np.array_equal(mnb.asarray(x)[mnb.asarray(mask)].read(), x[mask])
    values, given = rng.standard_normal(np.count_nonzero(mask), np.float32), mnb.array(x)
    given[mnb.asarray(mask)] = mnb.asarray(values)
    x[mask] = values
    assert np.array_equal(given.read(), x)


def test_nonzero_finds_nan_and_denormals() -> None:
    x = np.array([0.0, -0.0, np.nan, 1e-45, -1e-45, np.inf], np.float32)
    assert mnb.nonzero(mnb.asarray(x))[0].read().tolist() == [2, 3, 4, 5]
    with pytest.raises(ValueError, match="nonzero: needs an array with axes"):
        mnb.nonzero(mnb.asarray(1.0))


# ---- Unique.
@pytest.mark.long(every=3)  # Lengths alternate
@pytest.mark.parametrize("n", [0, 1, 33, 3000, 100_000])
def test_unique_with_all_that_goes_with_it(n: int, rng: np.random.Generator) -> None:
    x = rng.integers(-50, 50, (n, 2)).astype(np.float32)
    x[rng.random((n, 2)) < 0.05] = np.nan
    for equal_nan in (True, False):
        options = {"return_index": True, "return_inverse": True, "return_counts": True, "equal_nan": equal_nan}
        got = mnb.unique(mnb.asarray(x), **options)
        want: Any = np.unique(x, **options)  # type: ignore[call-overload]
        for one, right in zip(got, want, strict=True):
            assert np.array_equal(one.read(), right.reshape(one.shape), equal_nan=one.dtype == np.float32)


def test_each_nan_is_distinct_in_the_standard() -> None:
    found = mnb.unique_all(mnb.asarray(np.array([np.nan, 1, np.nan, 1, -0.0, 0.0], np.float32)))
    assert np.array_equal(found.values.read(), [0, 1, np.nan, np.nan], equal_nan=True)
    assert found.indices.tolist() == [4, 1, 0, 2]
    assert found.inverse_indices.tolist() == [2, 1, 3, 1, 0, 0]
    assert found.counts.tolist() == [2, 2, 1, 1]


@pytest.mark.long(every=5)  # One source for all dtypes
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16", "float32", "uint64"])
def test_distinct_values_among_very_many_equals(dtype: str, rng: np.random.Generator) -> None:
    """More elements than are sorted directly, and not a multiple of the tile size."""
    x = rng.integers(-900, 900, 700_001).astype(as_dtype(dtype))
    if dtype in {"float16", "bfloat16", "float32"}:
        x[rng.integers(0, x.size, 50)] = np.nan
        x[rng.integers(0, x.size, 50)] = -0.0
    wide = x.astype(np.float64) if dtype == "bfloat16" else x
    for equal_nan, got in ((True, mnb.unique(mnb.asarray(x))), (False, mnb.unique_values(mnb.asarray(x)))):
        want = np.unique(wide, equal_nan=equal_nan)
        assert np.array_equal(got.read().astype(want.dtype), want, equal_nan=want.dtype.kind == "f")


def test_thinning_keeps_every_value(rng: np.random.Generator) -> None:
    x = rng.integers(0, 300, 400_000)
    row = mnb.asarray(x)
    left = unique._drop_duplicates(row).read()
    assert set(left.tolist()) == set(range(300))
    assert len(left) < 2000 if row.engine.caps.serial else len(left) == len(x)
    unlike = mnb.asarray(np.arange(400_000))
    assert unique._drop_duplicates(unlike) is unlike


@pytest.mark.usefixtures("shared_memory")
def test_put_writes_to_numpy_memory_or_raises() -> None:
    x = np.zeros(6, np.float32)
    mnb.put(x, mnb.asarray([1, -1]), 5.0)
    assert x.tolist() == [0, 5, 0, 0, 0, 5]
    frozen = x.copy()
    frozen.flags.writeable = False
    for given in (x[::2], frozen, x.astype(np.float64)):
        with pytest.raises((ValueError, TypeError), match=r"asarray: |float64"):
            mnb.put(given, mnb.asarray([0]), 7.0)
    assert x.tolist() == [0, 5, 0, 0, 0, 5]
