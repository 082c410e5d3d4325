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

__all__ = ["Judge", "in_grid"]

Truth = np.ndarray[Any, np.dtype[np.bool]]

_KINDS = {"wild": "beyond", "array index": "beyond", "own never written": "never written", "never set": "never written"}
_UNSET = {"f4": 0xFFFFFFFF, "f2": 0xFFFF}  # the fill pattern of uninitialised variables: engine/cpu/runtime/hooks.h


class Judge:
    """Judges one validated run.

    Parameters
    ----------
    unit : Unit
    grid, threadgroup : tuple of 3 int
    facts : Facts
    before : mapping of str to numpy.ndarray
        uint8: the contents of each array before the call.
    complete : bool
        Whether all threadgroups ran.
    """

    def __init__(
        self, unit: Unit, grid: Grid, threadgroup: Grid, facts: Facts, before: Mapping[str, Any], *, complete: bool,
    ) -> None:  # fmt: skip
        self.unit, self.grid, self.threadgroup, self.facts = unit, grid, threadgroup, facts
        self.before, self.complete = before, complete
        self.outputs = [p for p in unit.signature.buffers if p.writable and p.name in facts.buffers]

    def contents(self, name: str) -> Bytes:
        """Return a buffer's facts after the run."""
        return self.facts.buffers[name].contents

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings: faults, then notes."""
        found: dict[object, Finding] = {}
        facts = [f for f in self.facts.findings if f.kind != "own never written" or not self._given_unset]
        for each in (*map(self._finding, facts), *self._not_finite(), *self._missing()):
            other = each.other and (each.other.line, each.other.written)
            found.setdefault((each.kind, each.line, each.name, other), each)
        return tuple(sorted(found.values(), key=lambda f: not f.is_fault))

    @functools.cached_property
    def unwritten(self) -> dict[str, Truth]:
        """The elements that no thread wrote, for each writable array without atomics."""
        plain = [p for p in self.outputs if not self.facts.buffers[p.name].atomics]
        return {p.name: self.written(p.name, (-1,), p.type.size)[0] for p in plain}

    def written(self, name: str, shape: tuple[int, ...], size: int) -> tuple[Truth, Truth]:
        """Return which elements of an array no thread wrote, and which were written again before they were read.

        A float3 counts as written when any component is: its fourth is padding.
        """
        seen = self.facts.buffers[name]
        per = max(1, size // seen.unit)

        def elements(flags: Truth) -> Truth:
            if size < seen.unit:
                flags = np.repeat(flags, seen.unit // size)
            if per > 1:
                flags = np.logical_or.reduce(flags[: flags.size // per * per].reshape(-1, per), axis=1)
            return flags[: seen.contents.size // size].reshape(shape)

        return ~elements(seen.writers >= seen.oldest), elements(seen.overwritten != 0)

    def writer(self, name: str, byte: int) -> tuple[int, int, Line | None]:
        """Return the last thread to write a byte of an array, its threadgroup, and where; -1 if none did."""
        seen = self.facts.buffers[name]
        mark = seen.writers[byte // seen.unit]
        if mark < seen.oldest:
            return -1, -1, None
        thread, group, place = self.facts.writer(int(mark))
        return int(in_grid(thread, group, self.grid, self.threadgroup)), group, place

    def place(self, line: Line | None) -> tuple[int, int, str]:
        """Return the line and column in the author's text, and the text of that line."""
        if line is None:
            return 0, 0, ""
        cell = self.unit.headers.get(line.file, self.unit.cell)
        return line.line, cell.edited.original_column(line.line, line.column), cell.edited.line(line.line)

    def _finding(self, fact: Fact) -> Finding:
        line, column, source = self.place(fact.place)
        other = None
        if fact.kind in {"race", "written twice"}:
            at = self.place(fact.other_place)
            thread = int(in_grid(fact.other_thread, fact.other_threadgroup, self.grid, self.threadgroup))
            value = fact.values[1] if fact.values else None
            other = Party(at[0], at[1], thread, fact.other_threadgroup, fact.other_written, value)
        elif fact.kind == "barrier" and fact.other_place is None:
            other = Party(line, column, fact.other_thread, fact.threadgroup)
        indexed = fact.kind in {"array index", "lane"} or bool(fact.name)
        given: tuple[float, ...] = ()
        if fact.kind in {"shift", "endless"}:
            given = (fact.offset,)
        elif fact.kind == "conversion" and fact.value == fact.value:
            given = (fact.value,)
        seen = self.facts.buffers.get(fact.name)
        return Finding(
            _KINDS.get(fact.kind, fact.kind), line, column, fact.thread, fact.threadgroup,
            fact.name or _spelled(fact.variable, source),
            fact.offset // fact.element if indexed else None, fact.written, other, fact.count, source,
            given=given, value=fact.values[0] if fact.values else None,
            size=seen.contents.size // fact.element if seen else fact.other_thread if fact.kind == "lane" else 0,
            others=seen.others if seen and fact.kind == "race" else (),
        )  # fmt: skip

    @functools.cached_property
    def _given_unset(self) -> bool:
        """Whether an argument already contains the fill pattern of uninitialised variables."""
        for param in self.unit.signature.buffers:
            seen = self.facts.buffers.get(param.name)
            kind = _floats(param, seen) if seen else None
            if kind and (self.before[param.name].view(f"u{kind[1]}") == _UNSET[kind]).any():
                return True
        return False

    # ---- Results that are not finite.

    def _not_finite(self) -> Iterator[Finding]:
        for param in self.outputs:
            seen = self.facts.buffers[param.name]
            kind = _floats(param, seen)
            if kind is None:
                continue
            now, then = seen.contents.view(kind), self.before[param.name].view(kind)
            bad = ~np.isfinite(now) & np.isfinite(then)
            if param.type.layout and param.type.layout.shape[-1:] == (3,) != param.type.layout.stride[-1:]:
                bad[3::4] = False  # padding of a float3
            new = np.flatnonzero(bad)
            if not new.size:
                continue
            unset = now.view(f"u{kind[1]}") == _UNSET[kind]
            for at in dict.fromkeys([*new[np.isnan(now[new])][:1].tolist(), *new[np.isinf(now[new])][:1].tolist()]):
                yield from self._made(param, at * int(kind[1]), float(now[at]), unset=bool(unset[at]))

    def _made(self, param: Param, byte: int, value: float, *, unset: bool) -> Iterator[Finding]:
        """Yield the finding for a bad value in an output: the operation that produced it."""
        thread, group, place = self.writer(param.name, byte)
        infinite = not np.isnan(value)
        index = byte // param.type.size
        if unset and not self._given_unset:
            if not any(f.kind == "own never written" for f in self.facts.findings):  # that one names the source
                line, column, source = self.place(place)
                yield Finding("never written", line, column, thread, group, source=source)
            return
        made = self._origin(thread, infinite)
        if made is None:
            return
        yield self._from(made, thread, param.name, index)
        operands = made[1].operands
        if not infinite and any(np.isinf(operands)):
            earlier = self._origin(made[0], infinite=True)
            if earlier is not None:
                yield self._from(earlier, thread, param.name, index)

    def _origin(self, thread: int, infinite: bool) -> tuple[int, Origin] | None:
        """Find where a NaN or an infinity was produced: by this thread, else in its threadgroup, else anywhere."""
        for kind in (infinite, True) if not infinite else (True,):
            made = self.facts.threads_with(kind)
            if made.size:
                near = _group_of(made, self.grid, self.threadgroup) == _group_of(thread, self.grid, self.threadgroup)
                first = int(thread if thread in made else made[near][0] if near.any() else made[0])
                return first, self.facts.origin(first, kind)
        return None

    def _from(self, made: tuple[int, Origin], writer: int, name: str, index: int) -> Finding:
        thread, origin = made
        line, column, source = self.place(origin.place)
        kind = "nan" if origin.result != origin.result else "infinity"
        group = int(_group_of(thread, self.grid, self.threadgroup))
        other = Party(0, 0, writer, int(_group_of(writer, self.grid, self.threadgroup)), written=True)
        return Finding(
            kind, line, column, thread, group, name, index, other=None if writer == thread else other, source=source,
            operation=origin.operation, given=origin.operands,
        )  # fmt: skip

    # ---- Elements that no thread wrote.

    def _missing(self) -> Iterator[Finding]:
        if not self.complete:
            return
        used = {p.name for p in self.outputs if p.use not in {"none", "read"}}
        for name, none in self.unwritten.items():
            if name in used and none.any() and not self.facts.buffers[name].reads:
                index = int(none.argmax())
                yield Finding("missing write", 0, 0, -1, -1, name, index, count=int(none.sum()), size=none.size)


