"""A fault in words: which thread, which access, of what, on which line."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from metalnb.errors import KernelFault
from metalnb.msl.text.scanned_cell import MAIN

from ...base import Grid
from ...unit import Unit
from .checks import unit_of
from .lines import SourcePlace, loop_places, places
from .module_analysis import Analysis
from .proofs.launch_facts import LaunchFacts
from .proofs.pointers import Access
from .watch_table import ELEMENTS, THREADS

__all__ = ["Recorded", "explained", "stopped"]

_FAR = 1 << 24  # below 0: what is further was no small step too far
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class _Memory:
    """What an access was meant for, and where in it; a count of -1 where that is not known."""

    name: str
    space: str
    index: int
    count: int


class Recorded(NamedTuple):
    """A fault as the kernel has recorded it: which access, and a word of the table."""

    access: int
    word: int


def _wrapped(memory: _Memory) -> str:
    """Say of what number below 0 an index was made, if that is what it looks like."""
    below = memory.index - (1 << 32)
    return f", which is {below} in a uint" if -_FAR <= below < 0 and memory.count < 1 << 31 else ""


def explained(
    unit: Unit, analysis: Analysis, fault: Recorded, addresses: list[int], facts: LaunchFacts, threadgroup: Grid,
    printed: Callable[[], str],
) -> KernelFault:  # fmt: skip
    """Return a fault in words.

    Parameters
    ----------
    addresses : list of int
        Of the arguments, where an access may have been meant for several.
    printed : callable
        Compiles the kernel once more and returns clang's intermediate code, with lines.
    """
    access = analysis.accesses[fault.access]
    found = places(printed(), analysis.module, analysis.roots, analysis.accesses, _owner(unit)).get(access.number)
    file, line, column, text = _at(unit, found)
    thread, group = _thread(fault.word // ELEMENTS % THREADS, facts, threadgroup)
    memory = _memory(unit, analysis, access, fault.word % ELEMENTS, addresses, facts, text[max(column - 1, 0) :])
    where = f"{file}:{line}:{column}" if line else file
    name = unit.signature.name
    elements = "1 element" if memory.count == 1 else f"{memory.count:,} elements"
    who = f"thread {thread} of threadgroup {group}" if thread else "a thread"
    index: int | None = memory.index
    if memory.count < 0:
        message = f"{name}, {where}: {who} {access.kind} by a pointer that is in none of its buffers."
    elif 0 <= memory.index < memory.count:  # more than the word has room for
        message, index = f"{name}, {where}: {who} {access.kind} far beyond {memory.name}, which has {elements}.", None
    else:
        what = f"{memory.name}[{memory.index}]{_wrapped(memory)}"
        message = f"{name}, {where}: {who} {access.kind} {what}; {memory.name} has {elements}."
    if memory.space not in {"thread", "threadgroup"} and thread and 0 <= memory.count <= max(thread):
        message += " Pass grid=…, or guard: if (i >= n) return;"
    if text:
        message += f"\n  {line} | {text}\n  {' ' * len(str(line))} | {' ' * (column - 1)}^"
    return KernelFault(
        message, kind=access.kind, line=line or None, column=column if line else None, thread=thread,
        name=memory.name, index=index,
    )  # fmt: skip


def stopped(
    unit: Unit, analysis: Analysis, heads: Collection[int], reason: str, printed: Callable[[], str],
) -> KernelFault:  # fmt: skip
    """Return the fault of a dispatch that was stopped.

    Parameters
    ----------
    heads : collection of int
        The loops that can be stopped.
    reason : str
        ``after 5.0 s``, ``by an interrupt``.
    """
    found = loop_places(printed(), analysis.module, heads, _owner(unit))
    file, line, column, text = _at(unit, found[0] if found else None)
    where = f" in the loop at {file}:{line}:{column}" if line else ""
    message = f"{unit.signature.name}: stopped {reason}{where}"
    if text:
        message += f"\n  {line} | {text}\n  {' ' * len(str(line))} | {' ' * (column - 1)}^"
    return KernelFault(message, kind="stopped", line=line or None, column=column if line else None)


def _owner(unit: Unit) -> Callable[[str], bool]:
    return lambda file: file == MAIN or file in unit.headers


def _at(unit: Unit, found: SourcePlace | None) -> tuple[str, int, int, str]:
    """Return file, line, column and text of a place, as the author wrote them."""
    if found is None:
        return unit.cell.name, 0, 0, ""
    cell = unit.cell if found.file == MAIN else unit.headers[found.file]
    told = cell.diagnostic(found.line, found.column, "", "")
    return told.file, told.line, told.column, told.text


def _thread(number: int, facts: LaunchFacts, threadgroup: Grid) -> tuple[Grid | None, Grid | None]:
    """Return a thread's position in the grid and its threadgroup's, from its number; None where that is too large."""
    width, height, depth = facts.grid
    if width * height * depth > THREADS:
        return None, None
    x, y, z = number % width, number // width % height, number // (width * height)
    if facts.threadgroup == threadgroup:
        return (x, y, z), (x // threadgroup[0], y // threadgroup[1], z // threadgroup[2])
    # Threadgroups that were dispatched as rows: the region says where they stand.
    numbers = memoryview(facts.scalars[len(facts.sizes) - 1]).cast("I").tolist()
    first, size = numbers[:3], numbers[3:6]
    row = x % facts.threadgroup[0]
    group = [x // facts.threadgroup[0] + first[0], y + first[1], z + first[2]]
    local = [row % size[0], row // size[0] % size[1], row // (size[0] * size[1])]
    x, y, z = (g * t + n for g, t, n in zip(group, threadgroup, local, strict=True))
    return (x, y, z), (group[0], group[1], group[2])


def _memory(
    unit: Unit, analysis: Analysis, access: Access, element: int, addresses: list[int], facts: LaunchFacts, text: str,
) -> _Memory:  # fmt: skip
    place = analysis.roots.place(access.pointer)
    number = analysis.argument(place.root)
    named = _NAME.match(text)
    if number is None and analysis.size(place.root, facts) is None:  # of several: by the address
        known = analysis.buffers(place.root)
        mine = [base if n in known else 0 for n, base in enumerate(addresses)]
        number, offset = _nearest(mine, facts.sizes, element)
        if number is None:
            return _Memory(named[0] if named else "a pointer", "device", 0, -1)
    else:
        unit_bytes, fixed = unit_of(place)
        offset = (element - (ELEMENTS if element >= ELEMENTS // 2 else 0)) * unit_bytes + fixed
    if number is not None:
        param = unit.signature.params[number]
        step = param.type.size or analysis.step(place.root) or access.size
        return _Memory(param.name, param.space, offset // step, facts.sizes[number] // step)
    size, step = analysis.size(place.root, facts) or 0, analysis.step(place.root) or access.size
    return _Memory(named[0] if named else "an array", "thread", offset // step, size // step)


def _nearest(addresses: list[int], sizes: Sequence[int], address: int) -> tuple[int | None, int]:
    """Return the buffer that an address is nearest to, and the bytes from its start; both as far as a word tells."""
    best: tuple[int, int | None, int] = (ELEMENTS, None, 0)
    for number, (base, size) in enumerate(zip(addresses, sizes, strict=True)):
        if base:
            ahead = (address - base) % ELEMENTS
            ahead -= ELEMENTS if ahead >= ELEMENTS // 2 else 0
            best = min(best, (max(-ahead, ahead - size, 0), number, ahead), key=lambda b: b[0])
    return best[1], best[2]
