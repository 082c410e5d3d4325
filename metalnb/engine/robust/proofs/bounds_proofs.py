"""A pointer's room: the bytes before and after it in its buffer, which an access through it may use.

A pointer that a loop advances moves by the step in each iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..launch_facts import LaunchFacts
from ..memory_roots import Roots, ScalarAddress
from ..scalar_graph.operand_scalars import Scalar
from .guarded_flow import Condition, GuardedFlow
from .intervals import Interval
from .loop_counters import Incoming
from .ranges import Ranges

__all__ = ["PointerRooms", "Room"]

_Offset = Callable[[ScalarAddress, str], Interval | None]


class Room(NamedTuple):
    """The bytes before a pointer, and those from it to the end of its buffer."""

    before: int
    after: int

    def shift(self, offset: Interval) -> Room:
        """Return the room of a pointer at an offset from this one."""
        return Room(self.before + offset.low, self.after - offset.high)

    def intersect(self, other: Room) -> Room:
        """Return the intersection: the room that both pointers have."""
        return Room(min(self.before, other.before), min(self.after, other.after))

    def fits(self, size: int) -> bool:
        """Return whether an access of `size` bytes stays in bounds."""
        return self.before >= 0 and self.after >= size


class PointerRooms:
    """The rooms of a function's pointers, for one dispatch."""

    def __init__(self, flow: GuardedFlow, roots: Roots, facts: LaunchFacts, ranges: Ranges) -> None:
        self._flow, self._roots, self._facts, self._ranges = flow, roots, facts, ranges
        self._memo: dict[tuple[Scalar, str], Room | None] = {}

    def offset_range(self, address: ScalarAddress, label: str) -> Interval | None:
        """Return a target's offset from its root in a block, in bytes."""
        return self._ranges.within_budget(
            lambda: self._sum_terms(address, lambda index: self._ranges.range_at(index, label))
        )  # fmt: skip

    def _sum_terms(self, address: ScalarAddress, range_of: Callable[[Scalar], Interval]) -> Interval:
        total = Interval(address.offset, address.offset)
        for index, step in address.terms:
            total = total.plus(range_of(index).signed(index.bits).times(Interval(step, step)))
        return total

    def guarded_offset_range(self, address: ScalarAddress, label: str) -> Interval | None:
        """Return the same range, narrowed also by conditions on sums of its terms, which takes longer."""
        return self._ranges.within_budget(lambda: self._ranges.guarded_range(address, label))

    def of(self, pointer: Scalar, label: str, offset: _Offset | None = None) -> Room | None:
        """Return the room of a pointer in a block; None if unknown."""
        address = self._roots.address_of(pointer)
        room = self._root_room(address.root, label)
        distance = None if room is None else (offset or self.offset_range)(address, label)
        return None if room is None or distance is None else room.shift(distance)

    def _root_room(self, root: Scalar, label: str) -> Room | None:
        key = root, label
        if key not in self._memo:
            self._memo[key] = None  # a pointer that depends on itself is unknown
            self._memo[key] = self._find_root_room(root, label)
        return self._memo[key]

    def _find_root_room(self, root: Scalar, label: str) -> Room | None:
        memory = self._roots.root_of(root)
        if memory is not None:
            return Room(0, self._facts.sizes[memory.number] if memory.kind == "argument" else memory.size)
        if root.op == "select":
            return self._select_room(root, label)
        if root.op != "phi":
            return None
        if root.block not in self._flow.loops:
            incoming = list(zip(root.operands, root.labels, strict=True))
            return self._common_room([p for p in incoming if self._ranges.may_take_edge(p[1], root.block)] or incoming)
        rotated = self._rotated_pointers(root)
        return self._advancing_room(root, label) if rotated is None else self._common_room(rotated)

    def _select_room(self, root: Scalar, label: str) -> Room | None:
        """Return the room of a select: of both pointers, each under the condition that selects it."""
        flag, *sides = root.operands

        def offset(condition: Condition) -> _Offset:
            def range_of(index: Scalar) -> Interval:
                return self._ranges.range_under(index, condition)

            return lambda address, _: self._ranges.within_budget(lambda: self._sum_terms(address, range_of))

        rooms = [
            self.of(side, label, offset(Condition(flag, truth, label)))
            for side, truth in zip(sides, (True, False), strict=True)
        ]
        return _intersect_all(rooms)

    def _common_room(self, pointers: Incoming) -> Room | None:
        return _intersect_all([self.of(pointer, label) for pointer, label in pointers])

    def _rotated_pointers(self, root: Scalar) -> Incoming | None:
        """Return the pointers that a loop rotates or reassigns; None if the loop advances the pointer."""
        starts: Incoming = []
        worklist, visited = [root], {root}
        while worklist:
            phi = worklist.pop()
            for pointer, before in zip(phi.operands, phi.labels, strict=True):
                address = self._roots.address_of(pointer)
                if address.root.op != "phi" or address.root.block != root.block:
                    starts.append((pointer, before))
                elif address.offset or address.terms:
                    return None
                elif address.root not in visited:
                    visited.add(address.root)
                    worklist.append(address.root)
        return starts

    def _advancing_room(self, root: Scalar, label: str) -> Room | None:
        """Return the room of a pointer that a loop advances."""
        room = self._common_room(self._flow.incoming(root, back_edges=False))
        if room is None:
            return None
        steps = []
        for pointer, latch in self._flow.incoming(root, back_edges=True):
            address = self._roots.address_of(pointer)
            step = self.offset_range(address, latch) if address.root is root else None
            if step is None:
                return None
            steps.append(step)
        low, high = min(0, *(s.low for s in steps)), max(0, *(s.high for s in steps))
        if low == high:
            return room
        count = self._ranges.iterations_before(root.block, label)
        return None if count is None else room.shift(Interval(low * count, high * count))


def _intersect_all(rooms: list[Room | None]) -> Room | None:
    """Return the intersection of all rooms; None when one is unknown."""
    result = rooms[0] if rooms else None
    for room in rooms[1:]:
        result = None if room is None or result is None else result.intersect(room)
    return result
