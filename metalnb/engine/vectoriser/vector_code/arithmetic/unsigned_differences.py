"""Unsigned differences of 64 bits, |x - y|, written so that LLVM does not recognise them.

LLVM 22 recognises them in a comparison with two subtractions, and in a maximum minus a minimum. On a processor without
an instruction for it, if x - y is known not to wrap in some lanes, LLVM treats the difference as signed and takes its
absolute value, which is wrong from 2^63 on (`TargetLowering::expandABD`).
"""

from __future__ import annotations

from ....llvm.instructions import IRInstruction, Operand
from ..function_body import FunctionBody

__all__ = ["difference"]

_WIDE = 64
_GREATER, _LESS = frozenset({"ugt", "uge"}), frozenset({"ult", "ule"})


def difference(body: FunctionBody, made: IRInstruction) -> list[str] | None:
    """Write a select or a subtraction that computes |x - y|, or its negative; return None for any other."""
    kind = made.type.element
    if kind.kind != "integer" or kind.bits != _WIDE:
        return None
    pair = _chosen(body, made) if made.opcode == "select" else _from_extremes(body, made)
    if pair is None:
        return None
    (x, y), positive = pair
    emitter, found = body.emitter, []
    lanes, saturated = emitter.lanes(kind), f"llvm.usub.sat.v{emitter.width}i64"
    for a, b in zip(body.parts(x.text, x.type), body.parts(y.text, y.type), strict=True):
        one, other = (emitter.call(saturated, lanes, (lanes, p), (lanes, q)) for p, q in ((a, b), (b, a)))
        whole = emitter.op(f"or {lanes} {one}, {other}")
        found.append(whole if positive else emitter.op(f"sub {lanes} zeroinitializer, {whole}"))
    return found


_Pair = tuple[tuple[Operand, Operand], bool]


def _chosen(body: FunctionBody, made: IRInstruction) -> _Pair | None:
    """Return x and y of ``x > y ? x - y : y - x``, and whether the results are in this order or exchanged."""
    known = body.analysis.definitions
    test, one, other = (known.get(operand.text) for operand in made.operands)
    if test is None or one is None or other is None:
        return None
    if (test.opcode, one.opcode, other.opcode) != ("icmp", "sub", "sub") or test.word not in _GREATER | _LESS:
        return None
    pair, swapped = (tuple(o.text for o in one.operands), tuple(o.text for o in reversed(one.operands)))
    tested = tuple(o.text for o in test.operands)
    if tuple(o.text for o in other.operands) != swapped or tested not in {pair, swapped}:
        return None
    x, y = one.operands
    return (x, y), (test.word in _GREATER) == (tested == pair)


def _from_extremes(body: FunctionBody, made: IRInstruction) -> _Pair | None:
    """Return x and y of ``max(x, y) - min(x, y)``, and whether the operands are in this order or exchanged."""
    high, low = (body.analysis.definitions.get(operand.text) for operand in made.operands)
    if high is None or low is None or high.opcode != "call" or low.opcode != "call":
        return None
    names = [one.word.rsplit(".", 1)[0] for one in (high, low)]
    if sorted(names) != ["llvm.umax", "llvm.umin"] or {o.text for o in high.operands} != {o.text for o in low.operands}:
        return None
    x, y = high.operands[:2]
    return (x, y), names[0] == "llvm.umax"
