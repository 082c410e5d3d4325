"""What SPIR-V's integer instructions make of ranges, and what comparisons tell of what they compare.

Source: SPIR-V specification 1.4, 3.37.13 (arithmetic), 3.37.14 (bits), 3.37.15 (comparisons); OpenCL extended
instruction set, 2.2.
"""

from __future__ import annotations

from collections.abc import Callable

from ...spirv.opcodes import Spv
from .intervals import Interval, whole

__all__ = ["ARITHMETIC", "CLAMPS", "COMPARED", "EXTREMA", "GROUP_EXTREMA", "OPPOSITE", "TURNED", "bounded"]

Operation = Callable[[Interval, Interval, int], Interval]


def _divided(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.unsigned(bits), _divisors(b.unsigned(bits))
    return Interval(a.low // b.high, a.high // b.low) if b.high else whole(bits)


def _divisors(b: Interval) -> Interval:
    """Return what is divided by: 1 in place of 0 (``divisions.py``), but for a constant."""
    return Interval(max(b.low, 1), b.high) if b.high else b


def _remainder(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.unsigned(bits), _divisors(b.unsigned(bits))
    if not b.high:
        return whole(bits)
    return a if a.high < b.low else Interval(0, min(a.high, b.high - 1))


def _s_divided(a: Interval, b: Interval, bits: int) -> Interval:
    a, b = a.signed(bits), b.signed(bits)
    if a.low >= 0 and b.low > 0:
        return Interval(a.low // b.high, a.high // b.low)
    if b.low > 0:
        most = max(abs(a.low), abs(a.high)) // b.low
        return Interval(-most, most)
    return whole(bits)


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
    if a.low == a.high and b.low == b.high:
        return Interval(a.low & b.low, a.low & b.low)
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
    if (0, 0) in {a, b}:  # what a pass hides an index behind
        return b if a == (0, 0) else a
    return Interval(0, _or(a, b, bits).high)


ARITHMETIC: dict[int, Operation] = {
    Spv.I_ADD: lambda a, b, _: a.plus(b),
    Spv.I_SUB: lambda a, b, _: a.minus(b),
    Spv.I_MUL: lambda a, b, _: a.times(b),
    Spv.U_DIV: _divided,
    Spv.U_MOD: _remainder,
    Spv.S_DIV: _s_divided,
    Spv.S_REM: _s_remainder,
    Spv.SHIFT_LEFT_LOGICAL: _shifted_left,
    Spv.SHIFT_RIGHT_LOGICAL: _shifted_right,
    Spv.SHIFT_RIGHT_ARITHMETIC: _s_shifted_right,
    Spv.BITWISE_AND: _and,
    Spv.BITWISE_OR: _or,
    Spv.BITWISE_XOR: _xor,
}


def _extreme(pick: Callable[[int, int], int], view: Callable[[Interval, int], Interval]) -> Operation:
    def of(a: Interval, b: Interval, bits: int) -> Interval:
        a, b = view(a, bits), view(b, bits)
        return Interval(pick(a.low, b.low), pick(a.high, b.high))

    return of


# Of OpenCL.std.
EXTREMA: dict[int, Operation] = {
    156: _extreme(max, Interval.signed), 157: _extreme(max, Interval.unsigned),
    158: _extreme(min, Interval.signed), 159: _extreme(min, Interval.unsigned),
}  # fmt: skip
CLAMPS = {149: (158, 156), 150: (159, 157)}

GROUP_EXTREMA = {
    Spv.GROUP_NON_UNIFORM_S_MIN, Spv.GROUP_NON_UNIFORM_U_MIN, Spv.GROUP_NON_UNIFORM_S_MAX, Spv.GROUP_NON_UNIFORM_U_MAX,
}  # fmt: skip

COMPARED: dict[int, str] = {
    Spv.I_EQUAL: "==", Spv.I_NOT_EQUAL: "!=",
    Spv.U_LESS_THAN: "u<", Spv.U_LESS_THAN_EQUAL: "u<=", Spv.U_GREATER_THAN: "u>", Spv.U_GREATER_THAN_EQUAL: "u>=",
    Spv.S_LESS_THAN: "s<", Spv.S_LESS_THAN_EQUAL: "s<=", Spv.S_GREATER_THAN: "s>", Spv.S_GREATER_THAN_EQUAL: "s>=",
}  # fmt: skip
OPPOSITE = {"==": "!=", "!=": "==", "u<": "u>=", "u>=": "u<", "u>": "u<=", "u<=": "u>",
             "s<": "s>=", "s>=": "s<", "s>": "s<=", "s<=": "s>"}  # fmt: skip
TURNED = {"==": "==", "!=": "!=", "u<": "u>", "u>": "u<", "u<=": "u>=", "u>=": "u<=",
           "s<": "s>", "s>": "s<", "s<=": "s>=", "s>=": "s<="}  # fmt: skip


def bounded(relation: str, other: Interval, bits: int, now: Interval) -> Interval | None:
    """Return the integers that stand in a relation to some integer of a range; None when that may be all.

    ``now`` is where they are known to be: not to be a number tells something at an end of it.
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
