"""A result's distance from the exact value, in units in the last place (MSL 8.4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["distance"]


def distance(got: NDArray, exact: NDArray, *, signed_zero: bool = False) -> NDArray[np.float64]:
    """Return each result's error in ulp of its own type.

    Parameters
    ----------
    got : array of float16 or float32
    exact : array of float64
        The exact value, rounded to float64.
    signed_zero : bool
        True if -0 in place of +0 is an error.

    Returns
    -------
    array of float64
        0 where both are NaN, or the same infinity; infinite where one is NaN, or an infinity is not what `exact`
        rounds to. Where `exact` overflows, a finite result is measured from the number that would follow the largest
        one.
    """
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        # The exponent of the gap: that of the exact value's binade, but at least the smallest denormal's.
        _, exponent = np.frexp(np.clip(np.abs(exact), float(info.smallest_subnormal), float(info.max)))
        gap = np.ldexp(1.0, np.maximum(exponent - 1 - info.nmant, int(info.minexp) - info.nmant))
        limit = np.ldexp(1.0, int(info.maxexp))
        error = np.abs(got.astype(np.float64) - np.clip(exact, -limit, limit)) / gap
    error[np.isinf(got)] = np.inf
    error[np.isnan(got) | np.isnan(exact)] = np.inf
    error[(got == rounded) & np.isinf(got)] = 0
    error[np.isnan(got) & np.isnan(exact)] = 0
    if signed_zero:
        error[(got == 0) & (exact == 0) & (np.signbit(got) != np.signbit(exact))] = np.inf
    return error
