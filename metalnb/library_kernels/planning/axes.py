"""Check the axes and shapes that callers pass. Errors name the op and the values."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...call.grids import listed

__all__ = ["axes_of", "axis_of", "shape_of"]

Shape = tuple[int, ...]


def axis_of(caller: str, axis: Any, ndim: int) -> int:
    """Return one axis; a negative one counts from the end.

    Raises
    ------
    numpy.exceptions.AxisError
        If the array lacks the axis: both an IndexError and a ValueError.
    TypeError
        If the axis is not an integer.
    """
    try:
        number = operator.index(axis)
    except TypeError:
        raise TypeError(f"{caller}: axis must be an integer; got {axis!r}.") from None
    if not -ndim <= number < ndim:
        bounds = f"axes {-ndim} to {ndim - 1}" if ndim else "no axes"
        raise np.exceptions.AxisError(f"{caller}: axis {number} is out of bounds: the array has {bounds}.")
    return number % ndim


def axes_of(caller: str, axis: Any, ndim: int) -> Shape:
    """Return one axis or several distinct axes; None means all axes.

    Raises
    ------
    numpy.exceptions.AxisError, TypeError
        As for `axis_of`.
    ValueError
        If an axis is given twice.
    """
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int:  # the usual case: testing whether it is iterable takes longer than everything else
        return (axis_of(caller, axis, ndim),)
    axes = tuple(axis_of(caller, a, ndim) for a in listed(axis))
    if len(set(axes)) != len(axes):
        raise ValueError(f"{caller}: an axis appears twice: {axis}.")
    return axes


def shape_of(caller: str, shape: Any, *, open_axis: bool = False) -> Shape:
    """Return a shape: one or several nonnegative integers, and one -1 if a length may be left open.

    Raises
    ------
    TypeError
        If the shape contains anything but integers.
    ValueError
        If a length is negative.
    """
    try:
        sizes = tuple(operator.index(n) for n in listed(shape))
    except TypeError:
        raise TypeError(f"{caller}: a shape must consist of integers; got {shape!r}.") from None
    if any(n < (-1 if open_axis else 0) for n in sizes) or sizes.count(-1) > 1:
        open_text = ", except for at most one -1" if open_axis else ""
        raise ValueError(f"{caller}: the lengths of a shape must be 0 or more{open_text}; got {shape!r}.")
    return sizes
