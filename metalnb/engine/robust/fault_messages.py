"""Describe a fault: the thread, the access, the memory and the line."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from metalnb.errors import KernelFault, MetalnbWarning
from metalnb.msl.text.scanned_cell import MAIN

from ..llvm.debug_locations import SourceLocation, location_in
from ..llvm.instructions import IRModule
from ..unit import Unit
from .accesses import Access
from .kernel_analysis import Analysis
from .launch_facts import Grid
from .memory_roots import Root

__all__ = ["RecordedFault", "describe_fault", "describe_stop", "warn_unchecked"]

_MAX_NEGATIVE = 1 << 24  # elements below 0; an index further off is not reported as negative
_NAME = re.compile(r"[A-Za-z_]\w*")


class RecordedFault(NamedTuple):
    """A fault as recorded by the kernel.

    Attributes
    ----------
    access : int
        The number of the access.
    offset : int
        Bytes from the root's start, signed; or an address, if the access may have several roots.
    thread, group : tuple of 3 int
        The positions of the thread in the grid and of its threadgroup.
    """

    access: int
    offset: int
    thread: Grid
    group: Grid


@dataclass(frozen=True, slots=True)
class _Memory:
    """The memory that an access was meant for, the element's index, and the number of elements (-1 if unknown)."""

    name: str
    space: str
    index: int
    count: int


def describe_fault(
    unit: Unit, module: IRModule, analysis: Analysis, fault: RecordedFault, sizes: Sequence[int],
    addresses: Sequence[int],
) -> KernelFault:  # fmt: skip
    """Return the description of a fault.

    Parameters
    ----------
    unit : Unit
    module : IRModule
        A module with line tables.
    analysis : Analysis
        The analysis of the module.
    fault : RecordedFault
    sizes, addresses : sequence of int
        The arguments' sizes in bytes, and their addresses.
    """
    access = analysis.accesses[fault.access]
    file, line, column, text = _resolve(unit, _access_location(unit, module, analysis, access))
    memory = _memory(unit, analysis, access, fault.offset, sizes, addresses, text[max(column - 1, 0) :])
    where = f"{file}:{line}:{column}" if line else file
    elements = "1 element" if memory.count == 1 else f"{memory.count:,} elements"
    message = f"{unit.signature.name}, {where}: thread {fault.thread} of threadgroup {fault.group} {access.kind} "
    if memory.count < 0:
        message += "through a pointer outside all of its buffers."
    else:
        message += f"{memory.name}[{memory.index}]{_wrap_note(memory)}; {memory.name} has {elements}."
    if memory.space not in {"thread", "threadgroup"} and 0 <= memory.count <= max(fault.thread):
        message += " Pass grid=…, or guard: if (i >= n) return;"
    return KernelFault(
        message + _source_excerpt(line, column, text), kind=access.kind, line=line or None,
        column=column if line else None, thread=fault.thread, name=memory.name, index=memory.index,
    )  # fmt: skip


def describe_stop(
    unit: Unit, module: IRModule, analysis: Analysis, headers: Collection[str], reason: str,
) -> KernelFault:  # fmt: skip
    """Return the fault of a dispatch that was stopped.

    Parameters
    ----------
    unit : Unit
    module : IRModule
        A module with line tables.
    analysis : Analysis
        The analysis of the module.
    headers : collection of str
        The loops that can be stopped.
    reason : str
        ``after 5.0 s``, ``by an interrupt``.
    """
    found = {location for header in headers if (location := _loop_location(unit, module, analysis, header))}
    loops = [_resolve(unit, location) for location in sorted(found)]
    *others, last = [f"{file}:{line}:{column}" for file, line, column, _ in loops] or [""]
    where = f" in one of the loops at {', '.join(others)} and {last}" if others else f" in the loop at {last}"
    message = f"{unit.signature.name}: stopped {reason}{where if loops else ''}"
    message += "".join(_source_excerpt(line, column, text) for _, line, column, text in loops)
    lines = {(file, line) for file, line, _, _ in loops}
    return KernelFault(
        message, kind="stopped", line=loops[0][1] if len(lines) == 1 else None,
        column=loops[0][2] if len(loops) == 1 else None,
    )  # fmt: skip


def warn_unchecked(unit: Unit, reason: Exception) -> None:
    """Warn that a kernel runs without the requested checks."""
    name = unit.signature.name
    message = f"{name}: its accesses are not checked, and no timeout stops it: {reason}"
    warnings.warn(message, MetalnbWarning, stacklevel=2)


