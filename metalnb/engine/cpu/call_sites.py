"""Where lanes converge: every call of ``metalnb_converge`` in a kernel's code, with its rank in the program's order.

Machine code is no witness of that order: clang moves blocks, unrolls loops and writes code twice. The lines and columns
that it keeps for debuggers are: a call's place is the chain of lines from the kernel down to it, and two calls of one
chain are copies of one call.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from metalnb.msl.text.scanned_cell import MAIN

from .debug_lines import DebugLines, Line
from .iteration_ends import Place
from .object_files import object_file

__all__ = ["call_site_ranks"]


def call_site_ranks(code: bytes, file: bytes, ends: Mapping[Place, Place]) -> bytes:
    """Return the ranks of a kernel's calls of ``metalnb_converge``, for `metalnb_call_sites` in runtime/fibers.c.

    Parameters
    ----------
    code : bytes
        The kernel's object file.
    file : bytes
        The library that it was linked to.
    ends : mapping of Place to Place
        Places of the cell that count as others: see `metalnb.engine.cpu.iteration_ends`.

    Returns
    -------
    bytes
        An uint32 for each byte from the start of the library's image on: at the address that such a call returns to,
        its rank, from 1. Nothing where the linker has left out the symbols: the order is then that of the machine code.
    """
    before, after = object_file(code), object_file(file)
    if "metalnb_thread" not in after.symbols:
        return b""
    shift = after.symbols["metalnb_thread"] - before.symbols["metalnb_thread"]
    places = sorted(offset + 4 + shift for offset, name in before.calls if name == "metalnb_converge")
    if not places:
        return b""
    if ".debug_line" in after.sections:
        chains = DebugLines(file).chains([p - 1 for p in places])
    else:  # on a Mac they stay in the object file
        chains = DebugLines(code).chains([p - 1 - shift for p in places])
    keys = [tuple(_ordered(line, ends) for line in reversed(chain)) for chain in chains]
    rank = {key: i + 1 for i, key in enumerate(sorted(set(keys)))}
    ranks = np.zeros(places[-1] + 1, np.uint32)
    ranks[places] = [rank[key] for key in keys]
    return ranks.tobytes()


def _ordered(line: Line, ends: Mapping[Place, Place]) -> Place:
    place = line.line, line.column
    return ends.get(place, place) if line.file == MAIN else place
