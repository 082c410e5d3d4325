"""Write a program as a Metal kernel."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .statements import Writer, inputs
from .tree import LARGEST, Program, Stmt, element

__all__ = ["METAL_PRELUDE", "metal"]

METAL_PRELUDE = "".join((Path(__file__).parent / name).read_text("utf-8") for name in ("prelude.metal", "shared.h"))
_FORMS = {
    "make": "{type}({all})",
    "simd_ballot": "uint(simd_vote::vote_t(simd_ballot({0})))",
    "simd_shuffle": "simd_shuffle({0}, ushort({1} % width))",
}
_OF_SIGNED_VECTORS = {"vadd": "{type}(u{type}({0}) + u{type}({1}))", "vsub": "{type}(u{type}({0}) - u{type}({1}))"}


def metal(program: Program, name: str) -> str:
    """Return a program as a kernel, without the prelude; its helpers stand in a namespace of its name."""
    writer = _MetalWriter()
    shared = f"  threadgroup uint shared[{LARGEST}];\n" if _meets(program.body) else ""
    return (
        f"namespace ns_{name} {{\n{''.join(writer.helper(h) for h in program.helpers)}}}\n"
        f"kernel void {name}(device uint* out, {inputs('device const')}, constant uint& zero, constant uint& n,\n"
        "    uint i [[thread_position_in_grid]], uint lid [[thread_position_in_threadgroup]],\n"
        "    uint size [[threads_per_threadgroup]]) {\n"
        f"  using namespace ns_{name};\n{shared}  uint width = min(32u, size - lid / 32 * 32);\n"
        f"{writer.block(program.body, '  ')}}}\n"
    )


class _MetalWriter(Writer):
    """Writes MSL: vectors have constructors, their sums wrap in unsigned types, and SIMD functions are functions."""

    reference = "thread "

    def form(self, op: str, kind: str) -> str:
        """Return how an operation on a type is written, its operands in braces."""
        if op in _FORMS:
            return _FORMS[op]
        if op.startswith("simd_"):
            return f"{{type}}({op}({{0}}))"
        if op in _OF_SIGNED_VECTORS and element(kind) in {"int", "long"}:
            return _OF_SIGNED_VECTORS[op]
        return super().form(op, kind)


def _meets(body: Iterable[Stmt]) -> bool:
    """Tell whether threads exchange anything."""
    return any(s.kind == "exchange" or any(map(_meets, s.bodies)) for s in body)
