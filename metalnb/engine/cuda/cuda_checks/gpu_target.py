"""How a checked kernel receives its arguments on a GPU, and how it reports a fault (``faults.h``)."""

from __future__ import annotations

from typing import ClassVar

from ...robust.rewriting.check_target import EntryVariables
from ...robust.rewriting.ir_builder import IRBuilder
from .cuda_entry import SHARED, CudaEntry

__all__ = ["GpuTarget"]

_LAUNCH_WORDS = (0, 4, 8, 48, 52)  # offsets in `$launch`: `first`, and the width and height of `size`
# All warps read one word, so a thread reads it only every 256 iterations and keeps the result. The read is predicated
# rather than branched around, so that the loop keeps its shape.
_POLL = (
    "{ .reg .pred look; .reg .u32 part; and.b32 part, $2, 255; setp.eq.u32 look, part, 0; "
    "mov.u32 $0, $3; @look ld.volatile.global.u32 $0, [$1]; }"
)


class GpuTarget:
    """A checked kernel on a GPU.

    Parameters
    ----------
    entry : CudaEntry
    """

    pointer_type = "ptr addrspace(1)"
    has_loop_versions = False
    has_invariant_bounds = False
    declarations: ClassVar[dict[str, str]] = {}  # the module defines all functions

    def __init__(self, entry: CudaEntry) -> None:
        self._entry = entry
        self.argument_count = len(entry.arguments)

    def write_argument(self, code: IRBuilder, number: int) -> str:
        """Write the instructions that load an argument's pointer; return its name."""
        entry = self._entry
        if number >= self.argument_count:
            return (entry.limits, entry.faults)[number - self.argument_count]
        name = entry.arguments[number]
        if entry.root(name) is not None:
            return name
        return code.op(f"call ptr addrspace(3) @{SHARED}(i32 {name})")

    def write_stop_test(self, code: IRBuilder, entry_code: EntryVariables) -> str:
        """Emit the test for whether loops must stop."""
        count, state = entry_code.allocate("iterations"), entry_code.allocate("stopped")
        iteration = code.op(f"add i32 {code.op(f'load i32, ptr {count}, align 4')}, 1")
        previous = code.op(f"load i32, ptr {state}, align 4")
        arguments = f"ptr addrspace(1) {self._entry.flag}, i32 {iteration}, i32 {previous}"
        current = code.op(f'call i32 asm sideeffect "{_POLL}", "=r,l,r,r"({arguments})')
        code.do(f"store i32 {iteration}, ptr {count}, align 4")
        code.do(f"store i32 {current}, ptr {state}, align 4")
        return code.op(f"icmp ne i32 {current}, 0")

    def write_all_test(self, _code: IRBuilder, flag: str) -> str:
        """Return the condition unchanged, as each thread branches on its own."""
        return flag

    def write_record(self, code: IRBuilder, records: str, check: int, offset: str) -> None:
        """Write the call that records a fault."""
        words = [
            code.op(f"load i32, ptr {code.op(f'getelementptr i8, ptr {self._entry.launch}, i64 {start}')}, align 4")
            for start in _LAUNCH_WORDS
        ]
        launch_words = ", ".join(f"i32 {word}" for word in words)
        pointers = f"{self.pointer_type} {records}, {self.pointer_type} {self._entry.flag}"
        code.do(f"call void @metalnb_fault({pointers}, i32 {check}, i64 {offset}, {launch_words})")
