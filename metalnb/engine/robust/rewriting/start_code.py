"""Write the entry code of a checked function, which loads the limits and the buffers' addresses."""

from __future__ import annotations

from collections.abc import Callable

from ...llvm.instructions import IRFunction, IRInstruction
from ..memory_roots import Root
from .check_target import CheckTarget
from .size_limits import Limit, WorkLimit
from .written_code import WrittenCode

__all__ = ["StartCode"]


class StartCode:
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
        self._definitions = {made.result: made for made in function if made.result}
        self._made: list[IRInstruction] = []
        self._code = WrittenCode("start")
        self._code.open(function.entry, self._made)
        self._known: dict[object, str] = {}

    @property
    def records(self) -> str:
        """The name of the pointer to the records of faults."""
        return self._pointer(self._target.count + 1)

    def address(self, root: Root) -> str:
        """Return the address of a root, as a 64-bit integer."""
        return self._once(("address", root.name), lambda: self._code.number(
            root.type, self._pointer(root.number) if root.kind == "argument" else self._again(root.name),
        ))  # fmt: skip

    def variable(self, what: str) -> str:
        """Return a pointer to a variable of the thread, an ``i32`` that starts at 0."""
        return self._once(("variable", what), self._variable)

    def stopped(self, code: WrittenCode) -> str:
        """Append the check whether loops must stop to `code`, and return its result."""
        return self._target.stopped(code, self)

    def limit(self, limit: Limit | WorkLimit, bits: int) -> str:
        """Return a limit, as an integer of `bits` bits."""
        return self._once((limit, bits), lambda: self._load(limit, bits))

    def finish(self) -> None:
        """Insert the code after the function's leading allocas."""
        entry = self._function.blocks[self._function.entry]
        variables = next((i for i, made in enumerate(entry) if made.opcode != "alloca"), len(entry))
        entry[variables:variables] = self._made

    def _once(self, key: object, make: Callable[[], str]) -> str:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def _variable(self) -> str:
        made = self._code.op("alloca i32, align 4")
        self._code.do(f"store i32 0, ptr {made}, align 4")
        return made

    def _pointer(self, number: int) -> str:
        return self._once(number, lambda: self._target.argument(self._code, number))

    def _load(self, limit: Limit | WorkLimit, bits: int) -> str:
        if limit not in self.limits:
            self.limits.append(limit)
        kind, at = self._target.pointer_type, 8 * self.limits.index(limit)
        place = self._code.op(f"getelementptr i8, {kind} {self._pointer(self._target.count)}, i64 {at}")
        return self._code.op(f"load i{bits}, {kind} {place}, align 8")

    def _again(self, name: str) -> str:
        """Recompute a variable's pointer at the entry, since its definition need not dominate every access."""
        made = self._definitions.get(name)
        if made is None or made.opcode == "alloca":
            return name
        names = {one: self._again(one) for one in made.names}
        return self._once(name, lambda: self._code.op(made.renamed(names)))
