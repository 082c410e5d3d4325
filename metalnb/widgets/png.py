"""Write PNG, fast: what a picture under a slider needs (ISO/IEC 15948)."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

__all__ = ["indexed", "truecolour"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_FASTEST = 1  # of zlib's levels: a frame is looked at once
_TRUECOLOUR, _INDEXED, _ALPHA = 2, 3, 6


def indexed(pixels: Any, palette: Any) -> bytes:
    """Write a picture of palette entries.

    Parameters
    ----------
    pixels : numpy.ndarray
        uint8, shape (H, W).
    palette : numpy.ndarray
        uint8, shape (256, 3): red, green, blue.
    """
    return _png(pixels, _INDEXED, _chunk(b"PLTE", palette.tobytes()))


def truecolour(pixels: Any) -> bytes:
    """Write a picture of colours.

    Parameters
    ----------
    pixels : numpy.ndarray
        uint8, shape (H, W, 3), or (H, W, 4) with alpha.
    """
    return _png(pixels, _TRUECOLOUR if pixels.shape[2] == 3 else _ALPHA)


def _png(pixels: Any, colour: int, palette: bytes = b"") -> bytes:
    height, width = pixels.shape[:2]
    header = struct.pack(">2I5B", width, height, 8, colour, 0, 0, 0)
    rows = np.zeros((height, 1 + pixels[0].size), np.uint8)  # the first byte of a row is its filter: none
    rows[:, 1:] = pixels.reshape(height, -1)
    data = zlib.compress(rows.data, _FASTEST)
    return b"".join((_SIGNATURE, _chunk(b"IHDR", header), palette, _chunk(b"IDAT", data), _chunk(b"IEND", b"")))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))
