"""Draw lines into an array with a round brush."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metalnb.errors import ArgumentError

__all__ = ["Brush"]

Point = tuple[float, float]

_ROUNDED = 1e-9


class Brush:
    """A round brush that draws into one of a simulation's arrays.

    Parameters
    ----------
    caller : str
        The function and the kernel, for messages.
    name : str
        The name of the array.
    array : numpy.ndarray
        The array at the start, of shape (H, W) or (H, W, C).
    value : float or sequence of C floats, optional
        The value to draw; by default the greatest finite number of the array, or one more if all are equal.

    Attributes
    ----------
    value, other : number or sequence
        The value to draw, and the one that erases it: the smallest number of the array, or its first pixel.
    radius : float
        The radius, in elements.
    low, high : float
        The range of the numbers at the start, extended to `value`.

    Raises
    ------
    ArgumentError
        If the value does not fit the array.
    """

    def __init__(self, caller: str, name: str, array: np.ndarray[Any, Any], value: Any = None) -> None:
        self.name = name
        _check_value(caller, array.shape[2:], value)
        numbers = array[np.isfinite(array)]
        low, high = (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 1.0)
        self.low, self.high = low, high if high > low else low + 1
        self.value = self.high if value is None else value
        self.erasing_value = low if array.ndim == 2 else array[0, 0].tolist()
        self.is_scalar = array.ndim == 2 and np.ndim(self.value) == 0
        if self.is_scalar and np.isfinite(self.value):
            self.low, self.high = min(self.low, self.value), max(self.high, self.value)
        self.radius = max(1.0, round(min(array.shape[:2]) / 40))
        self._last: Point | None = None

    def draw(self, array: np.ndarray[Any, Any], points: Sequence[Point | None], *, rub: bool = False) -> None:
        """Draw along points (x, y), parts of the array's width and height; None lifts the brush."""
        value = np.asarray(self.erasing_value if rub else self.value)
        if array.dtype.kind in "iub":
            value = np.clip(np.rint(value), *_ends(array.dtype))
        size = np.array(array.shape[1::-1])
        for point in points:
            if point is None:
                self._last = None
                continue
            end = np.asarray(point, float) * size - 0.5
            start = end if self._last is None else np.asarray(self._last, float) * size - 0.5
            _line(array, start, end, self.radius, value.astype(array.dtype))
            self._last = point


def _check_value(caller: str, pixel: tuple[int, ...], value: Any) -> None:
    """Reject a value to draw unless it is a number, or one number for each component of a pixel."""
    try:
        shape = np.shape(np.asarray(0.0 if value is None else value, np.float64))
    except (TypeError, ValueError):
        shape = (-1,)
    if shape not in {(), pixel}:
        several = f", or {pixel[0]} of them" if pixel else ""
        raise ArgumentError(f"{caller}: brush is a number{several}; got {value!r}.")


def _ends(dtype: np.dtype[Any]) -> tuple[int, int]:
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def _line(array: Any, start: Any, end: Any, radius: float, value: Any) -> None:
    """Set the elements within a radius of a line."""
    first = np.floor(np.minimum(start, end) - radius).astype(int).clip(0)
    last = np.ceil(np.maximum(start, end) + radius).astype(int).clip(-1) + 1
    rows, columns = slice(first[1], last[1]), slice(first[0], last[0])
    part = array[rows, columns]
    y, x = np.ogrid[first[1] : first[1] + part.shape[0], first[0] : first[0] + part.shape[1]]
    direction = end - start
    length = float(direction @ direction) or 1.0
    fraction = np.clip(((x - start[0]) * direction[0] + (y - start[1]) * direction[1]) / length, 0, 1)
    distance = (x - start[0] - fraction * direction[0]) ** 2 + (y - start[1] - fraction * direction[1]) ** 2
    part[distance <= radius * radius + _ROUNDED] = value
