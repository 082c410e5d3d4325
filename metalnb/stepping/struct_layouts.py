"""The layouts of a cell's structs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metalnb.msl.libclang.parse import Parsed

from .statements import FUNCTIONS, NESTED

__all__ = ["StructFields", "structs"]


@dataclass(frozen=True, slots=True)
class StructFields:
    """A struct's fields: name, the type's spelling, offset and size in bytes."""

    size: int
    fields: tuple[tuple[str, str, int, int], ...]


def structs(parsed: Parsed) -> dict[str, StructFields]:
    """Return the layouts of the cell's own structs, by name; struct templates have none until they are used."""
    layouts: dict[str, StructFields] = {}

    def add_structs(cursor: Any) -> None:
        for child in cursor.get_children():
            if parsed.owner(child.location) is None:
                continue
            kind = child.kind.name
            if kind in {"STRUCT_DECL", "CLASS_DECL"} and child.is_definition() and child.type.get_size() > 0:
                fields = (*_inherited_fields(child), *_own_fields(child))
                layouts[child.type.get_canonical().spelling] = StructFields(child.type.get_size(), fields)
            if kind in NESTED or kind in FUNCTIONS or kind in {"COMPOUND_STMT", "DECL_STMT"}:
                add_structs(child)

    add_structs(parsed.unit.cursor)
    return layouts


Fields = tuple[tuple[str, str, int, int], ...]


def _own_fields(struct: Any) -> Fields:
    return tuple(
        (f.spelling, f.type.get_canonical().spelling, struct.type.get_offset(f.spelling) // 8, f.type.get_size())
        for f in struct.get_children()
        if f.kind.name == "FIELD_DECL" and f.spelling and not f.is_bitfield()
    )


def _inherited_fields(struct: Any) -> Fields:
    """Return the fields of a struct's bases, which lie before its own, each base at its alignment."""
    fields, end = [], 0
    for base in (c.type for c in struct.get_children() if c.kind.name == "CXX_BASE_SPECIFIER"):
        declaration = base.get_declaration()
        start = -(-end // base.get_align()) * base.get_align()
        own = (*_inherited_fields(declaration), *_own_fields(declaration))
        fields += [(name, kind, start + offset, size) for name, kind, offset, size in own]
        end = start + base.get_size() if own else end
    return tuple(fields)
