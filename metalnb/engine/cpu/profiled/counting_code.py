"""The counting instructions of the counted build: before each block, branch, access and barrier.

A block adds to its counters if any lane is active; it may run with an empty mask. A branch at which lanes may diverge
adds to its counter if they do. An access stores the 32 addresses and calls the runtime (runtime/counts.c). This code
reads only addresses, conditions and masks of the kernel.
"""

from __future__ import annotations

from ...llvm.instructions import IRFunction, IRInstruction
from ...vectorizer.vector_code.function_body import FunctionBody
from ...vectorizer.vector_code.memory_access.masked_memory import write_either
from ...vectorizer.vector_code.memory_access.short_rows import RowAddresses, find_row_addresses
from .counts import ATOMIC, READ, WRITE
from .used_components import find_used_components

__all__ = ["CountingCode", "WatchedAccess"]

_BRANCHES = frozenset({"br", "switch"})
_POINTER_OPCODES = frozenset({
    "getelementptr", "inttoptr", "bitcast", "freeze", "addrspacecast", "add", "or", "ptrtoint",
})  # fmt: skip
_COPIES = ("llvm.memcpy", "llvm.memmove")
_FIRST = (0, 8, 16, 24)  # the first lanes of the shortest rows


class WatchedAccess:
    """An access reported to the runtime: its instruction, READ, WRITE or ATOMIC, and the bytes per lane."""

    __slots__ = ("instruction", "kind", "size")

    def __init__(self, instruction: IRInstruction, kind: int, size: int) -> None:
        self.instruction, self.kind, self.size = instruction, kind, size


