"""Keep the integer divisions in a kernel's LLVM IR from trapping.

On x86, dividing by 0, or the smallest integer by -1, ends the process. On this engine both divide by 1 instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..llvm.instructions import IRInstruction
from ..llvm.llvm_lines import parse_lines

__all__ = ["guard_divisions"]

_DIVISIONS = frozenset({"sdiv", "udiv", "srem", "urem"})


def guard_divisions(text: str) -> str:
    """Return IR that divides by 1 where a division would trap."""
    lines: list[str] = []
    for i, (line, inst) in enumerate(parse_lines(text, _DIVISIONS)):
        if inst is not None and inst.operands[1].text.startswith("%"):
            lines += _guard_division(inst, i)
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _guard_division(inst: IRInstruction, i: int) -> Iterator[str]:
    """Yield a division, preceded by instructions that select its divisor; their names end in the line number."""
    ir_type, suffix = inst.type, inst.debug_suffix
    dividend, divisor = (operand.text for operand in inst.operands)
    is_vector = ir_type.kind == "vector"
    flag_type = f"<{ir_type.count} x i1>" if is_vector else "i1"

    def constant(value: int) -> str:
        return f"splat ({ir_type.element} {value})" if is_vector else str(value)

    traps, safe_divisor = f'%"$odd {i}"', f'%"$by {i}"'
    yield f"  {traps} = icmp eq {ir_type} {divisor}, {constant(0)}{suffix}"
    if inst.opcode in {"sdiv", "srem"}:
        zero, traps = traps, f'%"$any {i}"'
        least = constant(-(1 << ir_type.element.bits - 1))
        yield f'  %"$one {i}" = icmp eq {ir_type} {divisor}, {constant(-1)}{suffix}'
        yield f'  %"$least {i}" = icmp eq {ir_type} {dividend}, {least}{suffix}'
        yield f'  %"$both {i}" = and {flag_type} %"$one {i}", %"$least {i}"{suffix}'
        yield f'  {traps} = or {flag_type} {zero}, %"$both {i}"{suffix}'
    yield f"  {safe_divisor} = select {flag_type} {traps}, {ir_type} {constant(1)}, {ir_type} {divisor}{suffix}"
    yield f"  {inst.result} = {inst.opcode} {ir_type} {dividend}, {safe_divisor}{inst.metadata}"
