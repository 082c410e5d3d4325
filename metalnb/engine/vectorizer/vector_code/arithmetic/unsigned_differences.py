"""Unsigned differences of 64 bits, |x - y|, written so that LLVM does not recognize them.

LLVM 22 recognizes them in a comparison with two subtractions, and in a maximum minus a minimum. On a processor without
an instruction for it, if x - y is known not to wrap in some lanes, LLVM treats the difference as signed and takes its
absolute value, which is wrong from 2^63 on (`TargetLowering::expandABD`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ....llvm.instructions import IRInstruction, Operand
from ..function_body import FunctionBody

__all__ = ["write_difference"]

_WIDE_BITS = 64
_GREATER, _LESS = frozenset({"ugt", "uge"}), frozenset({"ult", "ule"})


def write_difference(body: FunctionBody, inst: IRInstruction) -> list[str] | None:
    """Write a select or a subtraction that computes |x - y|, or its negative; None for any other instruction."""
    ir_type = inst.type.element
    if ir_type.kind != "integer" or ir_type.bits != _WIDE_BITS:
        return None
    pair = _match_select(body, inst) if inst.opcode == "select" else _match_extremes(body, inst)
    if pair is None:
        return None
    (x, y), is_positive = pair
    emitter, results = body.emitter, []
    lanes, saturated = emitter.lanes(ir_type), f"llvm.usub.sat.v{emitter.width}i64"
    for a, b in zip(body.parts(x.text, x.type), body.parts(y.text, y.type), strict=True):
        forward, backward = (emitter.call(saturated, lanes, (lanes, p), (lanes, q)) for p, q in ((a, b), (b, a)))
        magnitude = emitter.op(f"or {lanes} {forward}, {backward}")
        results.append(magnitude if is_positive else emitter.op(f"sub {lanes} zeroinitializer, {magnitude}"))
    return results


_Pair = tuple[tuple[Operand, Operand], bool]


def _match_select(body: FunctionBody, inst: IRInstruction) -> _Pair | None:
    """Return x and y of ``x > y ? x - y : y - x``, and whether the results are in this order or exchanged."""
    definitions = body.analysis.definitions
    test, first, second = (definitions.get(operand.text) for operand in inst.operands)
    if test is None or first is None or second is None:
        return None
    if (test.opcode, first.opcode, second.opcode) != ("icmp", "sub", "sub") or test.word not in _GREATER | _LESS:
        return None
    if not _are_current(body, inst, (test, first, second)):
        return None
    pair, swapped = (tuple(o.text for o in first.operands), tuple(o.text for o in reversed(first.operands)))
    compared = tuple(o.text for o in test.operands)
    if tuple(o.text for o in second.operands) != swapped or compared not in {pair, swapped}:
        return None
    x, y = first.operands
    return (x, y), (test.word in _GREATER) == (compared == pair)


def _match_extremes(body: FunctionBody, inst: IRInstruction) -> _Pair | None:
    """Return x and y of ``max(x, y) - min(x, y)``, and whether the operands are in this order or exchanged."""
    high, low = (body.analysis.definitions.get(operand.text) for operand in inst.operands)
    if high is None or low is None or high.opcode != "call" or low.opcode != "call":
        return None
    if not _are_current(body, inst, (high, low)):
        return None
    names = [extreme.word.rsplit(".", 1)[0] for extreme in (high, low)]
    if sorted(names) != ["llvm.umax", "llvm.umin"] or {o.text for o in high.operands} != {o.text for o in low.operands}:
        return None
    x, y = high.operands[:2]
    return (x, y), names[0] == "llvm.umax"


def _are_current(body: FunctionBody, inst: IRInstruction, definitions: Sequence[IRInstruction]) -> bool:
    """Return whether an instruction is in the loops of these definitions.

    After such a loop, the operands of a definition in it belong to another iteration.
    """
    flow = body.analysis.flow
    return all(flow.is_in_loop(flow.loop_of[definition.block], inst.block) for definition in definitions)