def _source_excerpt(line: int, column: int, text: str) -> str:
    return f"\n  {line} | {text}\n  {' ' * len(str(line))} | {' ' * (column - 1)}^" if text else ""


def _wrap_note(memory: _Memory) -> str:
    """Name the negative number that seems to have wrapped to this unsigned index, if any."""
    wrapped = memory.index - (1 << 32)
    return f", which is {wrapped} in a uint" if -_MAX_NEGATIVE <= wrapped < 0 and memory.count < 1 << 31 else ""


def _is_authors(unit: Unit) -> Callable[[str], bool]:
    return lambda file: file == MAIN or file in unit.headers


def _access_location(unit: Unit, module: IRModule, analysis: Analysis, access: Access) -> SourceLocation | None:
    """Return an access's source location; the column is the pointer's if both are on one line."""
    location = location_in(module, access.inst.debug_location, _is_authors(unit))
    pointer = next((inst for inst in analysis.roots.function if inst.result == access.pointer), None)
    pointer_location = location_in(module, pointer.debug_location, _is_authors(unit)) if pointer else None
    return pointer_location if pointer_location and location and pointer_location[:2] == location[:2] else location


def _loop_location(unit: Unit, module: IRModule, analysis: Analysis, header: str) -> SourceLocation | None:
    """Return a loop's source location: that of its back edge, as the header may hold part of its condition."""
    blocks = analysis.roots.function.blocks
    ends = [blocks[latch][-1] for latch in analysis.flow.loops[header].latches]
    debug_locations = (inst.debug_location for inst in (*ends, *blocks[header]) if inst.debug_location)
    locations = (location_in(module, debug_location, _is_authors(unit)) for debug_location in debug_locations)
    return next((location for location in locations if location), None)


def _resolve(unit: Unit, location: SourceLocation | None) -> tuple[str, int, int, str]:
    """Return the file, line, column and text of a location, as the author wrote them."""
    if location is None:
        return unit.cell.name, 0, 0, ""
    cell = unit.cell if location.file == MAIN else unit.headers[location.file]
    diagnostic = cell.diagnostic(location.line, location.column, "", "")
    return diagnostic.file, diagnostic.line, diagnostic.column, diagnostic.text


def _memory(
    unit: Unit, analysis: Analysis, access: Access, offset: int, sizes: Sequence[int], addresses: Sequence[int],
    text: str,
) -> _Memory:  # fmt: skip
    address = analysis.roots.address(access.pointer)
    root, match = analysis.roots.root(address.root), _NAME.match(text)
    name = match[0] if match else ""
    if root is None:
        roots = [analysis.roots.root(source) for source in analysis.roots.sources(address.root)]
        numbers = [source.number for source in roots if source is not None and source.kind == "argument"]
        root, offset = _nearest(numbers, addresses, sizes, offset)
        if root is None:
            return _Memory(name or "a pointer", "device", 0, -1)
    step = _element_size(analysis, root) or access.size
    if root.kind == "argument":
        param, size = unit.signature.params[root.number], sizes[root.number]
        step = param.type.size or step
        return _Memory(param.name, param.space, _first_outside(access, offset, size) // step, size // step)
    return _Memory(name or "an array", "thread", _first_outside(access, offset, root.size) // step, root.size // step)


def _first_outside(access: Access, offset: int, size: int) -> int:
    """Return the first byte of an access that is outside its memory; the access may start inside."""
    return size if 0 <= offset < size < offset + access.size else offset


def _element_size(analysis: Analysis, root: Root) -> int:
    """Return the element size of a root, inferred from its accesses; 0 if unknown."""
    pointer_addresses = (analysis.roots.address(access.pointer) for access in analysis.accesses)
    root_addresses = (address for address in pointer_addresses if analysis.roots.root(address.root) == root)
    return max((step for address in root_addresses for _, step in address.terms), default=0)


def _nearest(
    numbers: Sequence[int], addresses: Sequence[int], sizes: Sequence[int], address: int,
) -> tuple[Root | None, int]:  # fmt: skip
    """Return the argument nearest to an address, and the offset from its start in bytes."""
    best: tuple[float, int] = float("inf"), -1
    for number in numbers:
        if addresses[number]:
            offset = address - addresses[number]
            best = min(best, (max(-offset, offset - sizes[number], 0), number))
    number = best[1]
    return (None, 0) if number < 0 else (Root("argument", number, 0, ""), address - addresses[number])
