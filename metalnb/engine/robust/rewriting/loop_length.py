"""Compute a loop's number of iterations before the loop, from the comparison that ends it."""

from __future__ import annotations

from typing import NamedTuple

from ...llvm.instructions import IRInstruction
from ..scalar_graph.relations import NOT_EQUAL, PREDICATES, Relation
from .ir_builder import IRBuilder
from .linear_values import Linear, LinearValues

__all__ = ["LoopLength", "write_loop_length"]

_MAX_ITERATIONS, _WIDE = 1 << 31, 64


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


def write_loop_length(
    test: IRInstruction, *, continue_on: bool, values: LinearValues, code: IRBuilder,
) -> LoopLength | None:  # fmt: skip
    """Emit code that computes how many iterations continue the loop; None if no counter determines it.

    Parameters
    ----------
    test : IRInstruction
        The comparison at the end, or at the beginning, of each iteration.
    continue_on : bool
        The result of the comparison for which the loop continues.
    values : LinearValues
    code : IRBuilder
    """
    relation = PREDICATES[test.word]
    if not continue_on:
        relation = relation.inverse
    left, right = (values.of(operand) for operand in test.operands)
    if left is None or right is None:
        return None
    if right.slope:
        left, right, relation = right, left, relation.swapped
    slope = left.slope
    if right.slope or not slope or isinstance(slope, str):
        return None
    if relation == NOT_EQUAL:
        return _write_equality_length(left, slope, right.start, code)
    approaches = relation.is_below if slope > 0 else relation.sign == ">"
    return _write_inequality_length(left, slope, right.start, relation, code) if approaches else None


def _write_equality_length(counter: Linear, slope: int, limit: str, code: IRBuilder) -> LoopLength | None:
    """The loop ends when its counter is equal to a limit."""
    kind, step = f"i{counter.bits}", abs(slope)
    if step & step - 1:
        return None
    distance = _write_distance(counter, slope, limit, code)
    conditions = []
    if step > 1:
        conditions.append(code.op(f"icmp eq {kind} {code.op(f'and {kind} {distance}, {step - 1}')}, 0"))
        distance = code.op(f"lshr {kind} {distance}, {step.bit_length() - 1}")
    return _bounded_length(distance, counter.bits, conditions, code)


def _write_inequality_length(
    counter: Linear, slope: int, limit: str, relation: Relation, code: IRBuilder,
) -> LoopLength | None:  # fmt: skip
    """The loop ends when its counter is no longer on one side of a limit."""
    kind, step, bits = f"i{counter.bits}", abs(slope), counter.bits
    if slope < -1:
        return None
    conditions, is_inclusive = [], relation.is_inclusive
    if step + is_inclusive > 1:  # the counter must not wrap when it passes the limit
        last_limit = (0 if relation.unsigned else 1 << bits - 1) - step - is_inclusive
        conditions.append(code.op(f"icmp {'u' if relation.unsigned else 's'}le {kind} {limit}, {last_limit}"))
    is_entered = code.op(f"icmp {relation.predicate} {kind} {counter.start}, {limit}")
    distance = _write_distance(counter, slope, limit, code)
    if not is_inclusive:
        distance = code.op(f"sub {kind} {distance}, 1")
    steps = distance if step == 1 else code.op(f"udiv {kind} {distance}, {step}")
    count = code.op(f"add {kind} {steps}, 1")
    return _bounded_length(code.op(f"select i1 {is_entered}, {kind} {count}, {kind} 0"), bits, conditions, code)


def _write_distance(counter: Linear, slope: int, limit: str, code: IRBuilder) -> str:
    pair = (limit, counter.start) if slope > 0 else (counter.start, limit)
    return code.op(f"sub i{counter.bits} {pair[0]}, {pair[1]}")


def _bounded_length(count: str, bits: int, conditions: list[str], code: IRBuilder) -> LoopLength | None:
    if bits > _WIDE:
        return None
    wide = count if bits == _WIDE else code.op(f"zext i{bits} {count} to i64")
    return LoopLength(wide, [*conditions, code.op(f"icmp ult i64 {wide}, {_MAX_ITERATIONS}")])
