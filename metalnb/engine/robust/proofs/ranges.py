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
from ..memory_roots import Roots, ScalarPlace
from ..scalar_graph.operand_scalars import Scalar
from .guarded_flow import Condition, GuardedFlow
from .guarded_sums import GuardedSums
from .intervals import Interval, whole
from .operations import ARITHMETIC
from .walked_loops import AFTER

__all__ = ["Ranges"]

_CONVERSIONS = frozenset({"zext", "sext", "trunc"})
_PLACES = 32  # the most offsets of a load from a table of scalars that are considered one by one
_MOST = 4000  # evaluations, six times what the library's kernels need; a kernel that needs more is checked instead
_EACH = 1500  # evaluations for one query
_DEEP = 60  # nested evaluations, of up to ten calls each: Python allows a thousand, less the callers' own

_Answer = TypeVar("_Answer")


class _TooMuch(Exception):
    pass


class Ranges(GuardedSums):
    """The ranges of a function's values, for one dispatch.

    Attributes
    ----------
    read : set of (int, int, int)
        The scalars that the results depend on, besides the grid: argument, first byte and number of bytes.
    """

    def __init__(self, flow: GuardedFlow, roots: Roots, entry: EntryPoint, facts: LaunchFacts) -> None:
        super().__init__(flow)
        self._roots, self._entry, self._facts = roots, entry, facts
        self._spoilt = False
        self._open: set[tuple[Scalar, str]] = set()
        self._forms: dict[str, Callable[[Scalar, str], Interval]] = {
            "zext": self._converted, "sext": self._converted, "trunc": self._converted, "select": self._selected,
            "phi": self._merged, "call": self._called, "load": self._loaded,
        }  # fmt: skip
        self._left, self._floor = _MOST, 0  # evaluations left, and the count at which the current query must stop
        self.read: set[tuple[int, int, int]] = set()

    def of(self, value: Scalar, label: str) -> Interval | None:
        """Return the range of a value in a block; None if it takes too long to find."""
        return self.asked(lambda: self._at(value, label))

    def known(self, value: Scalar, label: str) -> Interval:
        """Return the range of a value, as a separate query."""
        return self._at(value, label)

    def asked(self, question: Callable[[], _Answer]) -> _Answer | None:
        """Return the answer to a nested query; None if it takes too long to find."""
        outer, self._floor = self._floor, self._floor or max(self._left - _EACH, 1)
        try:
            return question()
        except _TooMuch:
            return None
        except RecursionError:  # it may have been raised while assumptions were undone
            self._spoilt = True
            return None
        finally:
            self._floor = outer

    def _at(self, value: Scalar, label: str) -> Interval:
        if value.is_constant:
            return Interval(value.number, value.number)
        if not value.block:
            known = self._entry.parameter_range(value.word, self._facts) if value.op == "parameter" else None
            return known or whole(value.bits)
        if self._spoilt or len(self._open) > _DEEP:
            raise _TooMuch
        after = False
        if not self._flow.current(value, label):
            after = value.integer
            label = value.block
        key = value, AFTER if after else label
        if key in self._memo:
            known, used = self._memo[key]
            self._frames[-1] |= used
            return known
        if key in self._open and value not in self._assumed:
            self._frames[-1].add(value)
            return whole(value.bits)
        for phi in self._flow.carried(value):  # first, since the values computed from it would recurse into it
            if (phi, phi.block) not in self._memo and (phi, phi.block) not in self._open and phi not in self._assumed:
                self._at(phi, phi.block)
        self._left -= 1
        if self._left < self._floor:
            raise _TooMuch
        entered = key not in self._open  # otherwise this would evaluate a consequence of an assumption about it
        self._open.add(key)
        self._frames.append(set())
        try:
            found = self._found(value, label, after=after)
        finally:
            if entered:
                self._open.discard(key)
            mine = self._frames.pop()
        if value not in self._assumed:
            mine.discard(value)
        self._frames[-1] |= mine
        self._memo[key] = found, frozenset(mine)
        self._added.append(key)
        return found

    def _found(self, value: Scalar, label: str, *, after: bool) -> Interval:
        left = self._after(value) if after else None
        if left is not None:
            return left
        if value.op == "phi" and label != value.block:
            found = self._at(value, value.block)
        else:
            found = self._made(value, label).fitted(value.bits)
        if value.integer:
            found = self._cut(value, found, label)
            if value in self._strides:
                found = self._strides[value].kept(found)
        return found

    def taken(self, label: str, target: str) -> bool:
        """Return whether the edge from one block to another may be taken, judged by the known ranges."""
        told = [*self._flow.conditions(label), *self._flow.tested(label, target)]
        return self.asked(lambda: self._possible(told)) is not False

    @functools.cached_property
    def reached(self) -> set[str]:
        """The blocks that may be reached along edges that may be taken."""
        ahead, seen = [self._flow.entry], {self._flow.entry}
        while ahead:
            block = ahead.pop()
            new = [t for t in self._flow.successors[block] if t not in seen and self._leads(block, t)]
            seen.update(new)
            ahead += new
        return seen

    def _leads(self, label: str, target: str) -> bool:
        return self.asked(lambda: self._possible(self._flow.tested(label, target))) is not False

    # ---- The range of each operation.

    def _made(self, value: Scalar, label: str) -> Interval:
        if value in self._assumed:
            self._frames[-1].add(value)
            return self._assumed[value]
        form = self._forms.get(value.op)
        if form is not None:
            return form(value, label)
        if value.op in ARITHMETIC and value.integer:
            return self._computed(value, label)
        return whole(value.bits)

    def _computed(self, value: Scalar, label: str) -> Interval:
        bits, one, other = value.bits, value.operands[0], value.operands[-1]
        a, b = self._at(one, label), self._at(other, label)
        by = other.operands[1].number if other.op == "lshr" and other.operands[0] is one else bits
        if value.op == "sub" and 0 < by < bits:  # a scalar that is not constant has number 0
            a = a.unsigned(bits)
            return Interval(a.low - (a.low >> by), a.high - (a.high >> by))
        if value.op == "sub" and a.low < a.high and b.low < b.high:
            return self.difference(one, other, label, unsigned=True)
        return ARITHMETIC[value.op](a.fitted(bits), b.fitted(other.bits), bits)

    def _converted(self, value: Scalar, label: str) -> Interval:
        return _as(value, self._at(value.operands[0], label))

    def given(self, value: Scalar, condition: Condition, depth: int = 4) -> Interval:
        """Return the range of a value where a condition holds, in addition to those of the block that tests it."""
        found, step = self._at(value, condition.label), self._step(value)
        if depth and (step is not None or value.op in _CONVERSIONS) and self._flow.current(value, condition.label):
            inner = self.given(value.operands[0], condition, depth - 1)
            known = _as(value, inner) if step is None else inner.plus(Interval(step, step))
            found = found.met(known.fitted(value.bits), value.bits)
        return self._told(value, condition, found) if value.integer else found

    def _selected(self, value: Scalar, label: str) -> Interval:
        """Return the range of a select: each side under the condition that chooses it."""
        flag, yes, no = value.operands
        sides = ((yes, True), (no, False))
        return self._hull([self.given(side, Condition(flag, truth, label)) for side, truth in sides], value.bits)

    def _merged(self, value: Scalar, _: str) -> Interval:
        if not value.integer or not value.operands:
            return whole(value.bits)
        if value.block in self._flow.loops:
            return self._carried(value) if self._flow.irreducible is None else whole(value.bits)
        return self._joined(list(zip(value.operands, value.labels, strict=True)), value.block)

    def _called(self, value: Scalar, _: str) -> Interval:
        made = value.made
        if made is None or not value.integer:
            return whole(value.bits)
        known = self._entry.interval(made, (value.part * value.bits // 8, value.bits // 8), self._facts)
        if known is None and self._entry.one_of_them(made) and not self._walking:
            # In the call's block: conditions that this thread tests later do not constrain other threads.
            return self._at(self._roots.values.of(made.operands[0]), value.block)
        return known or whole(value.bits)

    def _loaded(self, value: Scalar, label: str) -> Interval:
        known, made = self._called(value, label), value.made
        if known != whole(value.bits) or made is None or not value.integer:
            return known
        place = self._roots.place_of(self._roots.values.of(made.pointer))
        data = self._numbers(place)
        if data is None or value.bits % 8:
            return known
        number, content = data
        if isinstance(content, int):
            return known if place.terms else Interval(content, content)
        size, found = value.bits // 8, []
        for at in self._offsets(place, label):
            first = at + value.part * size
            if not 0 <= first <= len(content) - size:
                return known
            if number >= 0:
                self.read.add((number, first, size))
            one = int.from_bytes(content[first : first + size], "little")
            found.append(Interval(one, one))
        return self._hull(found, value.bits) if found else known

    def _numbers(self, place: ScalarPlace) -> tuple[int, bytes | bytearray | int] | None:
        """Return the contents of scalars or a constant table, with the argument's number; None for other memory."""
        root = self._roots.root_of(place.root)
        if root is None:
            return None
        content = self._facts.scalars.get(root.number) if root.kind == "argument" else self._roots.table(root.name)
        return None if content is None else (root.number, content)

    def _offsets(self, place: ScalarPlace, label: str) -> list[int]:
        """Return the possible byte offsets of a load from its root; empty if there are too many."""
        total = self.sum_to(place, label)
        if total is None:
            return []
        reach = self._range(total, label)
        apart = math.gcd(*total.terms.values()) or 1
        if reach.high - reach.low > _PLACES * apart:
            return []
        return list(range(reach.low + (total.constant - reach.low) % apart, reach.high + 1, apart))


def _as(value: Scalar, found: Interval) -> Interval:
    """Return the range of a conversion, given its operand's."""
    bits = value.operands[0].bits
    return found if value.op == "trunc" else found.unsigned(bits) if value.op == "zext" else found.signed(bits)