def _spelled(name: str, source: str) -> str:
    """Return a variable's name as the source spells it: LLVM numbers variables of the same name."""
    words = re.findall(r"\w+", source)
    return name if not name or name in words else re.sub(r"\d+$", "", name)


def _floats(param: Param, seen: BufferAccesses) -> str | None:
    """Return the NumPy type of a buffer's components if they are floats, else None."""
    layout = param.type.layout
    kind = {"float": "f4", "half": "f2"}.get(layout.scalar) if layout else None
    return kind if kind and seen.contents.size % int(kind[1]) == 0 else None


def _group_of(thread: Any, grid: Grid, threadgroup: Grid) -> Any:
    """Return threads' threadgroups from their linear positions in the grid."""
    at = (thread % grid[0], thread // grid[0] % grid[1], thread // (grid[0] * grid[1]))
    x, y, z = (a // t for a, t in zip(at, threadgroup, strict=True))
    across, down, _ = (-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
    return (z * down + y) * across + x


def in_grid(index: Any, group: Any, grid: Grid, threadgroup: Grid) -> Any:
    """Convert linear positions in threadgroups to linear positions in the grid; numbers, or arrays of them."""
    index, group = np.asarray(index, np.int64), np.asarray(group, np.int64)
    groups = [-(-g // t) for g, t in zip(grid, threadgroup, strict=True)]
    at = (group % groups[0], group // groups[0] % groups[1], group // (groups[0] * groups[1]))
    size = [np.minimum(t, g - a * t) for a, g, t in zip(at, grid, threadgroup, strict=True)]
    local = (index % size[0], index // size[0] % size[1], index // (size[0] * size[1]))
    x, y, z = (a * t + i for a, t, i in zip(at, threadgroup, local, strict=True))
    return (z * grid[1] + y) * grid[0] + x
