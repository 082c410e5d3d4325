"""Turn an array into a picture: decide whether it can be shown, and in what colors."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from metalnb.errors import ArgumentError

__all__ = ["Painter", "check_numbers", "palette", "png"]

_FASTEST = 1  # zlib's level: a frame is shown only once


class Painter:
    """Turns arrays of one shape into PNG.

    A plane of numbers is colored by a color map between two limits. Three or four numbers per pixel are red, green,
    blue and alpha: 8-bit integers as they are, or floats from 0 to 1.

    Parameters
    ----------
    caller : str
        The function and the kernel, for messages.
    shape : tuple of int
        (H, W), (H, W, 3) or (H, W, 4).
    colors : str
        The name of one of matplotlib's color maps.
    limits : tuple of float or None
        The values at the ends of the color map; None for each picture's own smallest and largest number.
    keep_limits : bool, optional
        Whether default limits only ever widen, so that colors keep their meaning from picture to picture.
    origin : {"upper", "lower"}
        The position of row 0.

    Raises
    ------
    ArgumentError
    """

    def __init__(
        self, caller: str, shape: tuple[int, ...], colors: str, limits: Any, origin: str, *, keep_limits: bool = False
    ) -> None:
        if not (len(shape) == 2 or (len(shape) == 3 and shape[2] in {3, 4})) or 0 in shape:
            rule = "a picture is an array of shape (H, W), (H, W, 3) or (H, W, 4)"
            raise ArgumentError(f"{caller}: {rule}; got shape {shape}. Pass a grid or shapes= of two dimensions.")
        if origin not in {"upper", "lower"}:
            raise ArgumentError(f"{caller}: origin is 'upper' or 'lower'; got {origin!r}.")
        self.flip = origin == "lower"
        self.limits = self._fixed_limits = _check_limits(caller, limits)
        self._keeps_limits = keep_limits
        self.size = shape[:2]
        self.colors = colors
        self.palette = palette(caller, colors) if len(shape) == 2 else None

    def forget(self) -> None:
        """Forget the color limits of the earlier pictures."""
        self.limits = self._fixed_limits

    def paint(self, array: Any) -> bytes:
        """Return the array as PNG."""
        return png(self.pixels(array), self.palette)

    def pixels(self, array: Any) -> Any:
        """Return the array as uint8: entries of the palette, of shape (H, W), or colors, of shape (H, W, 3 or 4)."""
        if self.flip:
            array = array[::-1]
        if self.palette is not None:
            return self._color_indices(array)
        if array.dtype != np.uint8:
            array = (np.clip(np.nan_to_num(array.astype(np.float32, copy=False)), 0, 1) * 255 + 0.5).astype(np.uint8)
        return array

    def _color_indices(self, array: Any) -> Any:
        """Map numbers to the 256 entries of the palette; NaN becomes the first."""
        is_small = array.dtype.itemsize < (4 if array.dtype.kind in "iu" else 8)
        kind = np.float32 if is_small else np.float64  # float32 cannot represent all large whole numbers
        values = array.astype(kind, copy=False)
        low, high = self._extent(values)
        scale = 255.0 / (high - low) if high > low else 1.0
        with np.errstate(invalid="ignore", over="ignore"):
            indices = np.clip((values - kind(low)) * kind(scale), 0, 255)
        return np.nan_to_num(indices + kind(0.5), copy=False).astype(np.uint8)

    def _extent(self, values: Any) -> tuple[float, float]:
        if self._fixed_limits:
            return self._fixed_limits
        low, high = _extent(values)
        if self._keeps_limits:
            previous = self.limits or (low, high)
            low, high = self.limits = min(low, previous[0]), max(high, previous[1])
        return low, high


def check_numbers(caller: str, dtype: np.dtype[Any]) -> None:
    """Reject an array of anything but real numbers.

    Raises
    ------
    ArgumentError
    """
    if dtype.names or dtype.kind not in "biufV":  # bfloat16 has the kind V
        raise ArgumentError(f"{caller}: a picture is an array of real numbers; got {dtype}.")


def png(pixels: Any, colors: Any = None) -> bytes:
    """Return a picture as PNG, compressed quickly rather than well.

    Parameters
    ----------
    pixels : numpy.ndarray
        uint8: colors of shape (H, W, 3), or (H, W, 4) with alpha; entries of a palette of shape (H, W).
    colors : numpy.ndarray, optional
        uint8, shape (256, 3): red, green, blue.
    """
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels))
    if colors is not None:
        image.putpalette(colors.tobytes())
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=_FASTEST)
    return file.getvalue()


def _extent(values: Any) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    if np.isfinite(low) and np.isfinite(high):
        return low, high
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def _check_limits(caller: str, limits: Any) -> tuple[float, float] | None:
    if limits is None:
        return None
    try:
        low, high = (float(n) for n in limits)
    except (TypeError, ValueError):
        low = high = 0.0
    if not -np.inf < low < high < np.inf:
        raise ArgumentError(f"{caller}: limits is (low, high), or None for each picture's own; got {limits!r}.")
    return low, high


def palette(caller: str, colors: str) -> Any:
    """Return the 256 entries of a color map, shape (256, 3)."""
    from matplotlib import colormaps

    if colors not in colormaps:
        raise ArgumentError(f"{caller}: colors is the name of one of matplotlib's color maps; got {colors!r}.")
    return (colormaps[colors](np.linspace(0, 1, 256))[:, :3] * 255 + 0.5).astype(np.uint8)
