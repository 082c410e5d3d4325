"""The bytes that a kernel reads as its struct."""

from __future__ import annotations

import numpy as np

__all__ = ["Record", "record"]

Record = np.ndarray[tuple[int], np.dtype[np.uint8]]


def record(packed: bytes) -> Record:
    """Return bytes as an engine takes them."""
    return np.frombuffer(bytearray(packed), np.uint8)
