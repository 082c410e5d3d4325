"""Reading and writing by arrays of indices, masks and lists, compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracle import laid

import metalnb as mnb

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


@pytest.mark.parametrize("layout", ["plain", "transposed", "reversed"])
@pytest.mark.parametrize("name", KEYS)
def test_reading_by_arrays_matches_numpy(name: str, layout: str) -> None:
    key = KEYS[name]
    x = laid(X, layout)
    for k in (key, ours(key)):
        got = x[k]
        assert got.dtype == np.float32
        assert np.array_equal(got.read(), X[key])


# 4 does not divide the number of layouts, so each remains; the test above reads by all keys in all layouts.
@pytest.mark.long(every=4)
@pytest.mark.parametrize("layout", ["plain", "transposed", "reversed"])
@pytest.mark.parametrize("name", KEYS)
def test_writing_by_arrays_matches_numpy(name: str, layout: str, rng: np.random.Generator) -> None:
    key = KEYS[name]
    shape = X[key].shape
    values = [2.5, rng.standard_normal(shape, np.float32), rng.integers(-9, 9, shape), np.float32(7)]
    if shape:
        values.append(rng.standard_normal(shape[-1:], np.float32))
    for value in values:
        expected, got = X.copy(), laid(X, layout)
        expected[key] = value
        got[ours(key)] = mnb.asarray(value.copy()) if isinstance(value, np.ndarray) else value
        assert np.array_equal(got.read(), expected), (name, np.shape(value))


@pytest.mark.parametrize(
    ("key", "error", "says"),
    [
        (np.array([0, 5]), IndexError, r"index 5 \(at \(1,\) of the indices\) is out of bounds for axis 0 with 5 ele"),
        ((ALL, [[0, -7]]), IndexError, r"index -7 \(at \(0, 1\) of the indices\) .* axis 1 with 6 elements: -6 to 5"),
        ((I34, J4 * 0 + 6), IndexError, r"index 6 .* axis 1"),
        (np.zeros((4, 6), bool), IndexError, r"the array's first axes, \(5, 6\); got \(4, 6\)"),
        (np.array([1.0], np.float32), IndexError, r"indices must be integers, slices, .* got float32"),
        ((I34, I34, I34, I34), IndexError, r"4 indices for an array of 3 axes"),
        (([1, 2, 3], [1, 2]), IndexError, r"index arrays of shapes \(3,\) and \(2,\) do not broadcast"),
    ],
)
def test_wrong_index_is_named_and_nothing_is_written(key: Any, error: type[Exception], says: str) -> None:
    x = mnb.array(X)
    with pytest.raises(error, match=says):
        x[key]
    with pytest.raises(error, match=says):
        x[key] = 1.0
    with pytest.raises(error, match=says):
        x[ours(key)] = mnb.zeros(())
    assert np.array_equal(x.read(), X)


def test_value_that_does_not_broadcast_is_refused() -> None:
    x = mnb.array(X)
    with pytest.raises(ValueError, match=r"shape \(3,\) does not broadcast to \(3, 4, 6, 7\)"):
        x[I34] = mnb.zeros(3)
    with pytest.raises(ValueError, match=rf"the mask selects {M567.sum()} elements; got values of shape \(2,\)"):
        x[M567] = np.ones(2, np.float32)
    assert np.array_equal(x.read(), X)

