"""Write an innermost loop twice: with its checks, and without those that a test before the loop makes unnecessary.

Where the offset of an access is a linear function of the iteration, its first and last values bound all others
(R. Gupta, "Optimizing array bound checks using flow analysis", 1993). The number of iterations follows from the
comparison that ends the loop. If there are few, the loop needs no stop flag, either: a small loop with a flag has a
third version, without both.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...llvm.instructions import IRFunction, IRInstruction, Operand
from ...llvm.llvm_types import IRType
from ..accesses import Access
from ..kernel_analysis import Analysis
from ..memory_roots import PointerPlace, Root
from .access_conditions import ConditionWriter
from .block_versions import is_shared
from .check_target import CheckTarget
from .linear_values import LinearValues, Slope, is_steep
from .loop_length import LoopLength, loop_length
from .size_limits import WorkLimit
from .start_code import StartCode
from .stop_flags import Flag
from .written_code import WrittenCode, come_from, lead

__all__ = ["Guarded", "LoopVersions"]

_LOOP = re.compile(r", !llvm\.loop !\d+")
_LONG = 1000  # instructions; a longer loop is not duplicated
_SMALL = 100  # instructions
_SHORT = 1 << 20  # instructions of all iterations, about a millisecond
_WIDE = 64

Guarded = dict[int, list[tuple[int, Access]]]  # by the `id` of an instruction: numbers of its checks, its accesses


class _Loop(NamedTuple):
    """A loop that may have two versions.

    Attributes
    ----------
    header, before, exit, after : str
        Its header; the only outside block that branches to it; the only exiting block; that block's target.
    labels : list of str
        The labels of its blocks.
    """

    header: str
    before: str
    exit: str
    after: str
    labels: list[str]


class _Tests(NamedTuple):
    """The tests before a loop.

    Attributes
    ----------
    saved : set of int
        The numbers of the accesses that are in bounds if `holds`.
    holds : str
        The name of an ``i1``.
    short : str
        The name of an ``i1`` that says that the loop needs no stop flag; empty if that is not tested.
    """

    saved: set[int]
    holds: str
    short: str


class _Version(NamedTuple):
    """A version of a loop.

    Attributes
    ----------
    names : dict of str to str
        The new names of the loop's values and blocks.
    without : set of int
        The numbers of the accesses that are not checked.
    flag : bool
        Whether it keeps the stop flag.
    fastest : bool
        Whether it keeps the loop's metadata, which several loops cannot share.
    """

    names: dict[str, str]
    without: set[int]
    flag: bool
    fastest: bool


@dataclass(slots=True)
class _Line:
    """Accesses whose offsets from a root are linear functions of the iteration, and differ by constant bytes.

    Attributes
    ----------
    root : Root
    start : str
        The first offset, without the constant bytes.
    slope : int or str
        As that of a `Linear`.
    first, end : int
        The range of bytes that the accesses need, without its end.
    """

    root: Root
    start: str
    slope: Slope
    first: int
    end: int


@dataclass
class LoopVersions:
    """Finds the loops of a function that are worth two versions, and writes both.

    Parameters
    ----------
    function : IRFunction
        Changed in place.
    analysis : Analysis
        The analysis of the original function.
    checked : sequence of Access
        The checked accesses of the function.
    conditions : ConditionWriter
    start : StartCode
    code : WrittenCode
    target : CheckTarget
    flags : dict of str to Flag
        The stop flags, by their loops' headers.

    Attributes
    ----------
    names : dict of str to dict
        For each block of a version, the new names of the loop's values.
    """

    function: IRFunction
    analysis: Analysis
    checked: Sequence[Access]
    conditions: ConditionWriter
    start: StartCode
    code: WrittenCode
    target: CheckTarget
    flags: Mapping[str, Flag]
    names: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def put(self, guarded: Guarded) -> None:
        """Write the versions, and add the checks of their accesses to `guarded`."""
        flow = self.analysis.flow
        for header in sorted(flow.loops) if flow.irreducible is None else ():
            loop = self._loop(header)
            if loop is not None:
                self._put(loop, guarded)

    # ---- Finding loops.

    def _loop(self, header: str) -> _Loop | None:
        """Return a loop if it has checked accesses, one entry, one exit, and no inner loop; else None."""
        flow, blocks = self.analysis.flow, self.function.blocks
        body, leaves = flow.loops[header].body, flow.exiting_block(header)
        if leaves is None or not any(a.made.block in body for a in self.checked):
            return None
        if any(flow.inner[label] != header for label in body) or not body <= set(blocks):
            return None
        before = [label for label, block in blocks.items() if label not in body and header in block[-1].targets]
        after = next(target for target in blocks[leaves][-1].targets if target not in body)  # or another loop's test
        many = sum(len(blocks[label]) for label in body)
        if len(before) != 1 or before[0] == after or many > _LONG:
            return None
        if any(made.opcode == "alloca" or is_shared(made) for label in body for made in blocks[label]):
            return None
        return _Loop(header, before[0], leaves, after, [label for label in blocks if label in body])

    # ---- Writing the tests.

    def _put(self, loop: _Loop, guarded: Guarded) -> None:
        made: dict[str, list[IRInstruction]] = {}
        gate = self.code.name()
        self.code.block(made, gate)
        tests = self._tests(loop)
        if tests is None:
            return
        self.function.blocks |= made
        self._write(loop, gate, tests, guarded)

    def _tests(self, loop: _Loop) -> _Tests | None:
        """Write the tests; return None if they would cover no access."""
        was, code = self.analysis.roots.function, self.code
        inside = {made.result: made for label in loop.labels for made in was.blocks[label] if made.result}
        values = LinearValues(inside, loop.header, loop.labels, code)
        branch = was.blocks[loop.exit][-1]
        test = inside.get(branch.operands[0].text)
        if test is None or test.opcode != "icmp":
            return None
        length = loop_length(test, stays=branch.targets[0] in loop.labels, values=values, code=code)
        if length is None:
            return None
        following = next(target for target in branch.targets if target in loop.labels)
        lines: dict[object, tuple[bool, _Line]] = {}
        saved = set[int]()
        for access in (a for a in self.checked if a.made.block in loop.labels):
            place = self.analysis.roots.place(access.pointer)
            late = self._is_after(access.made.block, loop.exit, following)
            key = place.root, place.terms, late
            known = lines.get(key)
            line = known[1] if known else self._line(place, values)
            if line is None:
                continue
            line.first, line.end = min(line.first, place.fixed), max(line.end, place.fixed + access.size)
            lines[key] = late, line
            saved.add(access.number)
        if not saved:
            return None
        holds = self._condition(length, values, list(lines.values()))
        return _Tests(saved, holds, self._short(loop, length))

    def _short(self, loop: _Loop, length: LoopLength) -> str:
        """Emit a test that a small loop with a stop flag is short, provided its computed length is right."""
        many = sum(len(self.function.blocks[label]) for label in loop.labels)
        if loop.header not in self.flags or many > _SMALL:
            return ""
        limit = self.start.limit(WorkLimit(_SHORT, self.analysis.entry.pace.after), _WIDE)
        work = self.code.op(f"mul i64 {length.iterations}, {many}")
        return self.target.every(self.code, self.code.op(f"icmp ult i64 {work}, {limit}"))

    def _is_after(self, label: str, leaves: str, following: str) -> bool:
        """Return whether a block is reached only after the loop's test has passed."""
        flow = self.analysis.flow
        return flow.predecessors[following] == [leaves] and flow.dominates(following, label)

    def _line(self, place: PointerPlace, values: LinearValues) -> _Line | None:
        roots = self.analysis.roots
        root, start = roots.root(place.root), "0"
        slope: Slope = 0
        if root is None:
            found = self._pointer(place.root, values)
            if found is None:
                return None
            root, start, slope = found
        for name, step in place.terms:
            operand = self._integer(name)
            index = values.wide(operand) if operand is not None else None
            if index is None:
                return None
            scaled = self.code.op(f"mul i64 {index.start}, {step}")
            start = self.code.op(f"add i64 {start}, {scaled}")
            slope = values.sum(slope, values.product(index.slope, step))
        return None if is_steep(slope) else _Line(root, start, slope, place.fixed, place.fixed)

    def _pointer(self, name: str, values: LinearValues) -> tuple[Root, str, Slope] | None:
        """Return a pointer's root, its first offset, and its increment per iteration; None if any is unknown."""
        roots = self.analysis.roots
        sources, phi = roots.sources(name), values.inside.get(name)
        root = roots.root(next(iter(sources))) if len(sources) == 1 else None
        if root is None:
            return None
        if phi is None:
            kind = self._types.get(name)
            known = kind is not None and kind.kind == "pointer"
            return (root, self.conditions.distance(root, str(kind), name), 0) if known else None
        if phi.opcode != "phi" or phi.block != values.header or phi.type.kind != "pointer":
            return None
        start, following = values.carried(phi)
        if not start.startswith("%") or not following.startswith("%"):
            return None
        step = roots.place(following)
        slope: Slope = step.fixed
        for index, by in step.terms:
            operand = self._integer(index)
            if operand is None or operand.text in values.inside:
                return None
            wide = operand.text if operand.type.bits == _WIDE else self.code.op(f"sext {operand} to i64")
            slope = values.sum(slope, values.product(wide, by))
        return (root, self.conditions.distance(root, phi.type.text, start), slope) if step.root == name else None

    def _condition(self, length: LoopLength, values: LinearValues, lines: Sequence[tuple[bool, _Line]]) -> str:
        """Write a condition under which these accesses are in bounds in every iteration."""
        op, count = self.code.op, length.iterations
        found = [*length.conditions]
        for widening in values.widenings:
            found.append(values.gentle(widening.slope))
            last = op(f"add i64 {widening.start}, {op(f'mul i64 {count}, {widening.slope}')}")
            found.append(op(f"icmp ult i64 {op(f'sub i64 {last}, {widening.low}')}, {widening.many}"))
        if any(late for late, _ in lines):
            found.append(op(f"icmp ne i64 {count}, 0"))
        for late, line in lines:
            size = line.end - line.first
            first = op(f"add i64 {line.start}, {line.first}")
            found.append(self.conditions.inside(line.root, first, size))
            if line.slope == 0:
                continue
            found.append(values.gentle(line.slope))
            times = op(f"sub i64 {count}, 1") if late else count
            last = op(f"add i64 {first}, {op(f'mul i64 {times}, {line.slope}')}")
            found.append(self.conditions.inside(line.root, last, size))
        found = [one for one in found if one != "true"]
        holds = found[0]
        for one in found[1:]:
            holds = op(f"and i1 {holds}, {one}")
        return self.target.every(self.code, holds)

    # ---- Writing the versions.

    def _write(self, loop: _Loop, gate: str, tests: _Tests, guarded: Guarded) -> None:
        code, blocks = self.code, self.function.blocks
        leaves, done = self._needed_after(loop), code.name()
        originals = {label: blocks.pop(label) for label in loop.labels}
        versions = [
            _Version({}, set(), flag=True, fastest=False),
            _Version({}, tests.saved, flag=True, fastest=not tests.short),
            *([_Version({}, tests.saved, flag=False, fastest=True)] if tests.short else []),
        ]
        for version in versions:
            version.names.update((label, code.name()) for label in loop.labels)
        checked, plain, *fast = (version.names[loop.header] for version in versions)
        choice = code.name() if fast else gate
        code.do(f"br i1 {tests.holds}, label {choice if fast else plain}, label {checked}")
        if fast:
            code.block(blocks, choice)
            code.do(f"br i1 {tests.short}, label {fast[0]}, label {plain}")
        for version in versions:
            self._write_version(loop, version, originals, choice if version.without else gate, done, guarded)
        code.block(blocks, done)
        for made in (made for block in originals.values() for made in block if made.result in leaves):
            values = ", ".join(f"[ {v.names[made.result]}, {v.names[loop.exit]} ]" for v in versions)
            code.op(f"phi {made.type} {values}", made.result)
        code.do(f"br label {loop.after}")
        lead(blocks[loop.before][-1], loop.header, gate)
        for made in blocks[loop.after]:
            if made.opcode == "phi":
                come_from(made, {loop.exit: done})

    def _write_version(
        self, loop: _Loop, version: _Version, originals: Mapping[str, list[IRInstruction]], before: str, after: str,
        guarded: Guarded,
    ) -> None:  # fmt: skip
        code, names = self.code, version.names
        names |= {made.result: code.name() for block in originals.values() for made in block if made.result}
        renamed = {**names, loop.before: before, loop.after: after}
        flag = None if version.flag else self.flags[loop.header]
        for label, block in originals.items():
            self.names[names[label]] = names
            code.block(self.function.blocks, names[label])
            kept = [made for made in block if flag is None or id(made) not in flag.added]
            for made in kept if len(kept) == len(block) or flag is None else [*kept, flag.branch]:
                twin = code.again(made, renamed)
                if not version.fastest:
                    twin.metadata = _LOOP.sub("", twin.metadata)
                code.keep(twin)
                checks = [pair for pair in guarded.get(id(made), ()) if pair[1].number not in version.without]
                if checks:
                    guarded[id(twin)] = checks

    def _needed_after(self, loop: _Loop) -> set[str]:
        """Return the names of the values that other blocks and their checks use."""
        found = set[str]()
        for label, block in self.function.blocks.items():
            if label not in loop.labels:
                for made in block:
                    found.update(made.names)
        for access in self.checked:
            if access.made.block not in loop.labels:
                place = self.analysis.roots.place(access.pointer)
                found.update((place.root, *(name for name, _ in place.terms)))
        return found

    @functools.cached_property
    def _types(self) -> dict[str, IRType]:
        was = self.analysis.roots.function
        return {made.result: made.type for made in was if made.result} | {p.text: p.type for p in was.parameters}

    def _integer(self, name: str) -> Operand | None:
        kind = self._types.get(name)
        return Operand(kind, name) if kind is not None and kind.kind == "integer" else None
