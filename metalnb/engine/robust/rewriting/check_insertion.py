"""Insert a check before each unproven access: a read out of bounds returns 0, a write or atomic is skipped.

A check is a branch around the access, to a block that records the fault. In vector code its form depends on the index:
a uniform index gets a single scalar test, a varying one a comparison that joins the mask; the fault's block is skipped
while its mask is empty. (WebGPU's compilers clamp the index instead, which would turn consecutive loads into a gather.)

The limits come with the dispatch (`limits`), as read-only words. A fault is recorded by a call off the hot path; each
check keeps its first fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...llvm.instructions import IRFunction, IRInstruction, IRModule, Operand
from ..accesses import Access
from ..kernel_analysis import Analysis
from ..memory_roots import AffineAddress
from .block_versions import BlockVersions, SharedTests
from .bounds_tests import AccessCondition, ConditionWriter
from .check_target import CheckTarget
from .entry_code import EntryCode
from .invariant_bounds import InvariantBounds
from .ir_builder import IRBuilder, clone_function, replace_incoming
from .loop_versions import Guarded, LoopVersions
from .size_limits import Limit, WorkLimit
from .stop_flags import add_stop_flags

__all__ = ["CheckedModule", "Checks", "insert_checks"]

_UNDEFINED = frozenset({"undef", "poison"})


@dataclass(frozen=True, slots=True)
class Checks:
    """The checks of a kernel.

    Attributes
    ----------
    accesses : frozenset of int
        The accesses, by their numbers.
    loops : frozenset of str
        The loops that test the stop flag, by the labels of their headers.
    wide : bool
        Whether a buffer may have 2^31 bytes or more.
    """

    accesses: frozenset[int] = frozenset()
    loops: frozenset[str] = frozenset()
    wide: bool = False

    def __len__(self) -> int:
        return len(self.accesses) + len(self.loops)

    def covers(self, other: Checks) -> bool:
        """Return whether these checks include all checks of another form."""
        return other.accesses <= self.accesses and other.loops <= self.loops and other.wide <= self.wide


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


def insert_checks(module: IRModule, analysis: Analysis, checks: Checks, target: CheckTarget) -> CheckedModule:
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
    function, clones = clone_function(analysis.roots.function)
    _replace_undefined(function)
    entry_code, code = EntryCode(function, target), IRBuilder("check")
    accesses = [access for access in analysis.accesses if access.number in checks.accesses]
    guarded: Guarded = {}
    for site, access in enumerate(accesses):
        guarded.setdefault(id(clones[id(access.inst)]), []).append((site, access))
    flags = add_stop_flags(function, analysis, checks.loops, entry_code, code)
    conditions = ConditionWriter(function, analysis.roots, entry_code, code, wide=checks.wide)
    loops = LoopVersions(
        function=function, analysis=analysis, checked=accesses, conditions=conditions, entry_code=entry_code, code=code,
        target=target, flags=flags,
    )  # fmt: skip
    if target.has_loop_versions:
        loops.write(guarded)
    conditions.add_definitions(function)
    versions = BlockVersions(function, analysis.roots, accesses)
    bounds = InvariantBounds(analysis) if target.has_invariant_bounds else None
    _Checks(function, entry_code, code, conditions, target, versions, loops.names, bounds).insert(guarded)
    entry_code.finish()
    result = replace(
        module, functions={**module.functions, function.name: function},
        declarations={**module.declarations, **target.declarations},
    )  # fmt: skip
    return CheckedModule(result, checks, tuple(entry_code.limits), tuple(access.number for access in accesses))


def _replace_undefined(function: IRFunction) -> None:
    """Replace undefined values in phis by 0, since a check and its access could see two different numbers."""
    for inst in function:
        if inst.opcode == "phi" and any(operand.text in _UNDEFINED for operand in inst.operands):
            inst.operands = [
                Operand(o.type, o.type.zero) if o.text in _UNDEFINED else o for o in inst.operands
            ]  # fmt: skip
            replace_incoming(inst, {})


class _Checks:
    """Puts checks into a function."""

    def __init__(
        self, function: IRFunction, entry_code: EntryCode, code: IRBuilder, conditions: ConditionWriter,
        target: CheckTarget, versions: BlockVersions, names: Mapping[str, Mapping[str, str]],
        bounds: InvariantBounds | None,
    ) -> None:  # fmt: skip
        self._function, self._entry_code, self._code, self._conditions = function, entry_code, code, conditions
        self._target, self._versions, self._names, self._bounds = target, versions, names, bounds

    def insert(self, guarded: Guarded) -> None:
        """Split the blocks at these accesses, by the ``id`` of their instructions."""
        code, last_labels = self._code, {}
        originals, self._function.blocks = self._function.blocks, {}
        for label, block in originals.items():
            code.begin_block(self._function.blocks, label)
            loop_names = self._names.get(label)
            tests = None if loop_names else self._versions.shared_tests(block, guarded)
            if tests is not None:
                self._write_versions(block, guarded, tests)
            else:
                self._write(block, guarded, loop_names or {})
            last_labels[label] = code.label
        inner = set(self._function.blocks) - set(last_labels)
        for inst in self._function:
            if inst.opcode == "phi" and inst.block not in inner:
                replace_incoming(inst, last_labels)

    def _write(self, block: Sequence[IRInstruction], guarded: Guarded, names: Mapping[str, str]) -> None:
        for inst in block:
            if id(inst) in guarded:
                self._guard(inst, guarded[id(inst)], names)
            else:
                self._code.append(inst)

    def _write_versions(
        self, block: Sequence[IRInstruction], guarded: Guarded, tests: SharedTests,
    ) -> None:  # fmt: skip
        """Write a block twice: without checks, if all of these tests hold, and with them."""
        code, blocks, last = self._code, self._function.blocks, block[-1]
        self._write([*(inst for inst in block if inst.opcode == "phi"), *tests.prefix], {}, {})
        unchecked, checked, end = code.fresh_name(), code.fresh_name(), code.fresh_name()
        flag = "true"  # all tests share a branch; separate branches would each need phis
        for address, size in tests.byte_ranges.values():
            is_inside = self._target.write_all_test(code, self._conditions.write_access_test(address, size))
            flag = is_inside if flag == "true" else code.op(f"and i1 {flag}, {is_inside}")
        code.do(f"br i1 {flag}, label {unchecked}, label {checked}")
        code.begin_block(blocks, unchecked)
        plain_names, plain_end = self._version(tests.rest, {}), code.label
        code.do(f"br label {end}")
        code.begin_block(blocks, checked)
        checked_names, checked_end = self._version(tests.rest, guarded), code.label
        code.do(f"br label {end}")
        code.begin_block(blocks, end)
        for inst in tests.rest:
            if inst.result and self._versions.is_live_out(inst, last):
                values = f"[ {plain_names[inst.result]}, {plain_end} ], [ {checked_names[inst.result]}, {checked_end} ]"
                code.op(f"phi {inst.type} {values}", inst.result)
        code.append(last)

    def _version(self, body: Sequence[IRInstruction], guarded: Guarded) -> dict[str, str]:
        """Duplicate a block's instructions; return the new names of its values."""
        names: dict[str, str] = {}
        for inst in body:
            clone = self._code.clone(inst, names)
            result = clone.result
            if id(inst) in guarded:
                self._guard(clone, guarded[id(inst)], names)
            else:
                self._code.append(clone)
            if result:
                names[inst.result] = result
        return names

    def _guard(
        self, inst: IRInstruction, checks: Sequence[tuple[int, Access]], names: Mapping[str, str],
    ) -> None:  # fmt: skip
        """Write an access under its condition, with the value names of this version of a block or loop."""
        code, blocks = self._code, self._function.blocks
        code.debug_location = inst.debug_location
        after, faults = code.fresh_name(), []
        for site, access in checks:
            inside, fault = code.fresh_name(), code.fresh_name()
            self._write_bound_branch(access, names, inside)
            condition = self._conditions.write_condition(access, names)
            code.write_check(condition.flag, inside, fault)
            code.begin_block(blocks, fault)
            self._target.write_record(code, self._entry_code.records, site, self._write_fault_offset(condition))
            code.do(f"br label {after}")
            faults.append(fault)
            code.begin_block(blocks, inside)
        result, inst.result = inst.result, inst.result and code.fresh_name()
        code.append(inst)
        code.do(f"br label {after}")
        code.begin_block(blocks, after)
        if result:
            zeros = "".join(f", [ {inst.type.zero}, {fault} ]" for fault in faults)
            code.op(f"phi {inst.type} [ {inst.result}, {inside} ]{zeros}", result)
        code.debug_location = ""

    def _write_bound_branch(self, access: Access, names: Mapping[str, str], inside: str) -> None:
        """Branch to the access if its index is below a bound that the loop does not change."""
        parts = self._bounds.split(access) if self._bounds else None
        if parts is None:
            return
        root, address, (index, step) = parts
        terms = tuple((names.get(term, term), stride) for term, stride in address.terms)
        fixed_address = AffineAddress(address.root, address.offset, terms)
        exact = self._code.fresh_name()
        flag = self._conditions.write_loop_bound_test(root, fixed_address, access.size, (names.get(index, index), step))
        self._code.write_check(flag, inside, exact)
        self._code.begin_block(self._function.blocks, exact)

    def _write_fault_offset(self, condition: AccessCondition) -> str:
        """Write the access's part of a fault record: the offset from its root, or its address."""
        return condition.pointer if condition.address is None else self._conditions.write_offset(condition.address)
