"""Transfer functions: ranges of LLVM's integer instructions, and ranges that follow from comparisons.

Source: LLVM Language Reference, "Binary Operations", "Bitwise Binary Operations", "icmp", "llvm.umin.*" and the like.
"""

from __future__ import annotations

from collections.abc import Callable

from ..scalar_graph.relations import EQUAL, NOT_EQUAL, Relation
from .intervals import Interval, full_range

__all__ = ["ARITHMETIC", "CONVERSIONS", "MINIMA", "allowed_range", "may_hold"]

Operation = Callable[[Interval, Interval, int], Interval]


def _udiv(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.unsigned(bits), b.unsigned(bits)
    return Interval(a.low // b.high, a.high // b.low) if b.low else full_range(bits)


def _urem(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.unsigned(bits), b.unsigned(bits)
    if not b.low:
        return full_range(bits)
    return a if a.high < b.low else Interval(0, min(a.high, b.high - 1))


def _sdiv(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.signed(bits), b.signed(bits)
    if b.low <= 0:
        return full_range(bits)
    if a.low >= 0:
        return Interval(a.low // b.high, a.high // b.low)
    limit = max(abs(a.low), abs(a.high)) // b.low
    return Interval(-limit, limit)


def _srem(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.signed(bits), b.signed(bits)
    if b.low <= 0:
        return full_range(bits)
    return Interval(0 if a.low >= 0 else 1 - b.high, min(b.high - 1, a.high) if a.low >= 0 else b.high - 1)


def _shl(a: Interval, b: Interval, bits: int) -> Interval:
    b = b.unsigned(bits)
    return a.times(Interval(1 << b.low, 1 << b.high)) if b.high < bits else full_range(bits)


def _lshr(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.unsigned(bits), b.unsigned(bits)
    return Interval(a.low >> b.high, a.high >> b.low) if b.high < bits else full_range(bits)


def _ashr(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.signed(bits), b.unsigned(bits)
    if b.high >= bits:
        return full_range(bits)
    corners = [x >> y for x in a for y in b]
    return Interval(min(corners), max(corners))


def _and(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.unsigned(bits), b.unsigned(bits)
    if b.low == b.high:
        clear_below = (1 << bits) - b.low
        if clear_below & clear_below - 1 == 0 or a.low == a.high:  # the mask clears low bits only: the order is kept
            return Interval(a.low & b.low, a.high & b.low)
    return Interval(0, min(a.high, b.high))


def _or(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.unsigned(bits), b.unsigned(bits)
    if a.low == a.high and b.low == b.high:
        return Interval(a.low | b.low, a.low | b.low)
    limit = (1 << max(a.high.bit_length(), b.high.bit_length())) - 1
    return Interval(max(a.low, b.low), min(a.high + b.high, limit))


def _xor(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.unsigned(bits), b.unsigned(bits)
    if a.low == a.high and b.low == b.high:
        return Interval(a.low ^ b.low, a.low ^ b.low)
    return Interval(0, _or(a, b, bits).high)


def _min_or_max(pick: Callable[[int, int], int], view: Callable[[Interval, int], Interval]) -> Operation:
    def apply(a: Interval, b: Interval, bits: int) -> Interval:
        a, b = view(a, bits), view(b, bits)
        return Interval(pick(a.low, b.low), pick(a.high, b.high))

    return apply


def _abs(a: Interval, _: Interval, bits: int) -> Interval:
    a = a.signed(bits)
    ends = sorted((abs(a.low), abs(a.high)))
    return Interval(0 if a.low <= 0 <= a.high else ends[0], ends[1])


def _usub_sat(a: Interval, b: Interval, bits: int) -> Interval:
    difference = a.unsigned(bits).minus(b.unsigned(bits))
    return Interval(max(difference.low, 0), max(difference.high, 0))


def _uadd_sat(a: Interval, b: Interval, bits: int) -> Interval:
    limit, total = full_range(bits).high, a.unsigned(bits).plus(b.unsigned(bits))
    return Interval(min(total.low, limit), min(total.high, limit))


def _count_zeros(_: Interval, any_at_zero: Interval, bits: int) -> Interval:
    return Interval(0, bits).normalize(bits) if any_at_zero == (0, 0) else full_range(bits)


ARITHMETIC: dict[str, Operation] = {
    "add": lambda a, b, _: a.plus(b), "sub": lambda a, b, _: a.minus(b), "mul": lambda a, b, _: a.times(b),
    "udiv": _udiv, "urem": _urem, "sdiv": _sdiv, "srem": _srem,
    "shl": _shl, "lshr": _lshr, "ashr": _ashr, "and": _and, "or": _or, "xor": _xor,
    "umin": _min_or_max(min, Interval.unsigned), "umax": _min_or_max(max, Interval.unsigned),
    "smin": _min_or_max(min, Interval.signed), "smax": _min_or_max(max, Interval.signed),
    "abs": _abs, "usub_sat": _usub_sat, "uadd_sat": _uadd_sat,
    "ctpop": lambda _, __, bits: Interval(0, bits).normalize(bits), "ctlz": _count_zeros, "cttz": _count_zeros,
}  # fmt: skip
CONVERSIONS = frozenset({"zext", "sext", "trunc"})  # between integers of different widths
MINIMA = {"umin": True, "smin": False}  # whether they compare as unsigned integers


def allowed_range(relation: Relation, other: Interval, bits: int, current: Interval) -> Interval | None:
    """Return a range of all x for which a relation to some y of a range holds; None if nothing follows.

    ``current`` is the known range of x, which ``!=`` narrows only at one of its ends. Nothing follows from an order
    that holds for no x: its branch is not reached.
    """
    if relation == EQUAL:
        return other
    if relation == NOT_EQUAL:
        return _exclude(other, current, bits)
    return _ordered_range(relation, other, bits)


def _ordered_range(relation: Relation, other: Interval, bits: int) -> Interval | None:
    """Return the x that are in an order to some y of a range; None if there are none: no unsigned x is below 0."""
    unsigned = relation.unsigned
    other = other.unsigned(bits) if unsigned else other.signed(bits)
    lowest = 0 if unsigned else -(1 << bits - 1)
    highest = lowest + (1 << bits) - 1
    if relation.is_below:
        high = other.high - (not relation.is_inclusive)
        return Interval(lowest, high) if high >= lowest else None
    low = other.low + (not relation.is_inclusive)
    return Interval(low, highest) if low <= highest else None


def _exclude(other: Interval, current: Interval, bits: int) -> Interval | None:
    if other.low != other.high:
        return None
    modulus = 1 << bits
    first = (other.low - current.low) % modulus + current.low
    last = current.high - (current.high - other.low) % modulus
    for number in (first, last):
        if current.low < current.high and number in (current.low, current.high):
            return Interval(current.low + (number == current.low), current.high - (number == current.high))
    if other.unsigned(bits) == (0, 0):
        return Interval(1, modulus - 1)
    return None


def may_hold(relation: Relation, left: Interval, right: Interval, bits: int) -> bool:
    """Return whether a relation may hold between some integers of two ranges."""
    if relation.unsigned is None:
        if left.low == left.high and right.low == right.high:
            return ((left.low - right.low) % (1 << bits) == 0) == (relation == EQUAL)
        return True
    allowed = _ordered_range(relation, right, bits)
    if allowed is None:
        return False
    possible = left.unsigned(bits) if relation.unsigned else left.signed(bits)
    return possible.low <= allowed.high and allowed.low <= possible.high
