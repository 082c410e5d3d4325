"""Tables at program scope that clang's PTX back end writes wrongly: it leaves out the padding of vectors of three.

``constant float3 t[2]`` comes out as 24 bytes and zeros where 12 bytes, 4 of padding and 12 are meant, so that all but
the first element are read from the wrong place. It is told by the table's text, which is shorter than its size, and by
what the cell declares it as.
"""

from __future__ import annotations

import re

from ..unit import Unit

__all__ = ["unpadded"]

_TABLE = re.compile(r"\.global \.align \d+ \.b8 (\w+)\[(\d+)\] = \{([^}]*)\}")
_SCALARS = "bool|char|uchar|short|ushort|int|uint|long|ulong|half|float|bfloat|size_t|u?int(?:8|16|32|64)_t"
_THREE = re.compile(rf"\b(?:{_SCALARS})3(?:x3)?\b|\bvec\s*<")
_PLAIN = re.compile(rf"\b(?:packed_)?(?:{_SCALARS})[234]?\b")
_MANGLED = re.compile(r"\d+")


def unpadded(unit: Unit, text: str) -> str:
    """Return the name of a table in a kernel's PTX that lacks padding; an empty string when there is none.

    A table whose last bytes are zero is shorter than its size, too. It is let pass when it is of plain elements, or
    when no cell names a vector of three.
    """
    authored = "\n".join(cell.edited.original for cell in (unit.cell, *unit.headers.values()))
    for mangled, size, listed in _TABLE.findall(text):
        name = _name(mangled)
        if listed.count(",") + 1 < int(size) and _may_hold_three(name, authored):
            return name
    return ""


def _name(mangled: str) -> str:
    """Return the last identifier of a mangled name: ``table`` for ``_ZL5table`` and ``_ZN5tools5tableE``."""
    found, at = mangled, 0
    while length := _MANGLED.search(mangled, at):
        at = length.end() + int(length[0])
        found = mangled[length.end() : at]
    return found


def _may_hold_three(name: str, authored: str) -> bool:
    if not _THREE.search(authored):
        return False
    declared = re.search(rf"\bconstant\b([^;={{}}()]*)\b{re.escape(name)}\b", authored)
    if declared is None:
        return True
    kind = declared[1]
    return bool(_THREE.search(kind)) if _PLAIN.search(kind) else True
