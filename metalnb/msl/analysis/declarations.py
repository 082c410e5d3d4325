"""The author's declarations in a cell's syntax tree: their comments and names, and which kernels use SIMD-groups."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..libclang.cursor_children import children_of
from ..libclang.parse import Parsed
from .kernel_names import attributes_of
from .rules.syntax_walk import CellSyntax

__all__ = ["comment", "declarations", "host_name", "string_argument", "users_of_simdgroups"]

_SKIPPED = {"NAMESPACE", "LINKAGE_SPEC", "UNEXPOSED_DECL"}


def declarations(parsed: Parsed, cursor: Any) -> Iterator[Any]:
    """Yield the author's declarations at namespace scope."""
    for child in children_of(cursor):
        if parsed.owner(child.location) is None:
            continue
        if child.kind.name in _SKIPPED:
            yield from declarations(parsed, child)
        else:
            yield child


def users_of_simdgroups(parsed: Parsed, syntax: CellSyntax) -> frozenset[int | None]:
    """Return the hashes of the cell's kernels that may use SIMD-groups; the set includes None if any kernel may.

    Every kernel counts as calling all members and operators, since they can be called without their names.
    """
    users: set[int | None] = {None} if syntax.simdgroups else set()
    words: set[str] = set()
    remaining = list(syntax.functions)
    while new_users := [f for f in remaining if f.simdgroups or not words.isdisjoint(f.names)]:
        remaining = [f for f in remaining if not f.simdgroups and words.isdisjoint(f.names)]
        for cursor in (f.cursor for f in new_users):
            if parsed.owner(cursor.location) is parsed.cell and "kernel" in attributes_of(cursor):
                users.add(cursor.hash)  # a kernel is never called
            elif _called_by_name(cursor):
                words.add(cursor.spelling)
            else:
                users.add(None)
    return frozenset(users if words.isdisjoint(syntax.names) else users | {None})


def _called_by_name(cursor: Any) -> bool:
    name = cursor.spelling
    implicit = name.startswith("operator") or name in {"begin", "end", "get"}
    return not implicit and cursor.semantic_parent.kind.name in {"TRANSLATION_UNIT", "NAMESPACE"}


def host_name(cursor: Any) -> str | None:
    """Return the name that a declaration's attribute gives it, or None."""
    mark = attributes_of(cursor).get("host_name")
    return None if mark is None else string_argument(mark)


def string_argument(mark: Any) -> str:
    """Read an annotation's string argument."""
    for child in mark.walk_preorder():
        if child.kind.name == "STRING_LITERAL":
            return str(child.spelling).strip('"')
    return ""


def comment(cursor: Any) -> str:
    """Return the comment above a declaration, without its markers."""
    raw = cursor.raw_comment
    if not raw:
        return ""
    raw = re.sub(r"^/\*+!?|\*+/$", "", raw.strip())
    lines = [re.sub(r"^\s*(?:///?!?<?|\*(?!\*))?\s?", "", line).rstrip() for line in raw.splitlines()]
    return "\n".join(lines).strip()
