"""Insert a check before each unproven access: a read out of bounds returns 0, a write or atomic is skipped.

A check is a branch around the access, to a block that records the fault. In vector code its form depends on the index:
a single scalar test if that is uniform, a comparison that joins the mask if it varies; the fault's block is skipped
while its mask is empty. (WebGPU's compilers clamp the index instead, which would turn consecutive loads into a gather.)

The limits come with the dispatch (`limits`), as read-only words. A fault is recorded by a call off the hot path; each
check keeps its first fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...llvm.instructions import IRFunction, IRInstruction, IRModule, Operand
from ...llvm.llvm_types import IRType
from ..accesses import Access
from ..kernel_analysis import Analysis
from ..memory_roots import PointerPlace
from .access_conditions import AccessCondition, ConditionWriter
from .block_versions import BlockVersions, SharedTests
from .check_target import CheckTarget
from .loop_bounds import LoopBounds
from .loop_versions import Guarded, LoopVersions
from .size_limits import Limit, WorkLimit
from .start_code import StartCode
from .stop_flags import put_flags
from .written_code import WrittenCode, come_from, copied

__all__ = ["CheckedModule", "Checks", "checked"]

_UNDEFINED = frozenset({"undef", "poison"})
_ZERO = {"float": "0.0", "pointer": "null", "integer": "0"}


@dataclass(frozen=True, slots=True)
class Checks:
    """The checks of a kernel.

    Attributes
    ----------
    wrong : frozenset of int
        The accesses, by their numbers.
    stops : frozenset of str
        The loops that test the stop flag, by the labels of their headers.
    wide : bool
        Whether a buffer may have 2^31 bytes or more.
    """

    wrong: frozenset[int] = frozenset()
    stops: frozenset[str] = frozenset()
    wide: bool = False

    def __len__(self) -> int:
        return len(self.wrong) + len(self.stops)

    def covers(self, other: Checks) -> bool:
        """Return whether these checks include all of the others."""
        return other.wrong <= self.wrong and other.stops <= self.stops and other.wide <= self.wide


@dataclass(frozen=True, slots=True)
class CheckedModule:
    """A kernel with its checks.

    Attributes
    ----------
    module : IRModule
    checks : Checks
    limits : tuple of Limit or WorkLimit
        The words that it reads, in order.
    sites : tuple of int
        The access of each check.
    """

    module: IRModule
    checks: Checks
    limits: tuple[Limit | WorkLimit, ...] = ()
    sites: tuple[int, ...] = ()


def checked(module: IRModule, analysis: Analysis, checks: Checks, target: CheckTarget) -> CheckedModule:
    """Return a kernel with these checks; `module` is not changed.

    Parameters
    ----------
    module : IRModule
    analysis : Analysis
        The analysis of the module.
    checks : Checks
    target : CheckTarget
    """
    if not checks:
        return CheckedModule(module, checks)
    function, twins = copied(analysis.roots.function)
    _define(function)
    start, code = StartCode(function, target), WrittenCode("check")
    found = [access for access in analysis.accesses if access.number in checks.wrong]
    guarded: Guarded = {}
    for site, access in enumerate(found):
        guarded.setdefault(id(twins[id(access.made)]), []).append((site, access))
    flags = put_flags(function, analysis, checks.stops, start, code)
    conditions = ConditionWriter(function, analysis.roots, start, code, wide=checks.wide)
    loops = LoopVersions(function, analysis, found, conditions, start, code, target, flags)
    if target.two_loops:
        loops.put(guarded)
    conditions.read(function)
    versions = BlockVersions(function, analysis.roots, found)
    bounds = LoopBounds(analysis) if target.loop_bounds else None
    _Checks(function, start, code, conditions, target, versions, loops.names, bounds).put(guarded)
    start.finish()
    made = replace(
        module, functions={**module.functions, function.name: function},
        declarations={**module.declarations, **target.declared},
    )  # fmt: skip
    return CheckedModule(made, checks, tuple(start.limits), tuple(access.number for access in found))


def _define(function: IRFunction) -> None:
    """Replace undefined values in phis by 0, since a check and its access could see two different numbers."""
    for made in function:
        if made.opcode == "phi" and any(operand.text in _UNDEFINED for operand in made.operands):
            made.operands = [
                Operand(o.type, _zero(o.type)) if o.text in _UNDEFINED else o for o in made.operands
            ]  # fmt: skip
            come_from(made, {})


class _Checks:
    """Puts checks into a function."""

    def __init__(
        self, function: IRFunction, start: StartCode, code: WrittenCode, conditions: ConditionWriter,
        target: CheckTarget, versions: BlockVersions, names: Mapping[str, Mapping[str, str]], bounds: LoopBounds | None,
    ) -> None:  # fmt: skip
        self._function, self._start, self._code, self._conditions = function, start, code, conditions
        self._target, self._versions, self._names, self._bounds = target, versions, names, bounds

    def put(self, guarded: Guarded) -> None:
        """Split the blocks at these accesses, by the ``id`` of their instructions."""
        code, ends = self._code, {}
        before, self._function.blocks = self._function.blocks, {}
        for label, block in before.items():
            code.block(self._function.blocks, label)
            of_loop = self._names.get(label)
            tests = None if of_loop else self._versions.tests(block, guarded)
            if tests is not None:
                self._write_versions(block, guarded, tests)
            else:
                self._write(block, guarded, of_loop or {})
            ends[label] = code.label
        inner = set(self._function.blocks) - set(ends)
        for made in self._function:
            if made.opcode == "phi" and made.block not in inner:
                come_from(made, ends)

    def _write(self, block: Sequence[IRInstruction], guarded: Guarded, names: Mapping[str, str]) -> None:
        for made in block:
            if id(made) in guarded:
                self._guard(made, guarded[id(made)], names)
            else:
                self._code.keep(made)

    def _write_versions(
        self, block: Sequence[IRInstruction], guarded: Guarded, tests: SharedTests,
    ) -> None:  # fmt: skip
        """Write a block twice: without checks, if all of these tests hold, and with them."""
        code, blocks, last = self._code, self._function.blocks, block[-1]
        self._write([*(made for made in block if made.opcode == "phi"), *tests.first], {}, {})
        right, checked, end = code.name(), code.name(), code.name()
        holds = "true"  # one branch for all tests; separate branches would need phis after each
        for place, size in tests.stretches.values():
            one = self._target.every(code, self._conditions.fits(place, size))
            holds = one if holds == "true" else code.op(f"and i1 {holds}, {one}")
        code.do(f"br i1 {holds}, label {right}, label {checked}")
        code.block(blocks, right)
        plain_names, plain_end = self._version(tests.rest, {}), code.label
        code.do(f"br label {end}")
        code.block(blocks, checked)
        checked_names, checked_end = self._version(tests.rest, guarded), code.label
        code.do(f"br label {end}")
        code.block(blocks, end)
        for made in tests.rest:
            if made.result and self._versions.leaves(made, last):
                values = f"[ {plain_names[made.result]}, {plain_end} ], [ {checked_names[made.result]}, {checked_end} ]"
                code.op(f"phi {made.type} {values}", made.result)
        code.keep(last)

    def _version(self, body: Sequence[IRInstruction], guarded: Guarded) -> dict[str, str]:
        """Duplicate a block's instructions; return the new names of its values."""
        names: dict[str, str] = {}
        for made in body:
            twin = self._code.again(made, names)
            result = twin.result
            if id(made) in guarded:
                self._guard(twin, guarded[id(made)], names)
            else:
                self._code.keep(twin)
            if result:
                names[made.result] = result
        return names

    def _guard(
        self, made: IRInstruction, checks: Sequence[tuple[int, Access]], names: Mapping[str, str],
    ) -> None:  # fmt: skip
        """Write an access under its condition, with the value names of this version of a block or loop."""
        code, blocks = self._code, self._function.blocks
        code.place = made.place
        after, faults = code.name(), []
        for site, access in checks:
            inside, fault = code.name(), code.name()
            self._leave_if_bounded(access, names, inside)
            condition = self._conditions.condition(access, names)
            code.check(condition.holds, inside, fault)
            code.block(blocks, fault)
            self._target.record(code, self._start.records, site, self._where(condition))
            code.do(f"br label {after}")
            faults.append(fault)
            code.block(blocks, inside)
        result, made.result = made.result, made.result and code.name()
        code.keep(made)
        code.do(f"br label {after}")
        code.block(blocks, after)
        if result:
            zeros = "".join(f", [ {_zero(made.type)}, {fault} ]" for fault in faults)
            code.op(f"phi {made.type} [ {made.result}, {inside} ]{zeros}", result)
        code.place = ""

    def _leave_if_bounded(self, access: Access, names: Mapping[str, str], inside: str) -> None:
        """Branch to the access if its index is below a bound that the loop does not change."""
        found = self._bounds.split(access) if self._bounds else None
        if found is None:
            return
        root, place, (index, step) = found
        terms = tuple((names.get(term, term), by) for term, by in place.terms)
        same = PointerPlace(place.root, place.fixed, terms)
        exact = self._code.name()
        holds = self._conditions.bounded(root, same, access.size, (names.get(index, index), step))
        self._code.check(holds, inside, exact)
        self._code.block(self._function.blocks, exact)

    def _where(self, condition: AccessCondition) -> str:
        """Write the access's part of a fault record: the offset from its root, or its address."""
        return condition.address if condition.place is None else self._conditions.offset(condition.place)


def _zero(kind: IRType) -> str:
    return _ZERO.get(kind.kind, "zeroinitializer")
