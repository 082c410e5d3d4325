"""LLVM's text of a kernel: how it spells what is looked for there, and integer divisions that do not trap.

x86 ends the process at a division by 0, and at one of the smallest integer by -1. As on the engine ``cpu``, both are
as if the divisor were 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..llvm.instructions import IRInstruction
from ..llvm.llvm_lines import lines_of

__all__ = ["NAME", "divided", "lanes_of", "place_in", "with_divisors"]

NAME = r'%(?:"[^"]*"|[-\w.$]+)'
_PLACE = re.compile(r", (!dbg ![0-9]+)")
_DIVISIONS = frozenset({"sdiv", "udiv", "srem", "urem"})
_DIVISION = re.compile(
    rf"  (?P<to>{NAME}) = (?P<how>[su](?:div|rem)) (?:exact )?(?P<type>i\d+|<\d+ x i\d+>) (?P<what>[^,]+), "
    rf"(?P<by>{NAME})(?P<rest>.*)"
)


def place_in(line: str) -> str:
    """Return an instruction's debug location, as it is written behind a call beside it."""
    found = _PLACE.search(line)
    return f", {found[1]}" if found else ""


def lanes_of(kind: str) -> tuple[int, str]:
    """Return how many lanes a type has, 0 for a scalar, and the type of one."""
    m = re.fullmatch(r"<(\d+) x (\w+)>", kind)
    return (int(m[1]), m[2]) if m else (0, kind)


def divided(line: str) -> tuple[str, str] | None:
    """Return the type and the divisor of an integer division by what is no constant."""
    m = _DIVISION.match(line)
    return (m["type"], m["by"]) if m else None


def with_divisors(text: str) -> str:
    """Return a text that divides by 1 where it would trap."""
    lines: list[str] = []
    for i, (line, made) in enumerate(lines_of(text, _DIVISIONS)):
        if made is not None and made.operands[1].text.startswith("%"):
            lines += _guarded(made, i)
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _guarded(made: IRInstruction, i: int) -> Iterator[str]:
    """Yield a division, and before it what chooses its divisor; the names have the line's number."""
    kind, place = made.type, made.beside
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
