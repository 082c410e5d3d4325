"""Turn the raw facts of a validated run into findings: faults and notes, each with its position in the cell."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from metalnb.engine.base import Bytes, Grid
from metalnb.engine.cpu.debug_lines import Line
from metalnb.engine.cpu.validated.validation_facts import BufferAccesses, Fact, Facts, Origin
from metalnb.engine.unit import Unit
from metalnb.msl.signature import Param

from .access_report import Finding, Party

__all__ = ["Judge", "has_padding", "in_grid"]

Truth = np.ndarray[Any, np.dtype[np.bool]]

_KINDS = {"wild": "beyond", "array index": "beyond", "own never written": "never written", "never set": "never written"}
_UNSET = {"f4": 0xFFFFFFFF, "f2": 0xFFFF}  # the fill pattern of uninitialized variables: engine/cpu/runtime/hooks.h


def has_padding(param: Param, size: int) -> bool:
    """Return whether every fourth number of an argument, of ``size`` bytes each, is padding, as in a ``float3``."""
    layout = param.type.layout
    return layout is not None and layout.shape[-1:] == (3,) != layout.stride[-1:] and layout.dtype.itemsize == size


class Judge:
    """Judges one validated run.

    Parameters
    ----------
    unit : Unit
    grid, threadgroup : tuple of 3 int
    facts : Facts
    initial : mapping of str to numpy.ndarray
        uint8: the contents of each array before the call.
    complete : bool
        Whether all threadgroups ran.
    """

    def __init__(
        self, unit: Unit, grid: Grid, threadgroup: Grid, facts: Facts, initial: Mapping[str, Any], *, complete: bool,
    ) -> None:  # fmt: skip
        self.unit, self.grid, self.threadgroup, self.facts = unit, grid, threadgroup, facts
        self.initial, self.complete = initial, complete
        self.outputs = [p for p in unit.signature.buffers if p.writable and p.name in facts.buffers]

    def contents(self, name: str) -> Bytes:
        """Return a buffer's facts after the run."""
        return self.facts.buffers[name].contents

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings: faults, then notes."""
        by_cause: dict[object, Finding] = {}
        facts = [f for f in self.facts.findings if f.kind != "own never written" or not self._has_unset_input]
        for finding in (*map(self._finding, facts), *self._not_finite(), *self._missing_writes()):
            other_party = finding.other and (finding.other.line, finding.other.written)
            by_cause.setdefault((finding.kind, finding.line, finding.name, other_party), finding)
        return tuple(sorted(by_cause.values(), key=lambda f: not f.is_fault))

    @functools.cached_property
    def unwritten(self) -> dict[str, Truth]:
        """The elements that no thread wrote, for each writable array without atomics."""
        params = [p for p in self.outputs if not self.facts.buffers[p.name].atomics]
        return {p.name: self.written(p.name, (-1,), p.type.size)[0] for p in params}

    def written(self, name: str, shape: tuple[int, ...], size: int) -> tuple[Truth, Truth]:
        """Return which elements of an array no thread wrote, and which were written again before they were read.

        A ``float3`` counts as written when any component is, because its fourth component is padding.
        """
        buffer = self.facts.buffers[name]
        per = max(1, size // buffer.unit)

        def per_element(flags: Truth) -> Truth:
            if size < buffer.unit:
                flags = np.repeat(flags, buffer.unit // size)
            if per > 1:
                flags = np.logical_or.reduce(flags[: flags.size // per * per].reshape(-1, per), axis=1)
            return flags[: buffer.contents.size // size].reshape(shape)

        return ~per_element(buffer.writers >= buffer.oldest), per_element(buffer.overwritten != 0)

    def writer(self, name: str, byte: int) -> tuple[int, int, Line | None]:
        """Return the last thread that wrote a byte of an array, its threadgroup and the line; -1 if none wrote it."""
        buffer = self.facts.buffers[name]
        mark = buffer.writers[byte // buffer.unit]
        if mark < buffer.oldest:
            return -1, -1, None
        thread, group, location = self.facts.writer(int(mark))
        return int(in_grid(thread, group, self.grid, self.threadgroup)), group, location

    def location(self, line: Line | None) -> tuple[int, int, str]:
        """Return the line and column in the author's text, and the text of that line."""
        if line is None:
            return 0, 0, ""
        cell = self.unit.headers.get(line.file, self.unit.cell)
        return line.line, cell.original_column(line.line, line.column), cell.edited.line(line.line)

    def _finding(self, fact: Fact) -> Finding:
        line, column, source = self.location(fact.line)
        party = None
        if fact.kind in {"race", "written twice"}:
            other_line = self.location(fact.other_line)
            thread = int(in_grid(fact.other_thread, fact.other_threadgroup, self.grid, self.threadgroup))
            value = fact.values[1] if fact.values else None
            party = Party(other_line[0], other_line[1], thread, fact.other_threadgroup, fact.other_written, value)
        elif fact.kind == "barrier" and fact.other_line is None:
            party = Party(line, column, fact.other_thread, fact.threadgroup)
        has_index = fact.kind in {"array index", "lane"} or bool(fact.name)
        values: tuple[float, ...] = ()
        if fact.kind in {"shift", "endless"}:
            values = (fact.offset,)
        elif fact.kind == "conversion" and fact.value == fact.value:
            values = (fact.value,)
        buffer = self.facts.buffers.get(fact.name)
        return Finding(
            kind=_KINDS.get(fact.kind, fact.kind), line=line, column=column, thread=fact.thread,
            threadgroup=fact.threadgroup, name=fact.name or _source_name(fact.variable, source),
            index=fact.offset // fact.element if has_index else None, written=fact.written, other=party,
            count=fact.count, source=source, operands=values, value=fact.values[0] if fact.values else None,
            size=buffer.contents.size // fact.element if buffer else fact.other_thread if fact.kind == "lane" else 0,
            others=buffer.others if buffer and fact.kind == "race" else (),
            operation="mem_none" if fact.kind == "race" and fact.value else "",
        )  # fmt: skip

    @functools.cached_property
    def _has_unset_input(self) -> bool:
        """Whether an argument already contains the fill pattern of uninitialized variables."""
        for param in self.unit.signature.buffers:
            buffer = self.facts.buffers.get(param.name)
            kind = _float_type(param, buffer) if buffer else None
            if kind and (self.initial[param.name].view(f"u{kind[1]}") == _UNSET[kind]).any():
                return True
        return False

    # ---- Results that are not finite.

    def _not_finite(self) -> Iterator[Finding]:
        for param in self.outputs:
            buffer = self.facts.buffers[param.name]
            kind = _float_type(param, buffer)
            if kind is None:
                continue
            final, initial = buffer.contents.view(kind), self.initial[param.name].view(kind)
            is_new = ~np.isfinite(final) & np.isfinite(initial)
            if has_padding(param, int(kind[1])):
                is_new[3::4] = False
            positions = np.flatnonzero(is_new)
            if not positions.size:
                continue
            is_unset = final.view(f"u{kind[1]}") == _UNSET[kind]
            nans, infinities = (positions[test(final[positions])][:1].tolist() for test in (np.isnan, np.isinf))
            for i in dict.fromkeys([*nans, *infinities]):
                yield from self._bad_value(param, i * int(kind[1]), float(final[i]), is_unset=bool(is_unset[i]))

    def _bad_value(self, param: Param, byte: int, value: float, *, is_unset: bool) -> Iterator[Finding]:
        """Yield the finding for a bad value in an output; it names the operation that produced the value."""
        thread, group, location = self.writer(param.name, byte)
        infinite = not np.isnan(value)
        index = byte // param.type.size
        if is_unset and not self._has_unset_input:
            if not any(f.kind == "own never written" for f in self.facts.findings):  # that finding names the source
                line, column, source = self.location(location)
                yield Finding("never written", line, column, thread, group, source=source)
            return
        origin = self._origin(thread, infinite)
        if origin is None:
            return
        yield self._origin_finding(origin, thread, param.name, index)
        operands = origin[1].operands
        if not infinite and any(np.isinf(operands)):
            infinity = self._origin(origin[0], infinite=True)
            if infinity is not None:
                yield self._origin_finding(infinity, thread, param.name, index)

    def _origin(self, thread: int, infinite: bool) -> tuple[int, Origin] | None:
        """Find where a NaN or an infinity was produced: by this thread, else in its threadgroup, else anywhere."""
        for kind in (infinite, True) if not infinite else (True,):
            producers = self.facts.threads_with(kind)
            if producers.size:
                group = _group_of(thread, self.grid, self.threadgroup)
                nearby = producers[_group_of(producers, self.grid, self.threadgroup) == group]
                first = int(thread if thread in producers else nearby[0] if nearby.size else producers[0])
                return first, self.facts.origin(first, kind)
        return None

    def _origin_finding(self, produced: tuple[int, Origin], writer: int, name: str, index: int) -> Finding:
        thread, origin = produced
        line, column, source = self.location(origin.line)
        kind = "nan" if origin.result != origin.result else "infinity"
        group = int(_group_of(thread, self.grid, self.threadgroup))
        writer_party = Party(0, 0, writer, int(_group_of(writer, self.grid, self.threadgroup)), written=True)
        return Finding(
            kind, line, column, thread, group, name, index, other=None if writer == thread else writer_party,
            source=source, operation=origin.operation, operands=origin.operands,
        )  # fmt: skip

    # ---- Elements that no thread wrote.

    def _missing_writes(self) -> Iterator[Finding]:
        if not self.complete:
            return
        written_names = {p.name for p in self.outputs if p.use not in {"none", "read"}}
        for name, unwritten in self.unwritten.items():
            if name in written_names and unwritten.any() and not self.facts.buffers[name].reads:
                index, count = int(unwritten.argmax()), int(unwritten.sum())
                yield Finding("missing write", 0, 0, -1, -1, name, index, count=count, size=unwritten.size)


