"""Trace each pointer to its root, and to its distance from that root in bytes.

Source: LLVM Language Reference, "getelementptr".
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ..llvm.constant_values import constants_of, memory_of
from ..llvm.control_flow import reverse_postorder
from ..llvm.instructions import IRFunction, IRInstruction, IRModule
from ..llvm.llvm_types import MemoryLayout, UnreadText, split_type
from .entry_protocol import EntryPoint, Root
from .scalar_graph.operand_scalars import Scalar
from .scalar_graph.ssa_values import ScalarGraph

__all__ = ["PointerPlace", "Root", "Roots", "ScalarPlace"]

_SPACE = re.compile(r"addrspace\(\d+\)")


@dataclass(frozen=True, slots=True)
class PointerPlace:
    """A pointer's target: a root, and the offset from there in bytes, modulo 2^64.

    Attributes
    ----------
    root : str
        The name of a pointer that is not computed from another.
    fixed : int
        The constant bytes.
    terms : tuple of (str, int)
        Integers, sign-extended to 64 bits, each with its stride in bytes.
    """

    root: str
    fixed: int
    terms: tuple[tuple[str, int], ...]


class ScalarPlace(NamedTuple):
    """A pointer's target in terms of values instead of names."""

    root: Scalar
    fixed: int = 0
    terms: tuple[tuple[Scalar, int], ...] = ()


class Roots:
    """Finds where pointers point to.

    Parameters
    ----------
    module : IRModule
    entry : EntryPoint

    Attributes
    ----------
    function : IRFunction
    layout : MemoryLayout
    order : list of str
        The reachable blocks, each after its dominators.
    values : ScalarGraph
    """

    def __init__(self, module: IRModule, entry: EntryPoint) -> None:
        self.function: IRFunction = module.functions[entry.function]
        self.layout: MemoryLayout = module.layout
        self.order = reverse_postorder(self.function)
        self.values = ScalarGraph(self.function, self.order)
        self._module, self._entry = module, entry
        self.place_of = functools.cache(self._place_of)
        self.root_of = functools.cache(self._root_of)

    # ---- Lookup by LLVM names.

    def place(self, pointer: str) -> PointerPlace:
        """Return where a pointer points to."""
        place = self.place_of(self.values.by_name(pointer))
        return PointerPlace(self.name(place.root), place.fixed, tuple((s.name, stride) for s, stride in place.terms))

    def root(self, name: str) -> Root | None:
        """Return the memory whose start a value points to; None if that is ambiguous or unknown."""
        return self.root_of(self.values.by_name(name))

    def sources(self, name: str) -> frozenset[str]:
        """Return the names of the roots that a root may come from; all roots if unknown."""
        names, all_known = set[str](), True
        for source in self._sources(self.values.by_name(name), set()):
            root = self.root_of(source)
            all_known &= root is not None
            names |= {root.name} if root else set()
        return frozenset(names) if all_known else self.all_names

    def may_be_loaded(self, pointer: str) -> bool:
        """Return whether a pointer may come from inside an argument, and so lead to memory that no launch describes."""
        worklist, seen = [self.values.by_name(pointer)], set[Scalar]()
        while worklist:
            loaded = [s.inst for s in self._sources(worklist.pop(), seen) if s.op == "load" and s.inst is not None]
            for holder in (self.values.of(inst.pointer) for inst in loaded):
                root = self.root_of(self.place_of(holder).root)
                if root is not None and root.kind == "argument":
                    return True
                worklist.append(holder)
        return False

    @functools.cached_property
    def all_names(self) -> frozenset[str]:
        """The names of all roots, one for each argument."""
        names: dict[tuple[int, str], str] = {}
        for value in self.values.pointers:
            root = self.root_of(value)
            if root is not None:
                names.setdefault((root.number, root.name if root.kind == "variable" else ""), root.name)
        return frozenset(names.values())

    @functools.cached_property
    def _tables(self) -> dict[str, bytes]:
        tables = {}
        for name, kind, text in constants_of(self._module):
            with contextlib.suppress(UnreadText):
                tables[f"@{name}"] = memory_of(kind, text, self.layout)
        return tables

    def table(self, name: str) -> bytes | None:
        """Return the contents of one of the module's constants; None if they are not all numbers."""
        return self._tables.get(name)

    def name(self, pointer: Scalar) -> str:
        """Return the name of a pointer; for an integer that is never used as one, its own name."""
        return self.values.pointers.get(pointer, pointer.name)

    # ---- Lookup by values.

    def _root_of(self, value: Scalar) -> Root | None:
        inst = value.inst
        if value.op == "global":
            size = _global_size(self._module, value.word, self.layout)
            kind = _global_type(self._module, value.word)
            return None if size is None else Root("variable", -1, size, value.word, kind)
        if inst is not None and inst.opcode == "alloca" and inst.element:
            return Root("variable", -1, self.layout.size(inst.element), value.name, inst.type.text)
        return self._entry.root(value.name) if value.name else None

    def _sources(self, value: Scalar, seen: set[Scalar]) -> Iterator[Scalar]:
        """Yield the pointers that a pointer may be computed from."""
        worklist = [value]
        while worklist:
            root = self.place_of(worklist.pop()).root
            if root in seen or (root.is_constant and not root.number):
                continue
            seen.add(root)
            if root.op in {"phi", "select"}:
                worklist += root.operands[root.op == "select" :]
            else:
                yield root

    def _place_of(self, pointer: Scalar) -> ScalarPlace:
        fixed, terms = 0, list[tuple[Scalar, int]]()
        while True:
            inst = pointer.inst
            if pointer.op == "getelementptr" and inst is not None:
                constant, scaled = self._index_terms(pointer, inst)
                fixed, terms = fixed + constant, scaled + terms
            elif pointer.op == "add" and pointer.operands[1].is_constant:
                fixed += pointer.operands[1].number
            else:
                return ScalarPlace(pointer, fixed, tuple(terms))
            pointer = pointer.operands[0]

    def _index_terms(self, pointer: Scalar, inst: IRInstruction) -> tuple[int, list[tuple[Scalar, int]]]:
        """Return the offset that a getelementptr adds: constant bytes, and indices with their strides."""
        kind, fixed, terms = inst.element, 0, []
        for n, index in enumerate(pointer.operands[1:]):
            if kind is None:
                break
            if n and self.layout.resolved(kind).kind == "struct":
                offset, kind = self.layout.field(kind, index.number)
                fixed += offset
                continue
            kind = self.layout.resolved(kind).element if n else kind
            size = self.layout.size(kind)
            if index.is_constant:
                fixed += index.number * size
            elif size:
                terms.append((index, size))
        return fixed, terms


def _global_type(module: IRModule, name: str) -> str:
    """Return the type of the pointer that a global variable is."""
    words, _, _ = module.globals.get(name[1:], "").partition(" global ")[0].partition(" constant ")
    space = _SPACE.search(words)
    return f"ptr {space[0]}" if space else "ptr"


def _global_size(module: IRModule, name: str, layout: MemoryLayout) -> int | None:
    """Return the bytes of a global variable that the module defines."""
    _, _, line = module.globals.get(name[1:], "").partition(" = ")
    words = line.replace("constant ", "global ", 1) if "external " not in line else ""
    _, found, defined = words.partition("global ")
    try:
        return layout.size(split_type(defined)[0]) if found else None
    except UnreadText:
        return None
