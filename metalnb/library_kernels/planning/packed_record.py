"""The bytes that a kernel reads as its struct."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

__all__ = ["Record", "record"]

Record = np.ndarray[tuple[int], np.dtype[np.uint8]]


def record(layout: struct.Struct | str, *numbers: Any) -> Record:
    """Return a struct of numbers in the form that engines take.

    Raises
    ------
    ValueError
        For a length that 32 bits cannot hold.
    """
    layout = struct.Struct(layout) if isinstance(layout, str) else layout
    try:
        packed = layout.pack(*numbers)
    except struct.error:
        raise ValueError(
            "a kernel counts the elements along an axis, and along axes that are contiguous with each other, in 32 "
            "bits; got 2^32 or more. Compute the array in parts: x[:n], x[n:]."
        ) from None
    return np.frombuffer(bytearray(packed), np.uint8)
