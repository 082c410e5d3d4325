"""What the conditions on the way to a block tell of the values there."""

from __future__ import annotations

from collections.abc import Mapping

from ...spirv.module import Instruction, Module
from ...spirv.opcodes import Spv
from .flow import Flow
from .intervals import Interval, whole
from .operations import COMPARED, OPPOSITE, TURNED, bounded
from .pointers import TypeSizes

__all__ = ["ConditionRanges"]

_UNDONE = {Spv.I_ADD, Spv.I_SUB, Spv.U_CONVERT, Spv.S_CONVERT}
_TELLING = {
    *COMPARED, *_UNDONE, Spv.LOGICAL_NOT, Spv.LOGICAL_AND, Spv.LOGICAL_OR, Spv.SELECT, Spv.BITWISE_OR, Spv.BITWISE_AND,
    Spv.COMPOSITE_EXTRACT, Spv.COMPOSITE_CONSTRUCT, Spv.COMPOSITE_INSERT,
}  # fmt: skip


class ConditionRanges:
    """The part of `Ranges` that conditions tell."""

    def __init__(self, module: Module, layout: TypeSizes, flows: Mapping[int, Flow]) -> None:
        self._module, self._layout, self._flows = module, layout, flows
        self._bits = layout.bits
        self._names: dict[int, set[int]] = {}
        self._owner = {v: name for name, flow in flows.items() for v in flow.home}

    def _at(self, value: int, label: int, axis: int) -> Interval:
        raise NotImplementedError

    def _cut(self, value: int, found: Interval, bits: int, label: int, flow: Flow) -> Interval:
        part = self._module.definitions[value].op == Spv.COMPOSITE_EXTRACT  # a condition may be on the vector
        for flag, truth, where in flow.conditions(label):
            if (part or value in self._named(flag)) and flow.current(value, where):
                for known in self._told(value, flag, truth, where, found):
                    found = found.met(known, bits)
        return found

    def _named(self, flag: int) -> set[int]:
        """Return the values of which a condition may tell something: it is made of them, and of what they are made."""
        if flag not in self._names:
            found, ahead = {flag}, [flag]
            while ahead:
                made = self._module.definitions[ahead.pop()]
                new = [u for u in self._module.used(made) if u not in found] if made.op in _TELLING else []
                found.update(new)
                ahead += new
            self._names[flag] = found
        return self._names[flag]

    def _told(  # noqa: PLR0911
        self, value: int, flag: int, truth: bool, label: int, now: Interval,
    ) -> list[Interval]:  # fmt: skip
        """Return the ranges of a value that follow from a condition, given what is known of it now."""
        made = self._module.definitions[flag]
        op, words = made.op, made.words
        owner = self._owner.get(flag)
        if owner is None or not self._flows[owner].current(flag, label):
            return []
        if op == Spv.LOGICAL_NOT:
            return self._told(value, words[3], not truth, label, now)
        if op == (Spv.LOGICAL_AND if truth else Spv.LOGICAL_OR):
            return [k for w in words[3:5] for k in self._told(value, w, truth, label, now)]
        if op == Spv.SELECT:  # what && and || are made of
            fixed = self._module.definitions[words[5] if truth else words[4]].op
            if fixed in ({Spv.CONSTANT_FALSE, Spv.CONSTANT_NULL} if truth else {Spv.CONSTANT_TRUE}):
                parts = (words[3], words[4] if truth else words[5])
                return [k for w in parts for k in self._told(value, w, truth, label, now)]
            return []
        if op in {Spv.I_EQUAL, Spv.I_NOT_EQUAL} and self._is_zero(words[4]):
            found = self._told_by_bits(value, words[3], (op == Spv.I_EQUAL) == truth, label, now)
            if found:
                return found
        return self._compared(value, made, 0, truth, label, now) if op in COMPARED else []

    def _is_zero(self, value: int) -> bool:
        return self._layout.is_constant(value) and self._layout.constant(value) == 0

    def _told_by_bits(self, value: int, number: int, zero: bool, label: int, now: Interval) -> list[Interval]:
        """Return what follows from a number that is 0, or is not: a comparison of vectors gives such numbers."""
        made = self._module.definitions[number]
        if made.op == (Spv.BITWISE_OR if zero else Spv.BITWISE_AND):
            return [k for w in made.words[3:5] for k in self._told_by_bits(value, w, zero, label, now)]
        if made.op != Spv.COMPOSITE_EXTRACT or len(made.words) != 5:
            return []
        chosen = self._module.definitions[made.words[3]]
        if chosen.op != Spv.SELECT:
            return []
        test, yes, no = (self._module.definitions[w] for w in chosen.words[3:6])
        if no.op != Spv.CONSTANT_NULL or yes.op != Spv.CONSTANT_COMPOSITE or any(map(self._is_zero, yes.words[3:])):
            return []
        return self._compared(value, test, made.words[4], not zero, label, now) if test.op in COMPARED else []

    def _compared(
        self, value: int, made: Instruction, axis: int, truth: bool, label: int, now: Interval,
    ) -> list[Interval]:  # fmt: skip
        """Return what a comparison tells of a value, or one of its components."""
        found = []
        for mine, other, turned in ((*made.words[3:5], False), (*made.words[4:2:-1], True)):
            relation = COMPARED[made.op] if truth else OPPOSITE[COMPARED[made.op]]
            relation = TURNED[relation] if turned else relation
            part = self._component(mine, axis)
            source = self._component(value, 0) if self._module.definitions[value].op == Spv.COMPOSITE_EXTRACT else value
            same = part in {value, source}
            if same or self._made_from(mine, value):
                here = now if same else self._moved(mine, now)
                known = bounded(relation, self._at(other, label, axis), self._bits(mine), here)
                if known is not None and not same:
                    known = self._undone(mine, value, known, now)
                found += [known] if known is not None else []
        return found

    def _component(self, value: int, axis: int) -> int | tuple[int, int]:
        """Return what a component of a vector is: a value, or a vector and a place in it; a scalar is itself."""
        made = self._module.definitions.get(value)
        if made is None:
            return value
        words = made.words
        if made.op == Spv.COMPOSITE_EXTRACT and len(words) == 5:
            return self._component(words[3], words[4])
        if made.op == Spv.COMPOSITE_CONSTRUCT and len(words) > 3 + axis:
            return self._component(words[3 + axis], 0)
        if made.op == Spv.COMPOSITE_INSERT and len(words) == 6:
            return self._component(words[3], 0) if words[5] == axis else self._component(words[4], axis)
        if self._module.key(self._module.type_of(value))[0] == Spv.TYPE_VECTOR:
            return value, axis
        return value

    def _made_from(self, compared: int, value: int) -> bool:
        made = self._module.definitions.get(compared)
        return compared == value or (made is not None and made.op in _UNDONE and made.words[3] == value)

    def _moved(self, compared: int, now: Interval) -> Interval:
        """Return the range of a sum or a conversion of a value, as far as that is simple."""
        made = self._module.definitions[compared]
        if made.op in {Spv.I_ADD, Spv.I_SUB} and self._layout.is_constant(made.words[4]):
            return now.plus(self._step(made))
        return whole(self._bits(compared))

    def _step(self, made: Instruction) -> Interval:
        number = self._layout.constant(made.words[4]) * (1 if made.op == Spv.I_ADD else -1)
        return Interval(number, number)

    def _undone(self, compared: int, value: int, known: Interval, now: Interval) -> Interval | None:
        """Return what is known of a value, from what is known of a sum or a conversion of it; None for nothing."""
        if compared == value:
            return known
        made = self._module.definitions[compared]
        if made.op in {Spv.I_ADD, Spv.I_SUB}:
            return known.minus(self._step(made)) if self._layout.is_constant(made.words[4]) else None
        bits = self._bits(compared)
        if bits < self._bits(value):  # cut: the same number as long as the value is that small
            if now.within(Interval(0, (1 << bits - 1) - 1)):
                return known.signed(bits)
            return known.unsigned(bits) if now.within(whole(bits)) else None
        return known.unsigned(bits) if made.op == Spv.U_CONVERT else known.signed(bits)
