"""How a value changes from lane to lane.

A value is *uniform* when all active lanes have it alike, *strided* when each lane has the same difference to the one
before, and *varying* else. A strided value is kept as lane 0's, in one scalar register; its vector is made where it is
needed. Lane 0's value is right modulo 2^n even where lane 0 is not active.

A 32-bit index that is widened to 64 bits stays strided only if it does not wrap within a SIMD-group. Either that is
known (it is *tight*), from how lane 0's value is aligned or from ``nuw`` and ``nsw``, or the value has a *guard*: a
condition that is computed beside it. A value's vector is right in any case; its scalar only under its guards.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["BOTH", "SIGNED", "UNIFORM", "UNSIGNED", "VARYING", "LaneShape", "is_aligned", "span_of", "twos"]

_MOST = 1 << 63


class LaneShape(NamedTuple):
    """How a value changes from lane to lane.

    Attributes
    ----------
    stride : int or None
        From lane to lane, in bytes for a pointer; 0 is uniform, None varying.
    align : int
        A power of two that divides lane 0's value.
    tight : int
        Whether no active lane wraps: `UNSIGNED`, `SIGNED` or both, by how the number is read.
    guards : frozenset of str
        Names of the values whose guards must hold for lane 0's value to tell the others'.
    """

    stride: int | None
    align: int = 1
    tight: int = 0
    guards: frozenset[str] = frozenset()

    @property
    def uniform(self) -> bool:
        """Whether all active lanes have it alike."""
        return self.stride == 0

    @property
    def varying(self) -> bool:
        """Whether it needs a vector."""
        return self.stride is None


VARYING = LaneShape(None)
UNSIGNED, SIGNED = 1, 2
BOTH = UNSIGNED | SIGNED
UNIFORM = LaneShape(0, tight=BOTH)


def twos(number: int) -> int:
    """Return the largest power of two that divides a number."""
    return number & -number if number else _MOST


def span_of(stride: int, width: int) -> int:
    """Return the smallest power of two that is no less than what all lanes together step over."""
    return 1 << (abs(stride) * width - 1).bit_length() if stride else 1


def is_aligned(shape: LaneShape, width: int) -> bool:
    """Return whether lane 0 is at a multiple of what all lanes together step over: no lane wraps then."""
    return shape.stride is not None and shape.stride > 0 and shape.align >= span_of(shape.stride, width)
