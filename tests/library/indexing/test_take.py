"""Gathering elements by their indices."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb

pytestmark = pytest.mark.usefixtures("threads")


@pytest.mark.parametrize("n", [1, 31, 32, 33, 1023, 1025, 100_000])
def test_take_of_lengths_near_a_simdgroups_and_a_threadgroups_matches_numpy(n: int, rng: np.random.Generator) -> None:
    x = rng.standard_normal(n, np.float32)
    indices = rng.integers(-n, n, n + 1)
    assert np.array_equal(mnb.take(mnb.asarray(x), mnb.asarray(indices)).read(), x[indices])


@pytest.mark.parametrize("axis", [0, 1])
def test_first_out_of_range_index_of_many_is_named(axis: int, rng: np.random.Generator) -> None:
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


def test_take_from_an_empty_array() -> None:
    x = mnb.zeros((0, 3))
    assert mnb.take(x, [], axis=0).shape == (0, 3)
    assert mnb.take(x, [0, 2], axis=1).shape == (0, 2)
    with pytest.raises(IndexError, match=r"index 0 \(at \(0,\) of the indices\) is out of bounds for axis 0 with no"):
        mnb.take(x, [0], axis=0)


def test_take_refuses_indices_that_are_not_integers() -> None:
    with pytest.raises(TypeError, match=r"take: indices must be integers; got float32"):
        mnb.take(mnb.zeros(3), mnb.zeros(3))
    for indices in (1.0, [0.0, 1.0], np.ones(2)):
        with pytest.raises(TypeError, match=r"take: indices must be integers; got float64"):
            mnb.take(mnb.zeros(3), indices)
    with pytest.raises(ValueError, match=r"take_along_axis: indices must have as many axes"):
        mnb.take_along_axis(mnb.zeros((3, 3)), mnb.asarray([1]))