def _source_name(name: str, source: str) -> str:
    """Return a variable's name as the source spells it: LLVM numbers variables of the same name."""
    words = re.findall(r"\w+", source)
    return name if not name or name in words else re.sub(r"\d+$", "", name)


def _float_type(param: Param, buffer: BufferAccesses) -> str | None:
    """Return the NumPy type of a buffer's components if they are floats, else None."""
    layout = param.type.layout
    kind = {"float": "f4", "half": "f2"}.get(layout.scalar) if layout else None
    return kind if kind and buffer.contents.size % int(kind[1]) == 0 else None


def _group_of(thread: Any, grid: Grid, threadgroup: Grid) -> Any:
    """Return threads' threadgroups from their linear positions in the grid."""
    position = (thread % grid[0], thread // grid[0] % grid[1], thread // (grid[0] * grid[1]))
    x, y, z = (a // t for a, t in zip(position, threadgroup, strict=True))
    columns, rows, _ = (-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
    return (z * rows + y) * columns + x


def in_grid(index: Any, group: Any, grid: Grid, threadgroup: Grid) -> Any:
    """Convert linear positions in threadgroups to linear positions in the grid; numbers, or arrays of them."""
    index, group = np.asarray(index, np.int64), np.asarray(group, np.int64)
    groups = [-(-g // t) for g, t in zip(grid, threadgroup, strict=True)]
    position = (group % groups[0], group // groups[0] % groups[1], group // (groups[0] * groups[1]))
    size = [np.minimum(t, g - a * t) for a, g, t in zip(position, grid, threadgroup, strict=True)]
    local = (index % size[0], index // size[0] % size[1], index // (size[0] * size[1]))
    x, y, z = (a * t + i for a, t, i in zip(position, threadgroup, local, strict=True))
    return (z * grid[1] + y) * grid[0] + x
