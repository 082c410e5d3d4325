"""The bytes that a kernel reads as its struct."""

from __future__ import annotations

import numpy as np

__all__ = ["Record", "record"]

Record = np.ndarray[tuple[int], np.dtype[np.uint8]]


def record(packed: bytes) -> Record:
    """Return bytes in the form that engines take."""
    return np.frombuffer(bytearray(packed), np.uint8)
