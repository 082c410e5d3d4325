"""How a value changes from lane to lane.

A value is *uniform* if it is the same in all active lanes, *strided* if it differs from each lane to the next by the
same amount, and *varying* otherwise. A strided value is kept as lane 0's value in a scalar register, and its vector is
built only where it is needed. Lane 0's value is correct modulo 2^n even if lane 0 is inactive.

A 32-bit index that is widened to 64 bits stays strided only if it does not wrap within a SIMD-group. Either this is
known (the value is *tight*) from the alignment of lane 0's value or from ``nuw`` and ``nsw``, or the value has a
*guard*, a condition computed with it. A value's vector is always correct; its scalar, only if its guards hold.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "BOTH", "SIGNED", "UNIFORM", "UNSIGNED", "VARYING", "LaneShape", "is_aligned", "power_of_two_factor", "span_of"
]  # fmt: skip

_MAX_FACTOR = 1 << 63


class LaneShape(NamedTuple):
    """How a value changes from lane to lane.

    Attributes
    ----------
    stride : int or None
        The difference from lane to lane, in bytes for a pointer; 0 is uniform, None varying.
    align : int
        A power of two that divides lane 0's value.
    tight : int
        Whether no active lane wraps when the number is read as unsigned or signed: `UNSIGNED`, `SIGNED` or both.
    guards : frozenset of str
        Names of the values whose guards must hold for lane 0's value to determine the other lanes' values.
    """

    stride: int | None
    align: int = 1
    tight: int = 0
    guards: frozenset[str] = frozenset()

    @property
    def uniform(self) -> bool:
        """Whether the value is the same in all active lanes."""
        return self.stride == 0

    @property
    def varying(self) -> bool:
        """Whether the value needs a vector."""
        return self.stride is None


VARYING = LaneShape(None)
UNSIGNED, SIGNED = 1, 2
BOTH = UNSIGNED | SIGNED
UNIFORM = LaneShape(0, tight=BOTH)


def power_of_two_factor(number: int) -> int:
    """Return the largest power of two that divides a number."""
    return number & -number if number else _MAX_FACTOR


def span_of(stride: int, width: int) -> int:
    """Return the smallest power of two that is at least the distance covered by all lanes."""
    return 1 << (abs(stride) * width - 1).bit_length() if stride else 1


def is_aligned(shape: LaneShape, width: int) -> bool:
    """Return whether lane 0 is a multiple of the distance covered by all lanes, so that no lane wraps."""
    return shape.stride is not None and shape.stride > 0 and shape.align >= span_of(shape.stride, width)
