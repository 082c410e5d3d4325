"""Interval arithmetic on n-bit integers, modulo 2^n.

An interval is not reduced, so that ``i + 4294967295`` stays ``i - 1``. `unsigned` and `signed` convert it to integers
of either kind; an interval that wraps becomes the full range of the type.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Interval", "full_range"]

_WRAPS = 8  # multiples of 2^bits that are tried


class Interval(NamedTuple):
    """All integers from ``low`` to ``high``."""

    low: int
    high: int

    def hull(self, other: Interval) -> Interval:
        """Return the smallest interval that contains both intervals."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def within(self, other: Interval) -> bool:
        """Return whether another interval contains this one."""
        return other.low <= self.low and self.high <= other.high

    def plus(self, other: Interval) -> Interval:
        """Return the interval of the sums."""
        return Interval(self.low + other.low, self.high + other.high)

    def minus(self, other: Interval) -> Interval:
        """Return the interval of the differences."""
        return Interval(self.low - other.high, self.high - other.low)

    def times(self, other: Interval) -> Interval:
        """Return the interval of the products."""
        corners = [a * b for a in self for b in other]
        return Interval(min(corners), max(corners))

    def unsigned(self, bits: int) -> Interval:
        """Return the interval as integers from 0 to 2^bits - 1."""
        return self._view(0, 1 << bits)

    def signed(self, bits: int) -> Interval:
        """Return the interval as integers from -2^(bits-1) to 2^(bits-1) - 1."""
        return self._view(-(1 << bits - 1), 1 << bits)

    def _view(self, low: int, count: int) -> Interval:
        shift = (self.low - low) // count * count
        if self.high - shift < low + count:
            return Interval(self.low - shift, self.high - shift)
        return Interval(low, low + count - 1)

    def normalize(self, bits: int) -> Interval:
        """Return the interval, or the full unsigned range if it has that many integers."""
        return self if self.high - self.low < 1 << bits else full_range(bits)

    def intersect(self, other: Interval, bits: int) -> Interval:
        """Return the intersection; either range may be off by a multiple of 2^bits."""
        parts = []
        first, last = (self.low - other.high) >> bits, -((other.low - self.high) >> bits)
        if last - first > _WRAPS:
            return self
        for wrap in range(first, last + 1):
            shift = wrap << bits
            low, high = max(self.low, other.low + shift), min(self.high, other.high + shift)
            if low <= high:
                parts.append(Interval(low, high))
        if not parts:
            return self  # disjoint, so no thread gets here and any range is correct
        intersection = Interval(min(f.low for f in parts), max(f.high for f in parts))
        return min(intersection, other, key=lambda i: i.high - i.low)


def full_range(bits: int) -> Interval:
    """Return the range of all unsigned integers of `bits` bits."""
    return Interval(0, (1 << bits) - 1)
