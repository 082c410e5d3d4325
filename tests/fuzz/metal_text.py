"""Write a program as a Metal kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from .statements import Writer, bits_of, inputs, place
from .tree import ATOMICS, CELLS, HALVES, LARGEST, VECTORS, Program, Stmt, element

__all__ = ["cell", "metal"]

_PRELUDE = "".join((Path(__file__).parent / name).read_text("utf-8") for name in ("prelude.metal", "shared.h"))
_FORMS = {
    "make": "{type}({all})",
    "simd_ballot": "uint(simd_vote::vote_t(simd_ballot({0})))",
    "simd_shuffle": "simd_shuffle({0}, ushort({1} % width))",
    "simd_last": "simd_shuffle({type}({0}), ushort(31 - clz(uint(simd_vote::vote_t(simd_active_threads_mask())))))",
    "simd_shuffle_xor": "{type}(from_xor({type}({0}), {1}, lid % 32, width))",
    "simd_shuffle_up": "{type}(from_below({type}({0}), {1}, lid % 32, width))",
    "simd_shuffle_down": "{type}(from_above({type}({0}), {1}, lid % 32, width))",
    "quad_shuffle_xor": "{type}(in_quad_from_xor({type}({0}), {1}, lid % 32, width))",
    "simd_shuffle_rotate_down": "{type}(from_around({type}({0}), {1}, lid % 32, width))",
}
_FIRST = "".join(f"k / 2 == {i} ? {start}u : " for i, start in enumerate(ATOMICS.values()))
_EACH = f"for (uint k = lid; k < {CELLS}; k += size)"
_STARTS = (
    f"  threadgroup atomic_uint held[{CELLS}];\n"
    f"  {_EACH} atomic_store_explicit(&held[k], {_FIRST}0u, memory_order_relaxed);\n"
    "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
)
_FLUSH = (
    "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    f"  {_EACH} atomic_fetch_add_explicit(&cells[{CELLS} + k], atomic_load_explicit(&held[k], memory_order_relaxed), "
    "memory_order_relaxed);\n"
)
_IN_A_ROW = (
    "    uint i [[thread_position_in_grid]], uint lid [[thread_position_in_threadgroup]],\n"
    "    uint size [[threads_per_threadgroup]]) {\n"
)
_IN_ROWS = (
    "    uint2 at [[thread_position_in_grid]], uint lid [[thread_index_in_threadgroup]],\n"
    "    uint2 across [[threads_per_threadgroup]], uint2 entire [[threads_per_grid]]) {\n"
    "  const uint i = at.y * entire.x + at.x, size = across.x * across.y;\n"
)
_OF_SIGNED_VECTORS = {"vadd": "{type}(u{type}({0}) + u{type}({1}))", "vsub": "{type}(u{type}({0}) - u{type}({1}))"}


def cell(kernels: Iterable[str]) -> str:
    """Return kernels with the definitions that they need. Only the vectors in use: each costs clang 4 ms."""
    text = "".join(kernels)
    used = set(re.findall(r"\w+", text)).intersection((*VECTORS, *HALVES))
    return f"{_PRELUDE}{bits_of(sorted(used))}{text}"


def metal(program: Program, name: str) -> str:
    """Return a program as a kernel without the prelude; its helpers are in a namespace with its name."""
    writer = _MetalWriter()
    shared = f"  threadgroup uint shared[{LARGEST}];\n" if program.holds("exchange") else ""
    shared += f"  threadgroup float matrices[{2 * LARGEST}];\n" if program.holds("matrices") else ""
    shared += f"  threadgroup uint tile[{program.tile}];\n" if program.tile else ""
    cells = ", device atomic_uint* cells" if program.cells else ""
    starts = flush = ""
    if program.holds("exchange") and program.holds("stop"):  # a thread that has returned wrote nothing
        starts = "  shared[lid] = 0;\n  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    if program.held:
        starts, flush = _STARTS, _FLUSH
    return (
        f"namespace ns_{name} {{\n{''.join(writer.helper(h) for h in program.helpers)}}}\n"
        f"kernel void {name}(device uint* out, {inputs('device const')}, constant uint& zero,\n"
        f"    constant uint& n{cells},\n"
        f"{_IN_ROWS if program.planar else _IN_A_ROW}"
        f"  using namespace ns_{name};\n{shared}  uint width = min(32u, size - lid / 32 * 32);\n"
        f"{starts}{writer.block(program.body, '  ')}{flush}}}\n"
    )


class _MetalWriter(Writer):
    """Writes MSL: vectors have constructors, their sums wrap in unsigned types, and SIMD functions are functions."""

    reference = "thread "

    def atomic(self, s: Stmt) -> str:
        """Return the text of an atomic operation."""
        where, value = map(self.expr, s.exprs)
        cell = f"&{s.type}[{place(s.text)} + ({where} & 1)]"
        return f"atomic_fetch_{s.text}_explicit({cell}, uint({value}), memory_order_relaxed);"

    def form(self, op: str, kind: str) -> str:
        """Return the form of an operation on a type, with its operands in braces."""
        if op in _FORMS:
            return _FORMS[op]
        if op.startswith(("simd_", "quad_")):
            return f"{{type}}({op}({{0}}))"
        if op in _OF_SIGNED_VECTORS and element(kind) in {"int", "long"}:
            return _OF_SIGNED_VECTORS[op]
        return super().form(op, kind)
