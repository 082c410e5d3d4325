"""Where the pointers of a module come from: the root of each, and the bytes between that root and what it points to.

Source: SPIR-V specification 1.4, 2.16.1 (pointers), 3.37.8 (OpAccessChain …); SPIR-V OpenCL environment, 2.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ...spirv.module import Body, Instruction, Module
from ...spirv.opcodes import Spv

__all__ = ["Access", "PointerPlace", "Roots", "TypeSizes", "accesses"]

_CHAINS = {Spv.ACCESS_CHAIN, Spv.IN_BOUNDS_ACCESS_CHAIN}
_PTR_CHAINS = {Spv.PTR_ACCESS_CHAIN, Spv.IN_BOUNDS_PTR_ACCESS_CHAIN}
_SAME = {
    Spv.BITCAST, Spv.COPY_OBJECT, Spv.PTR_CAST_TO_GENERIC, Spv.GENERIC_CAST_TO_PTR, Spv.GENERIC_CAST_TO_PTR_EXPLICIT,
}  # fmt: skip
_PACKED = 10  # the decoration CPacked


class TypeSizes:
    """Sizes of types in memory, and of integers; each is found once, for the proofs ask some hundred thousand times."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._packed = {
            i.words[1] for i in module.preamble if i.op == Spv.DECORATE and i.words[2] == _PACKED
        }
        self.measure = functools.cache(self._measure)
        self.members = functools.cache(self._members)
        self.constant = functools.cache(self._constant)
        self.is_constant = functools.cache(self._is_constant)
        self.is_integer = functools.cache(self._is_integer)
        self.bits = functools.cache(self._bits)

    def size(self, kind: int) -> int:
        """Return the bytes of a type, what pads it included."""
        return self.measure(kind)[0]

    def _measure(self, kind: int) -> tuple[int, int]:  # noqa: PLR0911  (a table of cases)
        """Return the size and the alignment of a type, in bytes."""
        op, *rest = self._module.key(kind)
        if op in {Spv.TYPE_INT, Spv.TYPE_FLOAT}:
            return rest[0] // 8, rest[0] // 8
        if op == Spv.TYPE_BOOL:
            return 1, 1
        if op == Spv.TYPE_POINTER:
            return 8, 8
        if op == Spv.TYPE_VECTOR:
            whole = self.size(rest[0]) * (4 if rest[1] == 3 else rest[1])
            return whole, whole
        if op == Spv.TYPE_ARRAY:
            one, align = self.measure(rest[0])
            return one * self.constant(rest[1]), align
        if op == Spv.TYPE_STRUCT:
            return self.members(kind)[-1], 1 if kind in self._packed else max(
                (self.measure(m)[1] for m in rest), default=1,
            )
        return 1, 1

    def _members(self, kind: int) -> tuple[int, ...]:
        """Return where each member of a struct begins, and its whole size."""
        at, widest, found = 0, 1, []
        for member in self._module.key(kind)[1:]:
            size, align = self.measure(member)
            align = 1 if kind in self._packed else align
            at = -(-at // align) * align
            found.append(at)
            at += size
            widest = max(widest, align)
        return (*found, -(-at // widest) * widest)

    def _constant(self, value: int) -> int:
        """Return the value of a constant integer, as signed."""
        made = self._module.definitions[value]
        if made.op == Spv.CONSTANT_NULL:
            return 0
        bits = self._module.key(made.type)[1]
        number = sum(w << 32 * n for n, w in enumerate(made.words[3:])) & (1 << bits) - 1
        return number - (1 << bits) if number >> bits - 1 else number

    def _is_constant(self, value: int) -> bool:
        """Return whether a value is a constant integer."""
        return self._module.definitions[value].op in {Spv.CONSTANT, Spv.CONSTANT_NULL} and self.is_integer(value)

    def _is_integer(self, value: int) -> bool:
        """Return whether a value is one integer, not a vector."""
        return self._module.key(self._module.type_of(value))[0] == Spv.TYPE_INT

    def _bits(self, value: int) -> int:
        """Return the bits of an integer, or of each in a vector; 64 for anything else."""
        op, *rest = self._module.key(self._module.type_of(value))
        if op == Spv.TYPE_VECTOR:
            op, *rest = self._module.key(rest[0])
        return rest[0] if op == Spv.TYPE_INT else 64


@dataclass(frozen=True, slots=True)
class PointerPlace:
    """What a pointer points to: a root, and the way from there in bytes.

    Attributes
    ----------
    root : int
        The id of a parameter, of a variable, or of whatever makes a pointer that is no step from another.
    fixed : int
        Bytes that are known.
    terms : tuple of (int, int)
        Values, and the bytes by which each is multiplied; signed.
    """

    root: int
    fixed: int = 0
    terms: tuple[tuple[int, int], ...] = ()


class Roots:
    """Finds places."""

    def __init__(self, module: Module, layout: TypeSizes) -> None:
        self._module = module
        self._layout = layout
        self.place = functools.cache(self._place)

    def _place(self, pointer: int) -> PointerPlace:
        module = self._module
        made = module.definitions[pointer]
        if made.op in _SAME and module.key(module.type_of(made.words[3]))[0] == Spv.TYPE_POINTER:
            return self.place(made.words[3])
        hidden = self._hidden(made)
        if hidden:
            return self.place(hidden)
        if made.op not in _CHAINS | _PTR_CHAINS:
            return PointerPlace(pointer)
        base = self.place(made.words[3])
        kind = module.key(module.type_of(made.words[3]))[2]
        indices = made.words[4:]
        fixed, terms = base.fixed, list(base.terms)
        steps: list[tuple[int, int]] = []
        if made.op in _PTR_CHAINS:
            steps.append((indices.pop(0), self._layout.size(kind)))
        for index in indices:
            op, *rest = module.key(kind)
            if op == Spv.TYPE_STRUCT:
                number = self._layout.constant(index)
                fixed += self._layout.members(kind)[number]
                kind = rest[number]
            else:
                steps.append((index, self._layout.size(rest[0])))
                kind = rest[0]
        for index, stride in steps:
            if self._layout.is_constant(index):
                fixed += self._layout.constant(index) * stride
            elif stride:
                terms.append((index, stride))
        return PointerPlace(base.root, fixed, tuple(terms))

    def _hidden(self, made: Instruction) -> int:
        """Return the pointer that a pass has hidden from the device's compiler in a number; 0 for any other."""
        definitions = self._module.definitions
        if made.op != Spv.CONVERT_U_TO_PTR or definitions[made.words[3]].op != Spv.BITWISE_XOR:
            return 0
        number, zero = (definitions[w] for w in definitions[made.words[3]].words[3:5])
        is_zero = zero.op == Spv.U_CONVERT and definitions[zero.words[3]].op == Spv.SHIFT_RIGHT_LOGICAL
        return number.words[3] if is_zero and number.op == Spv.CONVERT_PTR_TO_U else 0

    def sources(self, root: int, seen: set[int] | None = None) -> set[int]:
        """Return the parameters and variables that a root may come from; 0 stands for anything."""
        seen = set() if seen is None else seen
        if root in seen:
            return set()
        seen.add(root)
        made = self._module.definitions[root]
        if made.op == Spv.VARIABLE:
            return {root}
        if made.op == Spv.PHI:
            ahead = made.words[3::2]
        elif made.op == Spv.SELECT:
            ahead = made.words[4:6]
        elif made.op == Spv.FUNCTION_PARAMETER:
            ahead = self.passed.get(root, [])
            if not ahead:
                return {root}
        elif made.op in {Spv.CONSTANT_NULL, Spv.UNDEF}:
            return set()
        else:
            return {0}
        return set().union(*(self.sources(self.place(value).root, seen) for value in ahead))

    @functools.cached_property
    def passed(self) -> dict[int, list[int]]:
        """What is handed to each parameter of the functions that are called."""
        functions = {f.name: f for f in self._module.functions}
        found: dict[int, list[int]] = {}
        for function in self._module.functions:
            for i in function:
                if i.op == Spv.FUNCTION_CALL and i.words[3] in functions:
                    for param, value in zip(functions[i.words[3]].head[1:], i.words[4:], strict=True):
                        found.setdefault(param.result, []).append(value)
        return found

    def exact(self, root: int) -> int:
        """Return the parameter of an entry point that a root is, whole; 0 when it is none, or may be several."""
        made = self._module.definitions[root]
        while made.op == Spv.FUNCTION_PARAMETER:
            passed = {self.place(v) for v in self.passed.get(made.result, [])}
            if not passed:
                return made.result
            only = passed.pop()
            if passed or only.fixed or only.terms:
                return 0
            made = self._module.definitions[only.root]
        return 0


@dataclass(frozen=True, slots=True)
class Access:
    """One read, write or atomic operation.

    Attributes
    ----------
    number : int
        Its place among the module's accesses, from 0.
    function : Body
    instruction : Instruction
    pointer : int
    size : int
        Bytes.
    kind : {"reads", "writes", "updates"}
    """

    number: int
    function: Body
    instruction: Instruction
    pointer: int
    size: int
    kind: str


_ATOMICS = {op for op in Spv if op.name.startswith("ATOMIC_")}
_UNKNOWN = 1 << 40  # a copy of so many bytes as the kernel finds out: clang writes none, and none is let through
_READS = {Spv.LOAD, Spv.ATOMIC_LOAD}
_WRITES = {Spv.STORE, Spv.ATOMIC_STORE, Spv.ATOMIC_FLAG_CLEAR}


def accesses(module: Module, layout: TypeSizes) -> list[Access]:
    """Return all accesses of a module in order."""
    found: list[Access] = []
    for function in module.functions:
        for i in function:
            places = []
            if i.op in {Spv.STORE, Spv.ATOMIC_STORE, Spv.ATOMIC_FLAG_CLEAR}:
                places = [(1, "writes")]
            elif i.op == Spv.LOAD or i.op in _ATOMICS:
                places = [(3, "reads" if i.op in _READS else "updates")]
            elif i.op in {Spv.COPY_MEMORY, Spv.COPY_MEMORY_SIZED}:
                places = [(1, "writes"), (2, "reads")]
            for place, kind in places:
                pointer = i.words[place]
                if i.op == Spv.COPY_MEMORY_SIZED:
                    size = layout.constant(i.words[3]) if layout.is_constant(i.words[3]) else _UNKNOWN
                else:
                    size = layout.size(module.key(module.type_of(pointer))[2])
                found.append(Access(len(found), function, i, pointer, size, kind))
    return found
