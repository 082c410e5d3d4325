"""Turning an array into a picture: which arrays can be shown, and in what colours."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from metalnb.errors import ArgumentError

__all__ = ["Painter", "png"]

_FASTEST = 1  # of zlib's levels: a frame is looked at once


class Painter:
    """Turns arrays of one shape into PNG.

    A plane of numbers is coloured by a colour map between two limits. Three or four numbers per pixel are red, green,
    blue and alpha: 8-bit integers as they are, or floats from 0 to 1.

    Parameters
    ----------
    asks : str
        For messages: the function and the kernel.
    shape : tuple of int
        (H, W), (H, W, 3) or (H, W, 4).
    colours : str
        The name of one of matplotlib's colour maps.
    limits : tuple of float or None
        The values at the ends of the colour map; None for each picture's own smallest and largest number.
    origin : {"upper", "lower"}
        The position of row 0.

    Raises
    ------
    ArgumentError
    """

    def __init__(self, asks: str, shape: tuple[int, ...], colours: str, limits: Any, origin: str) -> None:
        if not (len(shape) == 2 or (len(shape) == 3 and shape[2] in {3, 4})) or 0 in shape:
            rule = "a picture is an array of shape (H, W), (H, W, 3) or (H, W, 4)"
            raise ArgumentError(f"{asks}: {rule}; got shape {shape}. Pass a grid or shapes= of two dimensions.")
        if origin not in {"upper", "lower"}:
            raise ArgumentError(f"{asks}: origin is 'upper' or 'lower'; got {origin!r}.")
        self.flip = origin == "lower"
        self._limits = _checked_limits(asks, limits)
        self._palette = _palette(asks, colours) if len(shape) == 2 else None

    def paint(self, array: Any) -> bytes:
        """Return the array as PNG."""
        if self.flip:
            array = array[::-1]
        if self._palette is not None:
            return png(self._scaled(array), self._palette)
        if array.dtype != np.uint8:
            array = (np.clip(np.nan_to_num(array.astype(np.float32, copy=False)), 0, 1) * 255 + 0.5).astype(np.uint8)
        return png(array)

    def _scaled(self, array: Any) -> Any:
        """Map numbers to the 256 entries of the palette; NaN becomes the first."""
        values = array.astype(np.float32, copy=False)
        low, high = self._limits or _extent(values)
        scale = 255.0 / (high - low) if high > low else 0.0
        places = np.clip((values - np.float32(low)) * np.float32(scale), 0, 255)
        return np.nan_to_num(places + np.float32(0.5), copy=False).astype(np.uint8)


def png(pixels: Any, palette: Any = None) -> bytes:
    """Return a picture as PNG, compressed quickly rather than well.

    Parameters
    ----------
    pixels : numpy.ndarray
        uint8: colours of shape (H, W, 3), or (H, W, 4) with alpha; entries of the palette of shape (H, W).
    palette : numpy.ndarray, optional
        uint8, shape (256, 3): red, green, blue.
    """
    from PIL import Image

    image = Image.fromarray(pixels)
    if palette is not None:
        image.putpalette(palette.tobytes())
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=_FASTEST)
    return file.getvalue()


def _extent(values: Any) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    if np.isfinite(low) and np.isfinite(high):
        return low, high
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def _checked_limits(asks: str, limits: Any) -> tuple[float, float] | None:
    if limits is None:
        return None
    try:
        low, high = (float(n) for n in limits)
    except (TypeError, ValueError):
        low = high = 0.0
    if not low < high:
        raise ArgumentError(f"{asks}: limits is (low, high), or None for each picture's own; got {limits!r}.")
    return low, high


def _palette(asks: str, colours: str) -> Any:
    from matplotlib import colormaps

    if colours not in colormaps:
        raise ArgumentError(f"{asks}: colours is the name of one of matplotlib's colour maps; got {colours!r}.")
    return (colormaps[colours](np.linspace(0, 1, 256))[:, :3] * 255 + 0.5).astype(np.uint8)
