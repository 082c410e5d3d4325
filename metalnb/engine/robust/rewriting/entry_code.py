"""Write the entry code of a checked function, which loads the limits and the buffers' addresses."""

from __future__ import annotations

from collections.abc import Callable

from ...llvm.instructions import IRFunction, IRInstruction
from ..memory_roots import Root
from .check_target import CheckTarget
from .ir_builder import IRBuilder
from .size_limits import Limit, WorkLimit

__all__ = ["EntryCode"]


class EntryCode:
    """Writes a function's entry code, computing each value once.

    Parameters
    ----------
    function : IRFunction
    target : CheckTarget

    Attributes
    ----------
    limits : list of Limit or WorkLimit
        The limits that the code reads, in order.
    """

    def __init__(self, function: IRFunction, target: CheckTarget) -> None:
        self.limits: list[Limit | WorkLimit] = []
        self._function, self._target = function, target
        self._definitions = {inst.result: inst for inst in function if inst.result}
        self._instructions: list[IRInstruction] = []
        self._code = IRBuilder("start")
        self._code.resume_block(function.entry, self._instructions)
        self._values: dict[object, str] = {}

    @property
    def records(self) -> str:
        """The name of the pointer to the records of faults."""
        return self._pointer(self._target.argument_count + 1)

    def address(self, root: Root) -> str:
        """Return the address of a root, as a 64-bit integer."""
        return self._memoize(("address", root.name), lambda: self._code.pointer_as_integer(
            root.type, self._pointer(root.number) if root.kind == "argument" else self._recompute(root.name),
        ))  # fmt: skip

    def allocate(self, name: str) -> str:
        """Return a pointer to a variable of the thread, an ``i32`` that starts at 0."""
        return self._memoize(("variable", name), self._allocate)

    def write_stop_test(self, code: IRBuilder) -> str:
        """Append a test for whether loops must stop to `code`, and return its result."""
        return self._target.write_stop_test(code, self)

    def limit(self, limit: Limit | WorkLimit, bits: int) -> str:
        """Return a limit, as an integer of `bits` bits."""
        return self._memoize((limit, bits), lambda: self._load(limit, bits))

    def finish(self) -> None:
        """Insert the code after the function's leading allocas."""
        entry = self._function.blocks[self._function.entry]
        allocas = next((i for i, inst in enumerate(entry) if inst.opcode != "alloca"), len(entry))
        entry[allocas:allocas] = self._instructions

    def _memoize(self, key: object, make: Callable[[], str]) -> str:
        if key not in self._values:
            self._values[key] = make()
        return self._values[key]

    def _allocate(self) -> str:
        pointer = self._code.op("alloca i32, align 4")
        self._code.do(f"store i32 0, ptr {pointer}, align 4")
        return pointer

    def _pointer(self, number: int) -> str:
        return self._memoize(number, lambda: self._target.write_argument(self._code, number))

    def _load(self, limit: Limit | WorkLimit, bits: int) -> str:
        if limit not in self.limits:
            self.limits.append(limit)
        kind, offset = self._target.pointer_type, 8 * self.limits.index(limit)
        address = self._code.op(f"getelementptr i8, {kind} {self._pointer(self._target.argument_count)}, i64 {offset}")
        return self._code.op(f"load i{bits}, {kind} {address}, align 8")

    def _recompute(self, name: str) -> str:
        """Recompute a variable's pointer at the entry, since its definition need not dominate every access."""
        inst = self._definitions.get(name)
        if inst is None or inst.opcode == "alloca":
            return name
        names = {used: self._recompute(used) for used in inst.used_names}
        return self._memoize(name, lambda: self._code.op(inst.renamed_text(names)))
