"""The range of each integer of a kernel in one dispatch, from the grid, the scalars and the guards on the path.

These ranges prove accesses in bounds before the dispatch starts. The host computes them once per grid and sizes.
An index's range follows from those of the thread's position, the caller's scalars and the loop counters, each
narrowed by the conditions on the path. A value read from a buffer can be anything.

Source: P. and R. Cousot, Abstract interpretation (1977).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TypeVar

from ..entry_protocol import EntryPoint
from ..launch_facts import LaunchFacts
from ..memory_roots import Roots, ScalarAddress
from ..scalar_graph.operand_scalars import Scalar
from .guarded_flow import Condition, GuardedFlow
from .guarded_sums import GuardedSums
from .intervals import Interval, full_range
from .loop_evaluation import AFTER_LOOP
from .transfer_functions import ARITHMETIC, CONVERSIONS

__all__ = ["Ranges"]

_MAX_OFFSETS = 32  # the most offsets of a load from a table of scalars that are considered one by one
# Evaluations: six times as many as the library's kernels need; a kernel that needs more is checked instead.
_MAX_EVALUATIONS = 4000
_MAX_PER_QUERY = 1500  # evaluations for one query
_MAX_DEPTH = 60  # nested evaluations, of up to ten calls each: Python allows a thousand, less the callers' own

_Answer = TypeVar("_Answer")


class _OutOfBudget(Exception):
    pass


class Ranges(GuardedSums):
    """The ranges of a function's values, for one dispatch.

    Attributes
    ----------
    dependencies : set of (int, int, int)
        The scalars that the results depend on, besides the grid: argument, first byte and number of bytes.
    """

    def __init__(self, flow: GuardedFlow, roots: Roots, entry: EntryPoint, facts: LaunchFacts) -> None:
        super().__init__(flow)
        self._roots, self._entry, self._facts = roots, entry, facts
        self._is_corrupt = False
        self._in_progress: set[tuple[Scalar, str]] = set()
        self._forms: dict[str, Callable[[Scalar, str], Interval]] = {
            **dict.fromkeys(CONVERSIONS, self._conversion_range), "select": self._select_range,
            "phi": self._phi_range, "call": self._call_range, "load": self._load_range,
        }  # fmt: skip
        # Evaluations left, and the count at which the current query must stop.
        self._budget, self._floor = _MAX_EVALUATIONS, 0
        self.dependencies: set[tuple[int, int, int]] = set()

    def of(self, value: Scalar, label: str) -> Interval | None:
        """Return the range of a value in a block; None if it takes too long to find."""
        return self.within_budget(lambda: self._range_at(value, label))

    def range_at(self, value: Scalar, label: str) -> Interval:
        """Return the range of a value, within the current query's budget."""
        return self._range_at(value, label)

    def within_budget(self, query: Callable[[], _Answer]) -> _Answer | None:
        """Return the answer to a nested query; None if it takes too long to find."""
        outer, self._floor = self._floor, self._floor or max(self._budget - _MAX_PER_QUERY, 1)
        try:
            return query()
        except _OutOfBudget:
            return None
        except RecursionError:  # the error may have been raised while assumptions were undone
            self._is_corrupt = True
            return None
        finally:
            self._floor = outer

    def _range_at(self, value: Scalar, label: str) -> Interval:
        if value.is_constant:
            return Interval(value.number, value.number)
        if not value.block:
            result = self._entry.parameter_range(value.word, self._facts) if value.op == "parameter" else None
            return result or full_range(value.bits)
        if self._is_corrupt or len(self._in_progress) > _MAX_DEPTH:
            raise _OutOfBudget
        after_loop = False
        if not self._flow.is_current(value, label):
            after_loop = value.integer
            label = value.block
        key = value, AFTER_LOOP if after_loop else label
        if key in self._memo:
            result, dependencies = self._memo[key]
            self._frames[-1] |= dependencies
            return result
        if key in self._in_progress and value not in self._assumptions:
            self._frames[-1].add(value)
            return full_range(value.bits)
        for phi in self._flow.loop_phis(value):  # phis first: the values computed from them would recurse into them
            phi_key = phi, phi.block
            if phi_key not in self._memo and phi_key not in self._in_progress and phi not in self._assumptions:
                self._range_at(phi, phi.block)
        self._budget -= 1
        if self._budget < self._floor:
            raise _OutOfBudget
        is_new = key not in self._in_progress  # otherwise this would evaluate a consequence of an assumption about it
        self._in_progress.add(key)
        self._frames.append(set())
        try:
            result = self._evaluate(value, label, after_loop=after_loop)
        finally:
            if is_new:
                self._in_progress.discard(key)
            assumptions = self._frames.pop()
        if value not in self._assumptions:
            assumptions.discard(value)
        self._frames[-1] |= assumptions
        self._memo[key] = result, frozenset(assumptions)
        self._memo_keys.append(key)
        return result

    def _evaluate(self, value: Scalar, label: str, *, after_loop: bool) -> Interval:
        final = self._range_after_loop(value) if after_loop else None
        if final is not None:
            return final
        if value.op == "phi" and label != value.block:
            result = self._range_at(value, value.block)
        else:
            result = self._operation_range(value, label).normalize(value.bits)
        if value.integer:
            result = self._narrow_by_path(value, result, label)
            if value in self._strides:
                result = self._strides[value].align(result)
        return result

    def may_take_edge(self, label: str, target: str) -> bool:
        """Return whether the edge from one block to another may be taken, judged by the known ranges."""
        conditions = [*self._flow.conditions(label), *self._flow.edge_conditions(label, target)]
        return self.within_budget(lambda: self._can_hold(conditions)) is not False

    @functools.cached_property
    def reachable(self) -> set[str]:
        """The blocks that may be reached along edges that may be taken."""
        worklist, visited = [self._flow.entry], {self._flow.entry}
        while worklist:
            block = worklist.pop()
            unvisited = [t for t in self._flow.successors[block] if t not in visited and self._may_branch(block, t)]
            visited.update(unvisited)
            worklist += unvisited
        return visited

    def _may_branch(self, label: str, target: str) -> bool:
        return self.within_budget(lambda: self._can_hold(self._flow.edge_conditions(label, target))) is not False

    # ---- The range of each operation.

    def _operation_range(self, value: Scalar, label: str) -> Interval:
        if value in self._assumptions:
            self._frames[-1].add(value)
            return self._assumptions[value]
        form = self._forms.get(value.op)
        if form is not None:
            return form(value, label)
        if value.op in ARITHMETIC and value.integer:
            return self._arithmetic_range(value, label)
        return full_range(value.bits)

    def _arithmetic_range(self, value: Scalar, label: str) -> Interval:
        bits, left, right = value.bits, value.operands[0], value.operands[-1]
        a, b = self._range_at(left, label), self._range_at(right, label)
        shift = right.operands[1].number if right.op == "lshr" and right.operands[0] is left else bits
        if value.op == "sub" and 0 < shift < bits:  # a scalar that is not constant has number 0
            a = a.unsigned(bits)
            return Interval(a.low - (a.low >> shift), a.high - (a.high >> shift))
        if value.op == "sub" and a.low < a.high and b.low < b.high:
            return self.difference(left, right, label, unsigned=True)
        return ARITHMETIC[value.op](a.normalize(bits), b.normalize(right.bits), bits)

    def _conversion_range(self, value: Scalar, label: str) -> Interval:
        return _convert(value, self._range_at(value.operands[0], label))

    def range_under(self, value: Scalar, condition: Condition, depth: int = 4) -> Interval:
        """Return the range of a value where a condition holds, besides the conditions of the block that tests it."""
        result, step = self._range_at(value, condition.label), self._added_constant(value)
        if depth and (step is not None or value.op in CONVERSIONS) and self._flow.is_current(value, condition.label):
            inner = self.range_under(value.operands[0], condition, depth - 1)
            derived_range = _convert(value, inner) if step is None else inner.plus(Interval(step, step))
            result = result.intersect(derived_range.normalize(value.bits), value.bits)
        return self._narrow(value, condition, result) if value.integer else result

    def _select_range(self, value: Scalar, label: str) -> Interval:
        """Return the range of a select: each side under the condition that chooses it."""
        flag, yes, no = value.operands
        sides = ((yes, True), (no, False))
        return self._hull([self.range_under(side, Condition(flag, truth, label)) for side, truth in sides], value.bits)

    def _phi_range(self, value: Scalar, _: str) -> Interval:
        if not value.integer or not value.operands:
            return full_range(value.bits)
        if value.block in self._flow.loops:
            return self._loop_phi_range(value) if self._flow.irreducible is None else full_range(value.bits)
        return self._merge(list(zip(value.operands, value.labels, strict=True)), value.block)

    def _call_range(self, value: Scalar, _: str) -> Interval:
        inst = value.inst
        if inst is None or not value.integer:
            return full_range(value.bits)
        result = self._entry.result_range(inst, (value.part * value.bits // 8, value.bits // 8), self._facts)
        if result is None and self._entry.returns_operand(inst) and not self._walk_depth:
            # In the call's block: conditions that this thread tests later do not constrain other threads.
            return self._range_at(self._roots.values.of(inst.operands[0]), value.block)
        return result or full_range(value.bits)

    def _load_range(self, value: Scalar, label: str) -> Interval:
        call_range, inst = self._call_range(value, label), value.inst
        if call_range != full_range(value.bits) or inst is None or not value.integer:
            return call_range
        address = self._roots.address_of(self._roots.values.of(inst.pointer))
        data = self._contents(address)
        if data is None or value.bits % 8:
            return call_range
        number, content = data
        if isinstance(content, int):
            return call_range if address.terms else Interval(content, content)
        size, elements = value.bits // 8, []
        for offset in self._offsets(address, label):
            first = offset + value.part * size
            if not 0 <= first <= len(content) - size:
                return call_range
            if number >= 0:
                self.dependencies.add((number, first, size))
            element = int.from_bytes(content[first : first + size], "little")
            elements.append(Interval(element, element))
        return self._hull(elements, value.bits) if elements else call_range

    def _contents(self, address: ScalarAddress) -> tuple[int, bytes | bytearray | int] | None:
        """Return the contents of scalars or a constant table, with the argument's number; None for other memory."""
        root = self._roots.root_of(address.root)
        if root is None:
            return None
        content = self._facts.scalars.get(root.number) if root.kind == "argument" else self._roots.table(root.name)
        return None if content is None else (root.number, content)

    def _offsets(self, address: ScalarAddress, label: str) -> list[int]:
        """Return the possible byte offsets of a load from its root; empty if there are too many."""
        total = self.offset_sum(address, label)
        if total is None:
            return []
        reach = self._sum_range(total, label)
        stride = math.gcd(*total.terms.values()) or 1
        if reach.high - reach.low > _MAX_OFFSETS * stride:
            return []
        return list(range(reach.low + (total.constant - reach.low) % stride, reach.high + 1, stride))


def _convert(value: Scalar, interval: Interval) -> Interval:
    """Return the range of a conversion, given its operand's."""
    bits = value.operands[0].bits
    return interval if value.op == "trunc" else interval.unsigned(bits) if value.op == "zext" else interval.signed(bits)
