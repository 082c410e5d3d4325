"""Write an innermost loop twice: with its checks, and without those that a test before the loop makes unnecessary.

Where the offset of an access is a linear function of the iteration, its first and last values bound all others
(R. Gupta, "Optimizing array bound checks using flow analysis", 1993). The number of iterations follows from the
comparison that ends the loop. If there are few, the loop needs no stop flag, either: a small loop with a flag has a
third version, with neither checks nor flag.
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
from ..memory_roots import AffineAddress, Root
from .block_versions import may_be_collective
from .bounds_tests import ConditionWriter
from .check_target import CheckTarget
from .entry_code import EntryCode
from .ir_builder import IRBuilder, redirect, replace_incoming
from .linear_values import LinearValues, Slope, is_steep
from .loop_length import LoopLength, write_loop_length
from .size_limits import WorkLimit
from .stop_flags import Flag

__all__ = ["Guarded", "LoopVersions"]

_LOOP = re.compile(r", !llvm\.loop !\d+")
_MAX_LENGTH = 1000  # instructions; a longer loop is not duplicated
_MAX_UNFLAGGED_LENGTH = 100  # instructions
_SHORT_WORK = 1 << 20  # instructions of all iterations, about a millisecond
_WIDE_BITS = 64

Guarded = dict[int, list[tuple[int, Access]]]  # by the `id` of an instruction: numbers of its checks, its accesses


class _Loop(NamedTuple):
    """A loop that may have two versions.

    Attributes
    ----------
    header, preheader, exiting, exit : str
        Its header; the only outside block that branches to it; the only exiting block; the target of the exit.
    labels : list of str
        The labels of its blocks.
    """

    header: str
    preheader: str
    exiting: str
    exit: str
    labels: list[str]


class _Tests(NamedTuple):
    """The tests before a loop.

    Attributes
    ----------
    accesses : set of int
        The numbers of the accesses that are in bounds if `flag` is true.
    flag : str
        The name of an ``i1``.
    is_short : str
        The name of an ``i1`` that says that the loop needs no stop flag; empty if that is not tested.
    """

    accesses: set[int]
    flag: str
    is_short: str


class _Version(NamedTuple):
    """A version of a loop.

    Attributes
    ----------
    names : dict of str to str
        The new names of the loop's values and blocks.
    unchecked : set of int
        The numbers of the accesses that are not checked.
    has_stop_flag : bool
        Whether it keeps the stop flag.
    keeps_metadata : bool
        Whether it keeps the loop's metadata, which several loops cannot share.
    """

    names: dict[str, str]
    unchecked: set[int]
    has_stop_flag: bool
    keeps_metadata: bool


@dataclass(slots=True)
class _Line:
    """Accesses whose offsets from a root are linear functions of the iteration, and differ by constant bytes.

    Attributes
    ----------
    root : Root
    start : str
        The first offset, without the constant bytes.
    slope : int or str
        The slope, as in `Linear`.
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
    entry_code : EntryCode
    code : IRBuilder
    target : CheckTarget
    flags : dict of str to Flag
        The stop flags, by their loops' headers.

    Attributes
    ----------
    names : dict of str to dict
        The new names of the loop's values, for each block of a version.
    """

    function: IRFunction
    analysis: Analysis
    checked: Sequence[Access]
    conditions: ConditionWriter
    entry_code: EntryCode
    code: IRBuilder
    target: CheckTarget
    flags: Mapping[str, Flag]
    names: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def write(self, guarded: Guarded) -> None:
        """Write the versions, and add the checks of their accesses to `guarded`."""
        flow = self.analysis.flow
        for header in sorted(flow.loops) if flow.irreducible is None else ():
            loop = self._find_loop(header)
            if loop is not None:
                self._write_loop(loop, guarded)

    # ---- Finding loops.

    def _find_loop(self, header: str) -> _Loop | None:
        """Return a loop if it has checked accesses, one entry, one exit, and no inner loop; else None."""
        flow, blocks = self.analysis.flow, self.function.blocks
        body, exiting = flow.loops[header].body, flow.exiting_block(header)
        if exiting is None or not any(a.inst.block in body for a in self.checked):
            return None
        if any(flow.loop_of[label] != header for label in body) or not body <= set(blocks):
            return None
        preheaders = [label for label, block in blocks.items() if label not in body and header in block[-1].targets]
        exit = next(target for target in blocks[exiting][-1].targets if target not in body)  # or another loop's test
        count = sum(len(blocks[label]) for label in body)
        if len(preheaders) != 1 or preheaders[0] == exit or count > _MAX_LENGTH:
            return None
        if any(inst.opcode == "alloca" or may_be_collective(inst) for label in body for inst in blocks[label]):
            return None
        return _Loop(header, preheaders[0], exiting, exit, [label for label in blocks if label in body])

    # ---- Writing the tests.

    def _write_loop(self, loop: _Loop, guarded: Guarded) -> None:
        gate_blocks: dict[str, list[IRInstruction]] = {}
        gate = self.code.fresh_name()
        self.code.begin_block(gate_blocks, gate)
        tests = self._write_tests(loop)
        if tests is None:
            return
        self.function.blocks |= gate_blocks
        self._write_versions(loop, gate, tests, guarded)

    def _write_tests(self, loop: _Loop) -> _Tests | None:
        """Write the tests; return None if they would cover no access."""
        original, code = self.analysis.roots.function, self.code
        inside = {inst.result: inst for label in loop.labels for inst in original.blocks[label] if inst.result}
        values = LinearValues(inside, loop.header, loop.labels, code)
        branch = original.blocks[loop.exiting][-1]
        test = inside.get(branch.operands[0].text)
        if test is None or test.opcode != "icmp":
            return None
        length = write_loop_length(test, continue_on=branch.targets[0] in loop.labels, values=values, code=code)
        if length is None:
            return None
        next_label = next(target for target in branch.targets if target in loop.labels)
        lines: dict[object, tuple[bool, _Line]] = {}
        accesses = set[int]()
        for access in (a for a in self.checked if a.inst.block in loop.labels):
            address = self.analysis.roots.address(access.pointer)
            is_guarded = self._is_guarded(access.inst.block, loop.exiting, next_label)
            key = address.root, address.terms, is_guarded
            entry = lines.get(key)
            line = entry[1] if entry else self._find_line(address, values)
            if line is None:
                continue
            line.first, line.end = min(line.first, address.offset), max(line.end, address.offset + access.size)
            lines[key] = is_guarded, line
            accesses.add(access.number)
        if not accesses:
            return None
        flag = self._write_condition(length, values, list(lines.values()))
        return _Tests(accesses, flag, self._write_length_test(loop, length))

    def _write_length_test(self, loop: _Loop, length: LoopLength) -> str:
        """Emit a test that a small loop with a stop flag is short, provided its computed length is right."""
        count = sum(len(self.function.blocks[label]) for label in loop.labels)
        if loop.header not in self.flags or count > _MAX_UNFLAGGED_LENGTH:
            return ""
        limit = self.entry_code.limit(WorkLimit(_SHORT_WORK, self.analysis.entry.loop_budget.after_stop), _WIDE_BITS)
        work = self.code.op(f"mul i64 {length.iterations}, {count}")
        return self.target.write_all_test(self.code, self.code.op(f"icmp ult i64 {work}, {limit}"))

    def _is_guarded(self, label: str, exiting: str, next_label: str) -> bool:
        """Return whether a block is reached only after the loop's test has passed."""
        flow = self.analysis.flow
        return flow.predecessors[next_label] == [exiting] and flow.dominates(next_label, label)

    def _find_line(self, address: AffineAddress, values: LinearValues) -> _Line | None:
        roots = self.analysis.roots
        root, start = roots.root(address.root), "0"
        slope: Slope = 0
        if root is None:
            linear = self._linear_pointer(address.root, values)
            if linear is None:
                return None
            root, start, slope = linear
        for name, step in address.terms:
            operand = self._integer(name)
            index = values.sign_extended(operand) if operand is not None else None
            if index is None:
                return None
            scaled = self.code.op(f"mul i64 {index.start}, {step}")
            start = self.code.op(f"add i64 {start}, {scaled}")
            slope = values.sum(slope, values.product(index.slope, step))
        return None if is_steep(slope) else _Line(root, start, slope, address.offset, address.offset)

    def _linear_pointer(self, name: str, values: LinearValues) -> tuple[Root, str, Slope] | None:
        """Return a pointer's root, its first offset, and its increment per iteration; None if any is unknown."""
        roots = self.analysis.roots
        sources, phi = roots.sources(name), values.inside.get(name)
        root = roots.root(next(iter(sources))) if len(sources) == 1 else None
        if root is None:
            return None
        if phi is None:
            ir_type = self._types.get(name)
            is_pointer = ir_type is not None and ir_type.kind == "pointer"
            return (root, self.conditions.write_distance(root, str(ir_type), name), 0) if is_pointer else None
        if phi.opcode != "phi" or phi.block != values.header or phi.type.kind != "pointer":
            return None
        start, next_value = values.initial_and_next(phi)
        if not start.startswith("%") or not next_value.startswith("%"):
            return None
        step = roots.address(next_value)
        slope: Slope = step.offset
        for index, stride in step.terms:
            operand = self._integer(index)
            if operand is None or operand.text in values.inside:
                return None
            wide = operand.text if operand.type.bits == _WIDE_BITS else self.code.op(f"sext {operand} to i64")
            slope = values.sum(slope, values.product(wide, stride))
        return (root, self.conditions.write_distance(root, phi.type.text, start), slope) if step.root == name else None

    def _write_condition(self, length: LoopLength, values: LinearValues, lines: Sequence[tuple[bool, _Line]]) -> str:
        """Write a condition under which these accesses are in bounds in every iteration."""
        op, count = self.code.op, length.iterations
        conditions = [*length.conditions]
        for widening in values.widenings:
            conditions.append(values.write_slope_test(widening.slope))
            last = op(f"add i64 {widening.start}, {op(f'mul i64 {count}, {widening.slope}')}")
            conditions.append(op(f"icmp ult i64 {op(f'sub i64 {last}, {widening.low}')}, {widening.modulus}"))
        if any(is_guarded for is_guarded, _ in lines):
            conditions.append(op(f"icmp ne i64 {count}, 0"))
        for is_guarded, line in lines:
            size = line.end - line.first
            first = op(f"add i64 {line.start}, {line.first}")
            conditions.append(self.conditions.write_offset_test(line.root, first, size))
            if line.slope == 0:
                continue
            conditions.append(values.write_slope_test(line.slope))
            times = op(f"sub i64 {count}, 1") if is_guarded else count
            last = op(f"add i64 {first}, {op(f'mul i64 {times}, {line.slope}')}")
            conditions.append(self.conditions.write_offset_test(line.root, last, size))
        conditions = [condition for condition in conditions if condition != "true"]
        flag = conditions[0]
        for condition in conditions[1:]:
            flag = op(f"and i1 {flag}, {condition}")
        return self.target.write_all_test(self.code, flag)

    # ---- Writing the versions.

    def _write_versions(self, loop: _Loop, gate: str, tests: _Tests, guarded: Guarded) -> None:
        code, blocks = self.code, self.function.blocks
        live_out, exit_label = self._live_out(loop), code.fresh_name()
        originals = {label: blocks.pop(label) for label in loop.labels}
        versions = [
            _Version({}, set(), has_stop_flag=True, keeps_metadata=False),
            _Version({}, tests.accesses, has_stop_flag=True, keeps_metadata=not tests.is_short),
            *([_Version({}, tests.accesses, has_stop_flag=False, keeps_metadata=True)] if tests.is_short else []),
        ]
        for version in versions:
            version.names.update((label, code.fresh_name()) for label in loop.labels)
        checked, plain, *fast = (version.names[loop.header] for version in versions)
        choice = code.fresh_name() if fast else gate
        code.do(f"br i1 {tests.flag}, label {choice if fast else plain}, label {checked}")
        if fast:
            code.begin_block(blocks, choice)
            code.do(f"br i1 {tests.is_short}, label {fast[0]}, label {plain}")
        for version in versions:
            self._write_version(loop, version, originals, choice if version.unchecked else gate, exit_label, guarded)
        code.begin_block(blocks, exit_label)
        for inst in (inst for block in originals.values() for inst in block if inst.result in live_out):
            values = ", ".join(f"[ {v.names[inst.result]}, {v.names[loop.exiting]} ]" for v in versions)
            code.op(f"phi {inst.type} {values}", inst.result)
        code.do(f"br label {loop.exit}")
        redirect(blocks[loop.preheader][-1], loop.header, gate)
        for inst in blocks[loop.exit]:
            if inst.opcode == "phi":
                replace_incoming(inst, {loop.exiting: exit_label})

    def _write_version(
        self, loop: _Loop, version: _Version, originals: Mapping[str, list[IRInstruction]], preheader: str,
        exit_label: str, guarded: Guarded,
    ) -> None:  # fmt: skip
        code, names = self.code, version.names
        names |= {inst.result: code.fresh_name() for block in originals.values() for inst in block if inst.result}
        replacements = {**names, loop.preheader: preheader, loop.exit: exit_label}
        flag = None if version.has_stop_flag else self.flags[loop.header]
        if flag is not None:  # the flag's branch leaves for the original exit, which may be a loop with versions by now
            replacements |= dict.fromkeys((target for target in flag.branch.targets if target not in names), exit_label)
        for label, block in originals.items():
            self.names[names[label]] = names
            code.begin_block(self.function.blocks, names[label])
            remaining = [inst for inst in block if flag is None or id(inst) not in flag.instructions]
            for inst in remaining if len(remaining) == len(block) or flag is None else [*remaining, flag.branch]:
                clone = code.clone(inst, replacements)
                if not version.keeps_metadata:
                    clone.metadata = _LOOP.sub("", clone.metadata)
                code.append(clone)
                checks = [pair for pair in guarded.get(id(inst), ()) if pair[1].number not in version.unchecked]
                if checks:
                    guarded[id(clone)] = checks

    def _live_out(self, loop: _Loop) -> set[str]:
        """Return the names of the values that other blocks and their checks use."""
        names = set[str]()
        for label, block in self.function.blocks.items():
            if label not in loop.labels:
                for inst in block:
                    names.update(inst.used_names)
        for access in self.checked:
            if access.inst.block not in loop.labels:
                address = self.analysis.roots.address(access.pointer)
                names.update((address.root, *(name for name, _ in address.terms)))
        return names

    @functools.cached_property
    def _types(self) -> dict[str, IRType]:
        original = self.analysis.roots.function
        results = {inst.result: inst.type for inst in original if inst.result}
        return results | {parameter.text: parameter.type for parameter in original.parameters}

    def _integer(self, name: str) -> Operand | None:
        ir_type = self._types.get(name)
        return Operand(ir_type, name) if ir_type is not None and ir_type.kind == "integer" else None
