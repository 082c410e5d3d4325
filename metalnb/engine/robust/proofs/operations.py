"""Transfer functions: ranges of LLVM's integer instructions, and ranges that follow from comparisons.

Source: LLVM Language Reference, "Binary Operations", "Bitwise Binary Operations", "icmp", "llvm.umin.*" and the like.
"""

from __future__ import annotations

from collections.abc import Callable

from .intervals import Interval, whole

__all__ = ["ARITHMETIC", "LEAST", "OPPOSITE", "TURNED", "bounded", "may_hold"]

Operation = Callable[[Interval, Interval, int], Interval]


def _divided(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.unsigned(bits), b.unsigned(bits)
    return Interval(a.low // b.high, a.high // b.low) if b.low else whole(bits)


def _remainder(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.unsigned(bits), b.unsigned(bits)
    if not b.low:
        return whole(bits)
    return a if a.high < b.low else Interval(0, min(a.high, b.high - 1))


def _s_divided(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.signed(bits), b.signed(bits)
    if b.low <= 0:
        return whole(bits)
    if a.low >= 0:
        return Interval(a.low // b.high, a.high // b.low)
    most = max(abs(a.low), abs(a.high)) // b.low
    return Interval(-most, most)


def _s_remainder(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.signed(bits), b.signed(bits)
    if b.low <= 0:
        return whole(bits)
    return Interval(0 if a.low >= 0 else 1 - b.high, min(b.high - 1, a.high) if a.low >= 0 else b.high - 1)


def _shifted_left(a: Interval, b: Interval, bits: int) -> Interval:
    b = b.unsigned(bits)
    return a.times(Interval(1 << b.low, 1 << b.high)) if b.high < bits else whole(bits)


def _shifted_right(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.unsigned(bits), b.unsigned(bits)
    return Interval(a.low >> b.high, a.high >> b.low) if b.high < bits else whole(bits)


def _s_shifted_right(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.signed(bits), b.unsigned(bits)
    if b.high >= bits:
        return whole(bits)
    corners = [x >> y for x in a for y in b]
    return Interval(min(corners), max(corners))


def _and(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.unsigned(bits), b.unsigned(bits)
    if b.low == b.high:
        above = (1 << bits) - b.low
        if above & above - 1 == 0 or a.low == a.high:  # the mask clears low bits only: the order is kept
            return Interval(a.low & b.low, a.high & b.low)
    return Interval(0, min(a.high, b.high))


def _or(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.unsigned(bits), b.unsigned(bits)
    if a.low == a.high and b.low == b.high:
        return Interval(a.low | b.low, a.low | b.low)
    most = (1 << max(a.high.bit_length(), b.high.bit_length())) - 1
    return Interval(max(a.low, b.low), min(a.high + b.high, most))


def _xor(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.unsigned(bits), b.unsigned(bits)
    if a.low == a.high and b.low == b.high:
        return Interval(a.low ^ b.low, a.low ^ b.low)
    return Interval(0, _or(a, b, bits).high)


def _extreme(pick: Callable[[int, int], int], view: Callable[[Interval, int], Interval]) -> Operation:
    def of(a: Interval, b: Interval, bits: int) -> Interval:
        a, b = view(a, bits), view(b, bits)
        return Interval(pick(a.low, b.low), pick(a.high, b.high))

    return of


def _absolute(a: Interval, _: Interval, bits: int) -> Interval:
    a = a.signed(bits)
    ends = sorted((abs(a.low), abs(a.high)))
    return Interval(0 if a.low <= 0 <= a.high else ends[0], ends[1])


def _less_saturated(a: Interval, b: Interval, bits: int) -> Interval:
    apart = a.unsigned(bits).minus(b.unsigned(bits))
    return Interval(max(apart.low, 0), max(apart.high, 0))


def _more_saturated(a: Interval, b: Interval, bits: int) -> Interval:
    most, total = whole(bits).high, a.unsigned(bits).plus(b.unsigned(bits))
    return Interval(min(total.low, most), min(total.high, most))


def _counted(_: Interval, any_at_zero: Interval, bits: int) -> Interval:
    return Interval(0, bits).fitted(bits) if any_at_zero == (0, 0) else whole(bits)


ARITHMETIC: dict[str, Operation] = {
    "add": lambda a, b, _: a.plus(b), "sub": lambda a, b, _: a.minus(b), "mul": lambda a, b, _: a.times(b),
    "udiv": _divided, "urem": _remainder, "sdiv": _s_divided, "srem": _s_remainder,
    "shl": _shifted_left, "lshr": _shifted_right, "ashr": _s_shifted_right, "and": _and, "or": _or, "xor": _xor,
    "umin": _extreme(min, Interval.unsigned), "umax": _extreme(max, Interval.unsigned),
    "smin": _extreme(min, Interval.signed), "smax": _extreme(max, Interval.signed),
    "abs": _absolute, "usub_sat": _less_saturated, "uadd_sat": _more_saturated,
    "ctpop": lambda _, __, bits: Interval(0, bits).fitted(bits), "ctlz": _counted, "cttz": _counted,
}  # fmt: skip
LEAST = {"umin": True, "smin": False}  # whether they compare as unsigned integers

OPPOSITE = {"==": "!=", "!=": "==", "u<": "u>=", "u>=": "u<", "u>": "u<=", "u<=": "u>",
             "s<": "s>=", "s>=": "s<", "s>": "s<=", "s<=": "s>"}  # fmt: skip
TURNED = {"==": "==", "!=": "!=", "u<": "u>", "u>": "u<", "u<=": "u>=", "u>=": "u<=",
           "s<": "s>", "s>": "s<", "s<=": "s>=", "s>=": "s<="}  # fmt: skip


def bounded(relation: str, other: Interval, bits: int, now: Interval) -> Interval | None:
    """Return the x for which a relation to some y of a range holds; None if there are none or no restriction.

    ``now`` is the known range of x, which an inequality narrows only at one of its ends.
    """
    if relation == "==":
        return other
    if relation == "!=":
        return _other_than(other, now, bits)
    unsigned = relation[0] == "u"
    other = other.unsigned(bits) if unsigned else other.signed(bits)
    lowest = 0 if unsigned else -(1 << bits - 1)
    highest = lowest + (1 << bits) - 1
    strict = relation[1:] in {"<", ">"}
    if "<" in relation:
        high = other.high - strict
        return Interval(lowest, high) if high >= lowest else None
    low = other.low + strict
    return Interval(low, highest) if low <= highest else None


def _other_than(other: Interval, now: Interval, bits: int) -> Interval | None:
    if other.low != other.high:
        return None
    for number in ((other.low - now.low) % (1 << bits) + now.low, now.high - (now.high - other.low) % (1 << bits)):
        if now.low < now.high and number in now:
            return Interval(now.low + (number == now.low), now.high - (number == now.high))
    if other.unsigned(bits) == (0, 0):
        return Interval(1, (1 << bits) - 1)
    return None


def may_hold(relation: str, one: Interval, other: Interval, bits: int) -> bool:
    """Return whether a relation may hold between some integers of two ranges."""
    if relation in {"==", "!="}:
        if one.low == one.high and other.low == other.high:
            return ((one.low - other.low) % (1 << bits) == 0) == (relation == "==")
        return True
    known = bounded(relation, other, bits, one)
    view = Interval.unsigned if relation[0] == "u" else Interval.signed
    if known is None:  # no unsigned number is below 0
        return False
    seen = view(one, bits)
    return seen.low <= known.high and known.low <= seen.high
