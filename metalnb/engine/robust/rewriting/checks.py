"""Put a check before each access that is not proven: a read beyond an end gives 0, a write or an atomic is left out.

A check is a branch around the access, to a block that records the fault. In vector code it becomes what the access
allows: one scalar test where the index is uniform, a comparison that joins the mask where each lane has its own; and
the block of the fault is jumped over as long as no lane is in it. (WebGPU's compilers clamp the index instead, which
would make a gather of consecutive lanes.)

The limits come with the dispatch (`limits`), as words that nobody writes. A fault is recorded by a call that no hot
path makes; the first of a check's faults stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...llvm.instructions import IRFunction, IRInstruction, IRModule, Operand
from ...llvm.llvm_types import IRType
from ..accesses import Access
from ..kernel_analysis import Analysis
from .access_conditions import AccessCondition, ConditionWriter
from .check_target import CheckTarget
from .size_limits import Limit
from .start_code import StartCode
from .stop_flags import put_flags
from .written_code import WrittenCode, come_from, copied

__all__ = ["CheckedModule", "Checks", "checked"]

_UNDEFINED = frozenset({"undef", "poison"})
_ZERO = {"float": "0.0", "pointer": "null", "integer": "0"}


@dataclass(frozen=True, slots=True)
class Checks:
    """What is checked of a kernel.

    Attributes
    ----------
    wrong : frozenset of int
        The accesses, by their numbers.
    stops : frozenset of str
        The loops that look whether they are to end, by the labels of their headers.
    wide : bool
        Whether a buffer may have 2^31 bytes or more.
    """

    wrong: frozenset[int] = frozenset()
    stops: frozenset[str] = frozenset()
    wide: bool = False

    def __len__(self) -> int:
        return len(self.wrong) + len(self.stops)

    def covers(self, other: Checks) -> bool:
        """Return whether all that the other ones check is checked."""
        return other.wrong <= self.wrong and other.stops <= self.stops and other.wide <= self.wide


@dataclass(frozen=True, slots=True)
class CheckedModule:
    """A kernel with its checks.

    Attributes
    ----------
    module : IRModule
    checks : Checks
    limits : tuple of Limit
        The words that it reads, in order.
    sites : tuple of int
        The access of each check.
    """

    module: IRModule
    checks: Checks
    limits: tuple[Limit, ...] = ()
    sites: tuple[int, ...] = ()


def checked(module: IRModule, analysis: Analysis, checks: Checks, target: CheckTarget) -> CheckedModule:
    """Return a kernel with these checks. The module that it is made of stays as it is.

    Parameters
    ----------
    module : IRModule
    analysis : Analysis
        Of the module.
    checks : Checks
    target : CheckTarget
    """
    if not checks:
        return CheckedModule(module, checks)
    function, twins = copied(analysis.roots.function)
    _define(function)
    start, code = StartCode(function, target), WrittenCode("check")
    found = [access for access in analysis.accesses if access.number in checks.wrong]
    guarded: dict[int, list[tuple[int, Access]]] = {}
    for site, access in enumerate(found):
        guarded.setdefault(id(twins[id(access.made)]), []).append((site, access))
    put_flags(function, analysis, checks.stops, start, code)
    conditions = ConditionWriter(function, analysis.roots, start, code, wide=checks.wide)
    _Checks(function, start, code, conditions, target).put(guarded)
    start.finish()
    recorder, declaration = target.recorder
    made = replace(
        module, functions={**module.functions, function.name: function},
        declarations={**module.declarations, recorder: declaration},
    )  # fmt: skip
    return CheckedModule(made, checks, tuple(start.limits), tuple(access.number for access in found))


def _define(function: IRFunction) -> None:
    """Take 0 for what is undefined in a phi: its check and its access might see it as two numbers."""
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
        target: CheckTarget,
    ) -> None:  # fmt: skip
        self._function, self._start, self._code, self._conditions = function, start, code, conditions
        self._target = target

    def put(self, guarded: dict[int, list[tuple[int, Access]]]) -> None:
        """Cut the blocks at these accesses, by the ``id`` of their instructions."""
        code, ends = self._code, {}
        before, self._function.blocks = self._function.blocks, {}
        for label, block in before.items():
            code.block(self._function.blocks, label)
            for made in block:
                if id(made) in guarded:
                    self._guard(made, guarded[id(made)])
                else:
                    code.keep(made)
            ends[label] = code.label
        inner = set(self._function.blocks) - set(ends)
        for made in self._function:
            if made.opcode == "phi" and made.block not in inner:
                come_from(made, ends)

    def _guard(self, made: IRInstruction, checks: Sequence[tuple[int, Access]]) -> None:
        """Write an access under its conditions."""
        code, blocks = self._code, self._function.blocks
        code.place = made.place
        after, faults = code.name(), []
        for site, access in checks:
            condition = self._conditions.condition(access)
            inside, fault = code.name(), code.name()
            code.do(f"br i1 {condition.holds}, label {inside}, label {fault}")
            code.block(blocks, fault)
            self._target.record(code, self._start.watch, site, self._where(condition))
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

    def _where(self, condition: AccessCondition) -> str:
        """Write what a fault's record says of the access: its offset from its root, or its address."""
        if condition.place is None:
            return self._conditions.address(condition.access)
        return self._conditions.offset(condition.place)


def _zero(kind: IRType) -> str:
    return _ZERO.get(kind.kind, "zeroinitializer")
