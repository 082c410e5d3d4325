"""How much memory there is before and behind a pointer, where it points into what is known: what an access may use.

A pointer that a loop moves on is as far from its start as the loop's counter is from its own, times the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...spirv.module import Module
from ...spirv.opcodes import Spv
from .flow import Flow
from .intervals import Interval
from .launch_facts import LaunchFacts
from .pointers import PointerPlace, Roots, TypeSizes
from .ranges import Ranges

__all__ = ["PointerRooms", "Room"]

_INPUT = 1


class Room(NamedTuple):
    """Bytes before a pointer, and from it on."""

    before: int
    behind: int

    def shifted(self, offset: Interval) -> Room:
        """Return the room of a pointer that is so far from this one."""
        return Room(self.before + offset.low, self.behind - offset.high)

    def met(self, other: Room) -> Room:
        """Return what both have."""
        return Room(min(self.before, other.before), min(self.behind, other.behind))


class PointerRooms:
    """The rooms of a module's pointers, for one dispatch."""

    def __init__(
        self, module: Module, layout: TypeSizes, roots: Roots, params: Mapping[int, int], facts: LaunchFacts,
        flows: Mapping[int, Flow], ranges: Ranges,
    ) -> None:  # fmt: skip
        self._module, self._layout, self._roots, self._params = module, layout, roots, params
        self._facts, self._flows, self._ranges = facts, flows, ranges
        self._owner = {v: name for name, flow in flows.items() for v in flow.home}
        self._memo: dict[tuple[int, int], Room | None] = {}

    def offset(self, place: PointerPlace, label: int) -> Interval | None:
        """Return how far a place is from its root, in bytes, where a block has it."""
        total = Interval(place.fixed, place.fixed)
        for index, step in place.terms:
            found = self._ranges.of(index, label)
            if found is None:
                return None
            bits = self._module.key(self._module.type_of(index))[1]
            total = total.plus(found.signed(bits).times(Interval(step, step)))
        return total

    def of(self, pointer: int, label: int) -> Room | None:
        """Return the room of a pointer, where a block has it; None where nothing is known of it."""
        place = self._roots.place(pointer)
        room = self._root(place.root, label)
        offset = None if room is None else self.offset(place, label)
        return None if room is None or offset is None else room.shifted(offset)

    def guarded(self, pointer: int, label: int) -> Room | None:
        """Return the room of a pointer by the conditions on sums of its parts, which takes longer."""
        place = self._roots.place(pointer)
        room = self._root(place.root, label)
        offset = None if room is None else self._ranges.asked(lambda: self._ranges.guarded(place, label))
        return None if room is None or offset is None else room.shifted(offset)

    def _root(self, root: int, label: int) -> Room | None:
        key = root, label
        if key not in self._memo:
            self._memo[key] = None  # what depends on itself is not known
            self._memo[key] = self._found(root, label)
        return self._memo[key]

    def _found(self, root: int, label: int) -> Room | None:  # noqa: PLR0911  (a case each)
        made = self._module.definitions[root]
        if made.op == Spv.VARIABLE:
            return None if made.words[3] == _INPUT else Room(
                0, self._layout.size(self._module.key(made.type)[2]),
            )
        if made.op == Spv.FUNCTION_PARAMETER:
            if root in self._params:
                return Room(0, self._facts.sizes[self._params[root]])
            passed = self._roots.passed.get(root, [])
            return self._all([(v, self._flows[self._owner[v]].home[v] if v in self._owner else 0) for v in passed])
        if made.op == Spv.SELECT:
            return self._all([(value, label) for value in made.words[4:6]])
        if made.op == Spv.PHI:
            flow = self._flows[self._owner[root]]
            incoming = list(zip(made.words[3::2], made.words[4::2], strict=True))
            head = flow.home[root]
            if head not in flow.loops:
                return self._all([p for p in incoming if self._ranges.taken(p[1], head)] or incoming)
            swapped = self._swapped(root, flow)
            if swapped is not None:
                return self._all(swapped)
            return self._moved(root, label, [p for p in incoming if p[1] in flow.loops[head]],
                               [p for p in incoming if p[1] not in flow.loops[head]], flow)  # fmt: skip
        return None

    def _all(self, pointers: list[tuple[int, int]]) -> Room | None:
        rooms = [self.of(pointer, label) for pointer, label in pointers]
        found = rooms[0] if rooms else None
        for room in rooms[1:]:
            found = None if room is None or found is None else found.met(room)
        return found

    def _swapped(self, root: int, flow: Flow) -> list[tuple[int, int]] | None:
        """Return what a loop's pointer is one of, which the loop swaps or sets anew; None for one that it moves on."""
        head, starts, ahead, seen = flow.home[root], [], [root], {root}
        while ahead:
            words = self._module.definitions[ahead.pop()].words
            for pointer, before in zip(words[3::2], words[4::2], strict=True):
                place = self._roots.place(pointer)
                if self._module.definitions[place.root].op != Spv.PHI or flow.home[place.root] != head:
                    starts.append((pointer, before))
                elif place.fixed or place.terms:
                    return None
                elif place.root not in seen:
                    seen.add(place.root)
                    ahead.append(place.root)
        return starts

    def _moved(
        self, root: int, label: int, again: list[tuple[int, int]], starts: list[tuple[int, int]], flow: Flow,
    ) -> Room | None:  # fmt: skip
        """Return the room of a pointer that a loop moves on."""
        room = self._all(starts)
        if room is None:
            return None
        steps = []
        for pointer, latch in again:
            place = self._roots.place(pointer)
            step = self.offset(place, latch) if place.root == root else None
            if step is None:
                return None
            steps.append(step)
        low, high = min(0, *(s.low for s in steps)), max(0, *(s.high for s in steps))
        if low == high:
            return room
        turns = self._ranges.turns_before(flow, flow.home[root], label)
        return None if turns is None else room.shifted(Interval(low * turns, high * turns))
