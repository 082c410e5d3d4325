"""Make integer divisions in the LLVM IR of a kernel not trap.

On x86, dividing by 0, or the smallest integer by -1, ends the process. On this engine both divide by 1 instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..llvm.instructions import IRInstruction
from ..llvm.llvm_lines import lines_of

__all__ = ["with_divisors"]

_DIVISIONS = frozenset({"sdiv", "udiv", "srem", "urem"})


def with_divisors(text: str) -> str:
    """Return IR that divides by 1 where a division would trap."""
    lines: list[str] = []
    for i, (line, made) in enumerate(lines_of(text, _DIVISIONS)):
        if made is not None and made.operands[1].text.startswith("%"):
            lines += _guarded(made, i)
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _guarded(made: IRInstruction, i: int) -> Iterator[str]:
    """Yield a division, preceded by instructions that select its divisor; their names end in the line number."""
    kind, place = made.type, made.debug_suffix
    what, by = (operand.text for operand in made.operands)
    vector = kind.kind == "vector"
    truth = f"<{kind.count} x i1>" if vector else "i1"

    def constant(value: int) -> str:
        return f"splat ({kind.element} {value})" if vector else str(value)

    odd, divisor = f'%"$odd {i}"', f'%"$by {i}"'
    yield f"  {odd} = icmp eq {kind} {by}, {constant(0)}{place}"
    if made.opcode in {"sdiv", "srem"}:
        zero, odd = odd, f'%"$any {i}"'
        least = constant(-(1 << kind.element.bits - 1))
        yield f'  %"$one {i}" = icmp eq {kind} {by}, {constant(-1)}{place}'
        yield f'  %"$least {i}" = icmp eq {kind} {what}, {least}{place}'
        yield f'  %"$both {i}" = and {truth} %"$one {i}", %"$least {i}"{place}'
        yield f'  {odd} = or {truth} {zero}, %"$both {i}"{place}'
    yield f"  {divisor} = select {truth} {odd}, {kind} {constant(1)}, {kind} {by}{place}"
    yield f"  {made.result} = {made.opcode} {kind} {what}, {divisor}{made.metadata}"
