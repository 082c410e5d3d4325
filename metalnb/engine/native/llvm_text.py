"""LLVM's text of a kernel: how it spells what is looked for there, and integer divisions that do not trap.

x86 ends the process at a division by 0, and at one of the smallest integer by -1. As on the engine ``cpu``, both are
as if the divisor were 1.
"""

from __future__ import annotations

import re

__all__ = ["NAME", "divided", "lanes_of", "place_in", "with_divisors"]

NAME = r'%(?:"[^"]*"|[-\w.$]+)'
_PLACE = re.compile(r", (!dbg ![0-9]+)")
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
    lines = []
    for i, line in enumerate(text.splitlines()):
        if (m := _DIVISION.match(line)) is None:
            lines.append(line)
            continue
        kind, by, place = m["type"], m["by"], place_in(line)
        lanes, scalar = lanes_of(kind)
        truth = f"<{lanes} x i1>" if lanes else "i1"

        def constant(value: int, scalar: str = scalar, lanes: int = lanes) -> str:
            return f"splat ({scalar} {value})" if lanes else str(value)

        odd, divisor = f'%"$odd {i}"', f'%"$by {i}"'
        lines.append(f"  {odd} = icmp eq {kind} {by}, {constant(0)}{place}")
        if m["how"].startswith("s"):
            least = constant(-(1 << int(scalar[1:]) - 1))
            zero, odd = odd, f'%"$any {i}"'
            lines += [
                f'  %"$one {i}" = icmp eq {kind} {by}, {constant(-1)}{place}',
                f'  %"$least {i}" = icmp eq {kind} {m["what"]}, {least}{place}',
                f'  %"$both {i}" = and {truth} %"$one {i}", %"$least {i}"{place}',
                f'  {odd} = or {truth} {zero}, %"$both {i}"{place}',
            ]
        lines += [
            f"  {divisor} = select {truth} {odd}, {kind} {constant(1)}, {kind} {by}{place}",
            f"  {m['to']} = {m['how']} {kind} {m['what']}, {divisor}{m['rest']}",
        ]
    return "\n".join(lines) + "\n"
