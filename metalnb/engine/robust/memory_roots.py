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

from ..llvm.constant_values import constant_bytes, read_constants
from ..llvm.control_flow import reverse_postorder
from ..llvm.instructions import IRFunction, IRInstruction, IRModule
from ..llvm.llvm_types import MemoryLayout, UnsupportedIR, split_type
from .entry_protocol import EntryPoint, Root
from .scalar_graph.operand_scalars import Scalar
from .scalar_graph.ssa_values import ScalarGraph

__all__ = ["AffineAddress", "Root", "Roots", "ScalarAddress"]

_SPACE = re.compile(r"addrspace\(\d+\)")


@dataclass(frozen=True, slots=True)
class AffineAddress:
    """The target of a pointer: a root, plus an affine offset in bytes, modulo 2^64.

    Attributes
    ----------
    root : str
        The name of a pointer that is not computed from another.
    offset : int
        The constant bytes.
    terms : tuple of (str, int)
        Integers, sign-extended to 64 bits, each with its stride in bytes.
    """

    root: str
    offset: int
    terms: tuple[tuple[str, int], ...]


class ScalarAddress(NamedTuple):
    """An `AffineAddress` with scalars instead of names."""

    root: Scalar
    offset: int = 0
    terms: tuple[tuple[Scalar, int], ...] = ()


class Roots:
    """Finds the target of each pointer.

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
        self.address_of = functools.cache(self._address_of)
        self.root_of = functools.cache(self._root_of)

    # ---- Lookup by LLVM names.

    def address(self, pointer: str) -> AffineAddress:
        """Return the target of a pointer."""
        address = self.address_of(self.values.by_name(pointer))
        terms = tuple((scalar.name, stride) for scalar, stride in address.terms)
        return AffineAddress(self.name(address.root), address.offset, terms)

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
        worklist, visited = [self.values.by_name(pointer)], set[Scalar]()
        while worklist:
            loads = [s.inst for s in self._sources(worklist.pop(), visited) if s.op == "load" and s.inst is not None]
            for holder in (self.values.of(inst.pointer) for inst in loads):
                kind = self._kind_of(holder)
                if kind == "argument" or (kind == "variable" and self._arguments_hold_pointers):
                    return True
                worklist.append(holder)
        return False

    def _kind_of(self, pointer: Scalar) -> str:
        """Return the kind of memory that a pointer leads to, or an empty string."""
        root = self.root_of(self.address_of(pointer).root)
        return root.kind if root is not None else ""

    @functools.cached_property
    def _arguments_hold_pointers(self) -> bool:
        """Whether a pointer is loaded from an argument; a variable may then hold it, too."""
        loads = (inst for inst in self.function if inst.opcode == "load" and inst.type.kind == "pointer")
        return any(self._kind_of(self.values.of(inst.pointer)) == "argument" for inst in loads)

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
        for name, ir_type, text in read_constants(self._module):
            with contextlib.suppress(UnsupportedIR):
                tables[f"@{name}"] = constant_bytes(ir_type, text, self.layout)
        return tables

    def table(self, name: str) -> bytes | None:
        """Return the contents of one of the module's constants; None if they are not all numbers."""
        return self._tables.get(name)

    def name(self, pointer: Scalar) -> str:
        """Return the name of a pointer; for an integer that is never used as a pointer, its own name."""
        return self.values.pointers.get(pointer, pointer.name)

    # ---- Lookup by values.

    def _root_of(self, value: Scalar) -> Root | None:
        inst = value.inst
        if value.op == "global":
            size = _global_size(self._module, value.word, self.layout)
            ir_type = _global_type(self._module, value.word)
            return None if size is None else Root("variable", -1, size, value.word, ir_type)
        if inst is not None and inst.opcode == "alloca" and inst.element:
            return Root("variable", -1, self.layout.size(inst.element), value.name, inst.type.text)
        return self._entry.root(value.name) if value.name else None

    def _sources(self, value: Scalar, visited: set[Scalar]) -> Iterator[Scalar]:
        """Yield the pointers that a pointer may be computed from."""
        worklist = [value]
        while worklist:
            root = self.address_of(worklist.pop()).root
            if root in visited or (root.is_constant and not root.number):
                continue
            visited.add(root)
            if root.op in {"phi", "select"}:
                worklist += root.operands[root.op == "select" :]
            else:
                yield root

    def _address_of(self, pointer: Scalar) -> ScalarAddress:
        offset, terms = 0, list[tuple[Scalar, int]]()
        while True:
            inst = pointer.inst
            if pointer.op == "getelementptr" and inst is not None:
                index_offset, index_terms = self._index_terms(pointer, inst)
                offset, terms = offset + index_offset, index_terms + terms
            elif pointer.op == "add" and pointer.operands[1].is_constant:
                offset += pointer.operands[1].number
            else:
                return ScalarAddress(pointer, offset, tuple(terms))
            pointer = pointer.operands[0]

    def _index_terms(self, pointer: Scalar, inst: IRInstruction) -> tuple[int, list[tuple[Scalar, int]]]:
        """Return the offset that a getelementptr adds: constant bytes, and indices with their strides."""
        ir_type, fixed, terms = inst.element, 0, []
        for n, index in enumerate(pointer.operands[1:]):
            if ir_type is None:
                break
            if n and self.layout.resolve(ir_type).kind == "struct":
                offset, ir_type = self.layout.field(ir_type, index.number)
                fixed += offset
                continue
            ir_type = self.layout.resolve(ir_type).element if n else ir_type
            size = self.layout.size(ir_type)
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
    _, keyword, definition = words.partition("global ")
    try:
        return layout.size(split_type(definition)[0]) if keyword else None
    except UnsupportedIR:
        return None
