"""How a checked kernel receives its arguments on the CPU, and which function it calls at a fault (runtime/faults.h)."""

from __future__ import annotations

from typing import ClassVar

from ...robust.rewriting.check_target import EntryVariables
from ...robust.rewriting.ir_builder import IRBuilder

__all__ = ["FiberTarget", "LaneTarget"]


class _ArgumentArray:
    """The arguments that a kernel reads from its first parameter, an array of addresses."""

    pointer_type = "ptr"
    has_loop_versions = True

    def __init__(self, arguments: str, count: int) -> None:
        self._arguments = arguments
        self.argument_count = count

    def write_argument(self, code: IRBuilder, number: int) -> str:
        """Write the instructions that read an argument's address."""
        pointer = code.op(f"getelementptr i8, ptr {self._arguments}, i64 {8 * number}")
        return code.op(f"inttoptr i64 {code.op(f'load i64, ptr {pointer}, align 8')} to ptr")

    def write_stop_test(self, code: IRBuilder, entry_code: EntryVariables) -> str:
        """Emit the test for whether loops must stop, which reads the records' first word."""
        return code.op(f"icmp ne i32 {code.op(f'load volatile i32, ptr {entry_code.records}, align 8')}, 0")


class LaneTarget(_ArgumentArray):
    """One thread of a kernel for vector registers: the vectorizer provides the thread's index."""

    has_invariant_bounds = False
    declarations: ClassVar[dict[str, str]] = {
        "metalnb_fault": "declare void @metalnb_fault(ptr, i32, i64)",
        "metalnb_every": "declare i1 @metalnb_every(i1)",
    }

    def write_all_test(self, code: IRBuilder, flag: str) -> str:
        """Write a test that a condition holds for all threads that run together."""
        return code.op(f"call i1 @metalnb_every(i1 {flag})")

    def write_record(self, code: IRBuilder, records: str, check: int, offset: str) -> None:
        """Write the call that records a fault."""
        code.do(f"call void @metalnb_fault(ptr {records}, i32 {check}, i64 {offset})")


class FiberTarget(_ArgumentArray):
    """One thread of a kernel, a fiber.

    Parameters
    ----------
    parameters : sequence of str
        The parameters of the function: the arguments, the threadgroup, and the thread's index in it.
    argument_count : int
        The number of the kernel's own arguments.
    """

    has_invariant_bounds = True
    declarations: ClassVar[dict[str, str]] = {
        "metalnb_faulted": "declare hidden void @metalnb_faulted(ptr, ptr, i32, i64, i32) "
        "cold nounwind memory(inaccessiblemem: readwrite)",
    }

    def __init__(self, parameters: tuple[str, str, str], argument_count: int) -> None:
        arguments, self._region, self._index = parameters
        super().__init__(arguments, argument_count)

    def write_all_test(self, _code: IRBuilder, flag: str) -> str:
        """Return the condition unchanged: this thread runs on its own."""
        return flag

    def write_record(self, code: IRBuilder, records: str, check: int, offset: str) -> None:
        """Write the call that records a fault."""
        thread = f"i32 {check}, i64 {offset}, i32 {self._index}"
        code.do(f"call void @metalnb_faulted(ptr {records}, ptr {self._region}, {thread})")