class CountingCode:
    """Writes the counting instructions; see `Regions` for when it is called.

    Parameters
    ----------
    function : IRFunction
    work : dict of str to int
        A lane's operations in each block, by its label.
    waits : bool
        Whether SIMD-groups wait for each other.

    Attributes
    ----------
    blocks : dict of str to int
        The number of each block written.
    accesses : list of WatchedAccess
    barriers : list of IRInstruction
    branches : dict of str to IRInstruction
        The branch at the end of each block.
    private : list of IRInstruction
        Accesses of thread arrays.
    in_order : bool
        Whether an atomic load is in a loop: it may wait for a write of an earlier threadgroup.
    """

    def __init__(self, function: IRFunction, work: dict[str, int], *, waits: bool) -> None:
        self._parameters = {p.text for p in function.parameters}
        self._used_components = find_used_components(function)
        self._work = work
        self._waits = waits
        self.blocks: dict[str, int] = {}
        self.branches: dict[str, IRInstruction] = {}
        self.accesses: list[WatchedAccess] = []
        self.barriers: list[IRInstruction] = []
        self.private: list[IRInstruction] = []
        self.in_order = False

    def __call__(self, body: FunctionBody, instruction: IRInstruction) -> None:
        """Write the counting code of one instruction, and of the block that it begins."""
        if instruction.block not in self.blocks:
            self._count_block(body, instruction.block)
        opcode, layout, operands = instruction.opcode, body.analysis.layout, instruction.operands
        if instruction.ordering and opcode in {"load", "cmpxchg"}:
            self.in_order |= body.analysis.flow.loop_of[instruction.block] is not None
        if opcode == "load":
            self._count_access(body, instruction, instruction.pointer.text, READ, self._loaded_bytes(body, instruction))
        elif opcode == "store":
            self._count_access(body, instruction, instruction.pointer.text, WRITE, layout.size(operands[0].type))
        elif opcode in {"atomicrmw", "cmpxchg"}:
            self._count_access(body, instruction, instruction.pointer.text, ATOMIC, layout.size(operands[1].type))
        elif opcode == "call":
            self._count_call(body, instruction)
        elif opcode in _BRANCHES and len(set(instruction.targets)) > 1:
            self._count_branch(body, instruction)

    def _loaded_bytes(self, body: FunctionBody, instruction: IRInstruction) -> int:
        """Return the bytes that a GPU would load: a single component of a vector if no other is used."""
        ir_type, used = instruction.type, self._used_components.get(instruction.result, ())
        return body.analysis.layout.size(ir_type.element if ir_type.kind == "vector" and len(used) == 1 else ir_type)

    @property
    def globals(self) -> str:
        """The LLVM IR of the counters that the code adds to, and of the functions that it calls."""
        count = max(1, len(self.blocks))
        return (
            f"@metalnb_blocks = global [{count} x [4 x i64]] zeroinitializer\n"
            "@metalnb_addresses = external hidden global [32 x i64]\n"
            "@metalnb_work = external hidden global i64\n@metalnb_mark = external hidden global i64\n"
        )

    def _count_block(self, body: FunctionBody, label: str) -> None:
        number = self.blocks[label] = len(self.blocks)
        emitter = body.emitter
        bits = emitter.mask_bits(body.mask)
        any_lane = emitter.op(f"zext i1 {emitter.op(f'icmp ne i32 {bits}, 0')} to i64")
        lanes = emitter.op(f"zext i32 {emitter.call('llvm.ctpop.i32', 'i32', ('i32', bits))} to i64")
        self._add(body, number, 0, any_lane)
        self._add(body, number, 1, lanes)
        if self._waits:
            if label == body.analysis.flow.entry:
                emitter.do(f"store i64 {emitter.op('load i64, ptr @metalnb_work')}, ptr @metalnb_mark")
            spent = emitter.op(f"mul i64 {any_lane}, {max(1, self._work.get(label, 0))}")
            total = emitter.op(f"add i64 {emitter.op('load i64, ptr @metalnb_work')}, {spent}")
            emitter.do(f"store i64 {total}, ptr @metalnb_work")

    def _add(self, body: FunctionBody, number: int, column: int, value: str) -> None:
        emitter = body.emitter
        at = f"getelementptr ([4 x i64], ptr @metalnb_blocks, i64 {number}, i64 {column})"
        total = emitter.op(f"add i64 {emitter.op(f'load i64, ptr {at}')}, {value}")
        emitter.do(f"store i64 {total}, ptr {at}")

    def _count_branch(self, body: FunctionBody, instruction: IRInstruction) -> None:
        """Count how often lanes diverge."""
        self.branches[instruction.block] = instruction
        condition = instruction.operands[0]
        if body.shape(condition.text).uniform or instruction.opcode != "br":
            return
        emitter = body.emitter
        mask = emitter.mask_bits(body.mask)
        taken_bits = emitter.mask_bits(emitter.mask_and(body.mask, body.vector(condition.text, condition.type)))
        any_taken = emitter.op(f"icmp ne i32 {taken_bits}, 0")
        not_all_taken = emitter.op(f"icmp ne i32 {taken_bits}, {mask}")
        diverges = emitter.op(f"and i1 {any_taken}, {not_all_taken}")
        self._add(body, self.blocks[instruction.block], 2, emitter.op(f"zext i1 {diverges} to i64"))

    def _count_call(self, body: FunctionBody, instruction: IRInstruction) -> None:
        if instruction.word == "metalnb_barrier":
            index = body.positions["metalnb_index"].scalar
            body.emitter.declare("metalnb_waits", "void", "i32", "i32")
            body.emitter.do(f"call void @metalnb_waits(i32 {len(self.barriers)}, i32 {index})")
            self.barriers.append(instruction)
        elif instruction.word.startswith(_COPIES) and instruction.operands[2].text.isdigit():
            size = int(instruction.operands[2].text)
            self._count_access(body, instruction, instruction.operands[1].text, READ, size)
            self._count_access(body, instruction, instruction.operands[0].text, WRITE, size)

    def _count_access(self, body: FunctionBody, instruction: IRInstruction, pointer: str, kind: int, size: int) -> None:
        root = self._root(body, pointer)
        if root == "parameters":
            return
        if root == "thread":
            self.private.append(instruction)
            return
        self._report(body, instruction, pointer)
        self.accesses.append(WatchedAccess(instruction, kind, size))

    def _report(self, body: FunctionBody, instruction: IRInstruction, pointer: str) -> None:
        """Write the call of the runtime: with lane 0's address if the lanes have one stride, else after all addresses.

        If only each short row has a constant stride, the call has four lanes' addresses while all lanes are active.
        """
        emitter, shape = body.emitter, body.shape(pointer)
        site = f"i32 {len(self.accesses)}, i32 {emitter.mask_bits(body.mask)}"
        if shape.stride is not None and not shape.guards:
            lane_0 = emitter.op(f"ptrtoint ptr {body.scalar(pointer)} to i64")
            emitter.declare("metalnb_accessed_strided", "void", "i32", "i32", "i64", "i64")
            emitter.do(f"call void @metalnb_accessed_strided({site}, i64 {lane_0}, i64 {shape.stride})")
            return
        ir_type = instruction.pointer.type if instruction.opcode != "call" else instruction.operands[0].type
        rows = find_row_addresses(body, pointer, ir_type)
        addresses = body.vector(pointer, ir_type)
        if rows is None:
            self._report_lanes(body, addresses, site)
        else:
            write_either(
                body, rows.condition, lambda: self._report_rows(body, rows),
                lambda: self._report_lanes(body, addresses, site),
            )  # fmt: skip

    def _report_rows(self, body: FunctionBody, rows: RowAddresses) -> None:
        emitter = body.emitter
        addresses = [emitter.op(f"ptrtoint ptr {rows.lane_address(lane)} to i64") for lane in _FIRST]
        emitter.declare("metalnb_accessed_rows", "void", "i32", "i64", *("i64",) * len(_FIRST))
        arguments = ", ".join(f"i64 {at}" for at in addresses)
        emitter.do(f"call void @metalnb_accessed_rows(i32 {len(self.accesses)}, i64 {rows.stride}, {arguments})")

    @staticmethod
    def _report_lanes(body: FunctionBody, addresses: str, site: str) -> None:
        emitter = body.emitter
        emitter.do(f"store {emitter.lanes('ptr')} {addresses}, ptr @metalnb_addresses, align 64")
        emitter.declare("metalnb_accessed", "void", "i32", "i32")
        emitter.do(f"call void @metalnb_accessed({site})")

    def _root(self, body: FunctionBody, name: str) -> str:
        """Return where an address comes from: thread memory, the argument list, or elsewhere."""
        if name in body.analysis.granules:
            return "thread"
        while (definition := body.analysis.definitions.get(name)) is not None:
            if definition.opcode == "alloca":
                return "thread"
            if definition.opcode not in _POINTER_OPCODES:
                return ""
            name = definition.operands[0].text
        return "parameters" if name in self._parameters else ""
