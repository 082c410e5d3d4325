"""What a thread's own variables hold: the values that are stored there, for who reads one.

clang hands a vector, the thread's position above all, to the kernel's own function in memory. What a load finds there
is one of the values stored, if one of them is sure to come before it and nothing else can write there.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from ...spirv.module import Instruction, Module
from ...spirv.opcodes import Spv
from .flow import Flow
from .pointers import PointerPlace, Roots, TypeSizes

__all__ = ["Stored", "ThreadVariables"]

_FUNCTION = 7
_CHAINS = {Spv.ACCESS_CHAIN, Spv.IN_BOUNDS_ACCESS_CHAIN, Spv.PTR_ACCESS_CHAIN, Spv.IN_BOUNDS_PTR_ACCESS_CHAIN}
_SAME = {Spv.BITCAST, Spv.COPY_OBJECT, Spv.PTR_CAST_TO_GENERIC, Spv.GENERIC_CAST_TO_PTR}
_HARMLESS = {Spv.LIFETIME_START, Spv.LIFETIME_STOP}


class Stored(NamedTuple):
    """A component of a value that is stored."""

    value: int
    axis: int
    label: int


class _Store(NamedTuple):
    instruction: Instruction
    at: int


class ThreadVariables:
    """The variables of a module that its threads have for themselves."""

    def __init__(self, module: Module, layout: TypeSizes, roots: Roots, flows: Mapping[int, Flow]) -> None:
        self._module, self._layout, self._roots, self._flows = module, layout, roots, flows
        self._stores = functools.cache(self._found)

    def read(self, load: Instruction, place: PointerPlace, axis: int) -> list[Stored] | None:
        """Return what a load, or a component of it, may find; None when that is not known."""
        variable = self._variable(place.root)
        stores = self._stores(variable) if variable and not place.terms else None
        if not stores:
            return None
        size, _ = self._part(load.type)
        first = place.fixed + axis * size
        found, sure = [], False
        for store in stores:
            value = store.instruction.words[2]
            part, parts = self._part(self._module.type_of(value))
            if first + size <= store.at or store.at + part * parts <= first:
                continue
            component, odd = divmod(first - store.at, part)
            if part != size or odd or not 0 <= component < parts:
                return None
            found.append(Stored(value, component if parts > 1 else 0, self._homes[store.instruction]))
            sure = sure or self._before(store.instruction, load)
        return found if sure else None

    def _part(self, kind: int) -> tuple[int, int]:
        """Return the bytes of a vector's component, and how many it has."""
        op, *rest = self._module.key(kind)
        return (self._layout.size(rest[0]), rest[1]) if op == Spv.TYPE_VECTOR else (self._layout.size(kind), 1)

    def _variable(self, root: int) -> int:
        """Return the variable that a pointer points to the beginning of; 0 for none, or one of several."""
        made = self._module.definitions[root]
        if made.op == Spv.VARIABLE:
            return root if made.words[3] == _FUNCTION else 0
        passed = self._roots.passed.get(root, ()) if made.op == Spv.FUNCTION_PARAMETER else ()
        places = {self._roots.place(value) for value in passed}
        only = places.pop() if len(places) == 1 else PointerPlace(0, 1)
        return 0 if only.fixed or only.terms or len(passed) != 1 else self._variable(only.root)

    def _before(self, store: Instruction, load: Instruction) -> bool:
        """Say whether a store comes before a load: above it, or above the call of the function that has it."""
        while load not in self._order or self._order[load][0] != self._order[store][0]:
            name = self._order[load][0]
            calls = [i for i in self._order if i.op == Spv.FUNCTION_CALL and i.words[3] == name]
            if len(calls) != 1:
                return False
            load = calls[0]
        name, place = self._order[store]
        if self._homes[store] == self._homes[load]:
            return place < self._order[load][1]
        return self._flows[name].above(self._homes[load], self._homes[store])

    @functools.cached_property
    def _order(self) -> dict[Instruction, tuple[int, int]]:
        return {i: (f.name, n) for f in self._module.functions for n, i in enumerate(f)}

    @functools.cached_property
    def _homes(self) -> dict[Instruction, int]:
        return {i: b.label for f in self._module.functions for b in f.blocks for i in b.instructions}

    @functools.cached_property
    def _users(self) -> dict[int, list[Instruction]]:
        found: dict[int, list[Instruction]] = {}
        for i in self._order:
            for value in self._module.used(i):
                found.setdefault(value, []).append(i)
        return found

    def _found(self, variable: int) -> tuple[_Store, ...] | None:
        """Return all stores to a variable; None when it may be written in ways that are not followed."""
        functions = {f.name: f for f in self._module.functions if f.blocks}
        stores, ahead = [], [variable]
        while ahead:
            pointer = ahead.pop()
            for i in self._users.get(pointer, ()):
                if i.op in _SAME | _CHAINS and i.words[3] == pointer:
                    ahead.append(i.result)
                elif i.op == Spv.FUNCTION_CALL and i.words[3] in functions:
                    params = functions[i.words[3]].head[1:]
                    ahead += [p.result for p, v in zip(params, i.words[4:], strict=True) if v == pointer]
                elif i.op == Spv.STORE and i.words[1] == pointer and i.words[2] != pointer:
                    place = self._roots.place(pointer)
                    if place.terms or self._variable(place.root) != variable:
                        return None
                    stores.append(_Store(i, place.fixed))
                elif i.op not in _HARMLESS and not (i.op == Spv.LOAD and i.words[3] == pointer):
                    return None
        return tuple(stores)
