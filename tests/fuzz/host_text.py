"""Write a program as C++ that runs one of its threadgroups on the host."""

from __future__ import annotations

from pathlib import Path

from .lockstep import LockstepWriter
from .statements import Writer, bits_of, inputs
from .tree import ATOMICS, CELLS, HALVES, LARGEST, VECTORS, Program

__all__ = ["HOST_PRELUDE", "host"]

HOST_PRELUDE = "".join((Path(__file__).parent / name).read_text("utf-8") for name in ("host.h", "shared.h"))
HOST_PRELUDE += bits_of((*VECTORS, *HALVES))
_PLACE = "first + t / across * pitch + t % across"
_ARRAYS = f"uint* out, {inputs('const')}, uint zero, uint n, uint* cells"


def host(program: Program, name: str) -> str:
    """Return a program as C++ that runs one threadgroup.

    ``first`` is the threadgroup's first thread, ``size`` its number of threads, ``across`` how many are in a row, and
    ``pitch`` how many are in a row of the grid.
    """
    helpers = "".join(Writer().helper(h) for h in program.helpers)
    threadgroup = f'extern "C" void {name}({_ARRAYS}, uint first, uint size, uint across, uint pitch)'
    run = _together(program, threadgroup) if program.together else _one_by_one(program, threadgroup)
    return f"namespace ns_{name} {{\n{helpers}{run}}}\n"


def _one_by_one(program: Program, threadgroup: str) -> str:
    """Return two functions: a thread, and a threadgroup that runs its threads one after another."""
    return (
        f"static void thread({_ARRAYS}, uint i, uint lid, uint size) {{\n"
        f"{Writer().block(program.body, '  ')}}}\n"
        f"{threadgroup} {{\n"
        "  for (uint t = 0; t < size; ++t)\n"
        f"    thread(out, a, s, b, f, c, zero, n, cells, {_PLACE}, t, size);\n}}\n"
    )


def _together(program: Program, threadgroup: str) -> str:
    """Return a threadgroup in lockstep."""
    flush = f"  for (uint k = 0; k < {CELLS}; ++k) cells[{CELLS} + k] += held[k];\n" if program.held else ""
    starts = ", ".join(f"{start}u, {start}u" for start in ATOMICS.values())
    return (
        f"{threadgroup} {{\n"
        f"  uint i[{LARGEST}], lid[{LARGEST}], width[{LARGEST}], shared[{LARGEST}] = {{}}, tile[{2 * LARGEST}];\n"
        f"  bool gone[{LARGEST}] = {{}};\n"
        "  for (uint t = 0; t < size; ++t) {\n"
        f"    i[t] = {_PLACE}; lid[t] = t; width[t] = min(32u, size - t / 32 * 32);\n"
        "  }\n"
        f"  uint held[{CELLS}] = {{{starts}}};\n"
        f"{LockstepWriter().block(program.body, '  ')}"
        f"{flush}}}\n"
    )
