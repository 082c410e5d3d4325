"""Rank the calls of ``metalnb_converge``, at which lanes converge, in program order.

Machine code does not show that order, because clang moves blocks, unrolls loops and duplicates code. The lines and
columns in the debug information do: a call's position is the chain of lines from the kernel down to it, and two calls
with the same chain are copies of one call.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .debug_lines import DebugLines, Line
from .iteration_ends import TextPosition
from .object_files import object_file

__all__ = ["call_site_ranks"]


def call_site_ranks(code: bytes, file: bytes, ends: Mapping[Line, TextPosition]) -> bytes:
    """Return the ranks of a kernel's calls of ``metalnb_converge``, for `metalnb_call_sites` in runtime/fibers.c.

    Parameters
    ----------
    code : bytes
        The kernel's object file.
    file : bytes
        The library that it was linked to.
    ends : mapping of Line to TextPosition
        Positions that are ranked as other positions in their file: see `metalnb.engine.cpu.iteration_ends`.

    Returns
    -------
    bytes
        A uint32 for each byte of the library's image: at a call's return address, the call's rank, from 1.
        Empty if the linker has removed the symbols; the order is then that of the machine code.
    """
    object_code, image = object_file(code), object_file(file)
    if "metalnb_thread" not in image.symbols:
        return b""
    shift = image.symbols["metalnb_thread"] - object_code.symbols["metalnb_thread"]
    return_addresses = sorted(offset + 4 + shift for offset, name in object_code.calls if name == "metalnb_converge")
    if not return_addresses:
        return b""
    if ".debug_line" in image.sections:
        chains = DebugLines(file).chains([p - 1 for p in return_addresses])
    else:  # on macOS, debug information stays in the object file
        chains = DebugLines(code).chains([p - 1 - shift for p in return_addresses])
    keys = [tuple(_sort_key(line, ends) for line in reversed(chain)) for chain in chains]
    rank = {key: i + 1 for i, key in enumerate(sorted(set(keys)))}
    ranks = np.zeros(return_addresses[-1] + 1, np.uint32)
    ranks[return_addresses] = [rank[key] for key in keys]
    return ranks.tobytes()


def _sort_key(line: Line, ends: Mapping[Line, TextPosition]) -> TextPosition:
    return ends.get(line, (line.line, line.column))
