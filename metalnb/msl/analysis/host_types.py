"""The types that a kernel shares with its caller: sizes, alignments, and the layouts of structs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from metalnb.dtypes import layout_of, spell

from ..libclang.cursor_children import children_of
from ..libclang.hints import free_words, reword
from ..signature import Field, Struct, Type
from .kernel_names import own_name

__all__ = ["HostTypes"]


class HostTypes:
    """Reads types, and collects their structs.

    Parameters
    ----------
    problem : callable
        ``problem(cursor, message, hint)`` reports an error in a type.

    Attributes
    ----------
    structs : dict of str to Struct
    """

    def __init__(self, problem: Callable[..., None]) -> None:
        self._problem = problem
        self.structs: dict[str, Struct] = {}

    def read(self, kind: Any, cursor: Any) -> Type | None:
        """Return a host-visible type; for any other type, report a problem and return None."""
        kind = kind.get_canonical()
        extents = []
        while kind.kind.name == "CONSTANTARRAY":
            extents.append(kind.element_count)
            kind = kind.element_type.get_canonical()
        count = 1
        for n in extents:
            count *= n
        name = free_words(_atomic_value(spell(kind.spelling)))
        if kind.kind.name == "VOID":
            return Type("void", 0, 1, tuple(extents))
        layout = layout_of(name)
        if layout is not None:
            return Type(layout.name, layout.size * count, layout.alignment, tuple(extents))
        if kind.kind.name == "ENUM":
            return self.read(kind.get_declaration().enum_type, cursor)
        if kind.kind.name == "RECORD":
            record = self._record(kind, name, cursor)
            return Type(name, record.size * count, record.alignment, tuple(extents)) if record else None
        self._problem(cursor, f"a kernel parameter cannot point to '{reword(kind.spelling)}'",
                     "point to a scalar, a vector, a matrix or a struct")  # fmt: skip
        return None

    def _record(self, kind: Any, name: str, cursor: Any) -> Struct | None:
        """Read a struct's layout."""
        if name in self.structs:
            return self.structs[name]
        size = kind.get_size()
        if size < 0:
            message = f"'{name}' is incomplete: its size is not known"
            self._problem(cursor, message, f"define struct {name} before the kernel")
            return None
        self.structs[name] = Struct(name, (), size, kind.get_align())
        fields = self._fields(kind, name, cursor)
        if fields is None:
            return None
        self.structs[name] = Struct(name, tuple(fields), size, kind.get_align())
        return self.structs[name]

    def _fields(self, kind: Any, name: str, cursor: Any) -> list[Field] | None:
        """Read a class's fields: its bases' fields, which come first in memory, its own, and its unnamed members'."""
        fields: list[Field] = []
        end = 0
        for base in children_of(kind.get_declaration()):
            if base.kind.name == "CXX_BASE_SPECIFIER":
                base_kind = base.type.get_canonical()
                inherited = self._fields(base_kind, free_words(spell(base_kind.spelling)), cursor)
                if inherited is None:
                    return None
                start = -(-end // base_kind.get_align()) * base_kind.get_align()
                fields += [replace(field, offset=start + field.offset) for field in inherited]
                end = start + base_kind.get_size() if inherited else end
        for member in kind.get_fields():
            if member.is_bitfield():
                bits = member.spelling or name
                message = f"'{bits}' is a bit-field, which NumPy lacks: '{name}' cannot be a buffer's element type"
                self._problem(member, message, "pass whole integers, and take them apart with extract_bits (MSL 6.3)")
                return None
            offset = member.get_field_offsetof() // 8
            member_type = member.type.get_canonical()
            if not _NAME.fullmatch(member.spelling):
                inner = self._fields(member_type, name, cursor)
                if inner is None:
                    return None
                fields += [replace(field, offset=offset + field.offset) for field in inner]
                continue
            member_layout = (
                Type("pointer", 8, 8) if member_type.kind.name == "POINTER" else self.read(member_type, member)
            )
            if member_layout is not None:
                fields.append(Field(own_name(member.spelling), member_layout, offset))
        return list({field.name: field for field in fields}.values())  # a class's own field hides a base's


_NAME = re.compile(r"[\w$]+")
_ATOMIC = re.compile(r"^\$?_?atomic<(.+)>$")


def _atomic_value(name: str) -> str:
    """Return the type of an atomic's value."""
    match = _ATOMIC.match(name)
    return spell(match[1]) if match else name
