"""Fix tables at program scope, in which clang's PTX back end leaves out the padding of vectors of three.

``constant float3 t[2]`` is written as 24 bytes and zeros in place of 12 bytes, 4 of padding, and 12. The code reads
from the right positions, so the bytes are rewritten from the same constants in LLVM IR.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ..llvm.constant_values import constant_bytes, read_constants
from ..llvm.llvm_reader import read_module
from ..llvm.llvm_types import IRType, MemoryLayout
from ..unit import Unit

__all__ = ["read_tables_of_three", "restore_padding"]

_TABLE = re.compile(r"(\.global \.align \d+ \.b8 ([\w$]+)\[(\d+)\] = )\{([^}]*)\}")
_SCALARS = "bool|char|uchar|short|ushort|int|uint|long|ulong|half|float|bfloat|size_t|u?int(?:8|16|32|64)_t"
_THREE = re.compile(rf"\b(?:{_SCALARS})3(?:x3)?\b|\bvec\s*<|x3\b|\bmatrix\s*<")


def restore_padding(unit: Unit, text: str, llvm: Callable[[], str]) -> str:
    """Return a kernel's PTX with the tables that lack padding rewritten.

    A table is shorter than its size if padding was left out, but also if its last bytes are zero; LLVM IR is
    consulted only if a cell names a vector of three.

    Parameters
    ----------
    unit : Unit
    text : str
    llvm : callable
        Returns the LLVM IR of the same kernel.

    Raises
    ------
    ValueError
        If a table's contents cannot be determined.
    """
    is_short = any(numbers.count(",") + 1 < int(size) for _, _, size, numbers in _TABLE.findall(text))
    author_texts = (cell.edited.original for cell in (unit.cell, *unit.headers.values()))
    if not is_short or not any(map(_THREE.search, author_texts)):
        return text
    tables = read_tables_of_three(llvm())

    def rewrite_table(table: re.Match[str]) -> str:
        begin, name, size, _ = table.groups()
        if name not in tables:
            return table[0]
        if len(tables[name]) != int(size):
            message = f"'{name}' takes {size} bytes in PTX and {len(tables[name])} bytes in LLVM IR"
            raise ValueError(message)
        return f"{begin}{{{', '.join(map(str, tables[name]))}}}"

    return _TABLE.sub(rewrite_table, text)


def read_tables_of_three(text: str) -> dict[str, bytes]:
    """Return the bytes of each constant in LLVM IR that holds vectors of three, by its name in PTX.

    Raises
    ------
    ValueError
        If one holds something other than numbers, such as an address.
    """
    module = read_module(text, bodies=False)
    layout = module.layout
    return {
        re.sub(r"[.@]", "_$_", name.strip('"')): constant_bytes(ir_type, value, layout)
        for name, ir_type, value in read_constants(module)
        if _holds_three(ir_type, layout)
    }


def _holds_three(ir_type: IRType, layout: MemoryLayout) -> bool:
    ir_type = layout.resolve(ir_type)
    if ir_type.kind == "vector":
        return ir_type.count == 3
    return any(_holds_three(field, layout) for field in ir_type.fields)
