"""Compute a loop's number of iterations before the loop, from the comparison that ends it."""

from __future__ import annotations

from typing import NamedTuple

from ...llvm.instructions import IRInstruction
from ..proofs.operations import INVERSE, SWAPPED
from .linear_values import Linear, LinearValues
from .written_code import WrittenCode

__all__ = ["LoopLength", "loop_length"]

_LONGEST, _WIDE = 1 << 31, 64
_RELATIONS = {"ne": "!=", "eq": "==", "ult": "u<", "ugt": "u>", "slt": "s<", "sgt": "s>", "ule": "u<=", "uge": "u>=",
              "sle": "s<=", "sge": "s>="}  # fmt: skip


_UP, _DOWN = {"u<": "ult", "s<": "slt", "u<=": "ule", "s<=": "sle"}, {"u>": "ugt", "s>": "sgt"}


class LoopLength(NamedTuple):
    """The length of a loop.

    Attributes
    ----------
    iterations : str
        The number of iterations, as a 64-bit integer, without the last, whose test ends the loop.
    conditions : list of str
        The conditions under which that number is right.
    """

    iterations: str
    conditions: list[str]


def loop_length(test: IRInstruction, *, stays: bool, values: LinearValues, code: WrittenCode) -> LoopLength | None:
    """Emit code that computes how many iterations continue the loop; None if no counter determines it.

    Parameters
    ----------
    test : IRInstruction
        The comparison at the end, or at the beginning, of each iteration.
    stays : bool
        The result of the comparison for which the loop continues.
    values : LinearValues
    code : WrittenCode
    """
    relation = _RELATIONS[test.word]
    if not stays:
        relation = INVERSE[relation]
    one, other = (values.of(operand) for operand in test.operands)
    if one is None or other is None:
        return None
    if other.slope:
        one, other, relation = other, one, SWAPPED[relation]
    by = one.slope
    if other.slope or not by or isinstance(by, str):
        return None
    if relation == "!=":
        return _until_equal(one, by, other.start, code)
    ends = _UP if by > 0 else _DOWN
    return _until_past(one, by, other.start, ends[relation], code) if relation in ends else None


def _until_equal(counter: Linear, by: int, limit: str, code: WrittenCode) -> LoopLength | None:
    """The loop ends when its counter is equal to a limit."""
    kind, step = f"i{counter.bits}", abs(by)
    if step & step - 1:
        return None
    apart = _apart(counter, by, limit, code)
    conditions = []
    if step > 1:
        conditions.append(code.op(f"icmp eq {kind} {code.op(f'and {kind} {apart}, {step - 1}')}, 0"))
        apart = code.op(f"lshr {kind} {apart}, {step.bit_length() - 1}")
    return _counted(apart, counter.bits, conditions, code)


def _until_past(counter: Linear, by: int, limit: str, relation: str, code: WrittenCode) -> LoopLength | None:
    """The loop ends when its counter is no longer on one side of a limit."""
    kind, step, bits = f"i{counter.bits}", abs(by), counter.bits
    if by < -1:
        return None
    conditions, equal = [], relation[1:] == "le"
    if step + equal > 1:  # the counter must not wrap when it passes the limit
        most = (1 << bits - 1 if relation[0] == "s" else 0) - step - equal
        conditions.append(code.op(f"icmp {relation[0]}le {kind} {limit}, {most}"))
    some = code.op(f"icmp {relation} {kind} {counter.start}, {limit}")
    apart = _apart(counter, by, limit, code)
    if not equal:
        apart = code.op(f"sub {kind} {apart}, 1")
    steps = apart if step == 1 else code.op(f"udiv {kind} {apart}, {step}")
    count = code.op(f"add {kind} {steps}, 1")
    return _counted(code.op(f"select i1 {some}, {kind} {count}, {kind} 0"), bits, conditions, code)


def _apart(counter: Linear, by: int, limit: str, code: WrittenCode) -> str:
    pair = (limit, counter.start) if by > 0 else (counter.start, limit)
    return code.op(f"sub i{counter.bits} {pair[0]}, {pair[1]}")


def _counted(count: str, bits: int, conditions: list[str], code: WrittenCode) -> LoopLength | None:
    if bits > _WIDE:
        return None
    wide = count if bits == _WIDE else code.op(f"zext i{bits} {count} to i64")
    return LoopLength(wide, [*conditions, code.op(f"icmp ult i64 {wide}, {_LONGEST}")])
