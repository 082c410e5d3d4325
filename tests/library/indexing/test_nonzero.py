"""Elements that are not zero, and those that a mask selects."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb

pytestmark = pytest.mark.usefixtures("threads")


# 3 divides neither count, so each length and each share remains.
@pytest.mark.long(every=3)
@pytest.mark.parametrize("n", [1, 32, 1023, 1024, 1025, 16_384, 700_001])
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 1])
def test_nonzero_and_masks_of_every_length_match_numpy(n: int, share: float, rng: np.random.Generator) -> None:
    mask = rng.random(n) < share
    x = rng.standard_normal(n, np.float32)
    assert np.array_equal(mnb.nonzero(mnb.asarray(mask))[0].read(), np.flatnonzero(mask))
    assert np.array_equal(mnb.asarray(x)[mnb.asarray(mask)].read(), x[mask])
    values, target = rng.standard_normal(np.count_nonzero(mask), np.float32), mnb.array(x)
    target[mnb.asarray(mask)] = mnb.asarray(values)
    x[mask] = values
    assert np.array_equal(target.read(), x)


def test_nonzero_finds_nan_and_denormals() -> None:
    x = np.array([0.0, -0.0, np.nan, 1e-45, -1e-45, np.inf], np.float32)
    assert mnb.nonzero(mnb.asarray(x))[0].read().tolist() == [2, 3, 4, 5]
    with pytest.raises(ValueError, match="nonzero: x must have at least one axis"):
        mnb.nonzero(mnb.asarray(1.0))
