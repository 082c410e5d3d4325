"""Calls: no kernel is called, no function calls itself (MSL 1.5.4, 5.1), and what is called is defined."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from metalnb.errors import Diagnostic

from ..parse import Parsed
from .walk import Function, Walk, marks

__all__ = ["check"]

# A function's name for the linker -> the calls in it, each with the name of what it calls.
Edges = dict[str, list[tuple[Any, str]]]


def check(parsed: Parsed, found: Walk) -> Iterator[Diagnostic]:
    """Check who calls whom."""
    edges: Edges = {}
    for function in found.functions:
        if not function.calls:
            continue
        out = edges.setdefault(function.cursor.get_usr(), [])
        for call in function.calls:
            callee = call.referenced
            if callee is None or parsed.owner(callee.location) is None:
                continue
            out.append((call, callee.get_usr()))
            if callee.get_definition() is None and not _is_made(callee):
                yield parsed.diagnostic(
                    call.location, f"function '{callee.spelling}' is called but never defined",
                    "define it in the cell, or in a header cell that it includes",
                )  # fmt: skip
            if "kernel" in marks(callee):
                yield parsed.diagnostic(
                    call.location, f"kernel '{callee.spelling}' is called like a function",
                    "move what both need into a function without kernel, and call that (MSL 5.1)",
                )  # fmt: skip
    yield from _recursion(parsed, found.functions, edges)
    for call in found.vectors:
        yield from _too_few(parsed, call)


def _too_few(parsed: Parsed, call: Any) -> Iterator[Diagnostic]:
    """Refuse ``float4(1, 2, 3)`` (MSL 2.2); in braces what is left out is 0."""
    callee = call.referenced
    if callee is None or callee.kind.name != "CONSTRUCTOR":
        return
    given = [p.type.spelling for p in callee.get_arguments()]
    width = re.search(r"vec<.*, ([34])>$", callee.semantic_parent.displayname)
    if width is None or len(given) != int(width[1]) - 1 or any("vec" in g or "$" in g for g in given):
        return
    cell = parsed.owner(call.location)
    if cell is None or cell.edited.text.encode()[call.extent.end.offset - 1 : call.extent.end.offset] != b")":
        return
    yield parsed.diagnostic(
        call.location, f"too few components for a vector of {width[1]}",
        "give all of them, or one for all (MSL 2.2)",
    )  # fmt: skip


def _is_made(function: Any) -> bool:
    """Tell a function that is made from a template, or by the compiler itself."""
    from clang import cindex

    made = cindex.conf.lib.clang_getSpecializedCursorTemplate(function)
    return made is not None or function.is_default_method() or function.kind.name in {"CONSTRUCTOR", "DESTRUCTOR"}


def _recursion(parsed: Parsed, functions: list[Function], edges: Edges) -> Iterator[Diagnostic]:
    for function in functions:
        start = function.cursor.get_usr()
        for call, callee in edges.get(start, ()):
            if _reaches(callee, start, edges) and not _is_constexpr(parsed, function.cursor):
                name = function.cursor.spelling
                how = "calls itself" if callee == start else f"calls itself through '{call.spelling}'"
                yield parsed.diagnostic(
                    call.location, f"'{name}' {how}: recursion is not supported",
                    "write a loop, or a template that calls another instantiation of itself (MSL 1.5.4)",
                )  # fmt: skip
                break


def _reaches(start: str, goal: str, edges: Edges) -> bool:
    ahead, seen = [start], {start}
    while ahead:
        here = ahead.pop()
        if here == goal:
            return True
        for _, following in edges.get(here, ()):
            if following not in seen:
                seen.add(following)
                ahead.append(following)
    return False


def _is_constexpr(parsed: Parsed, cursor: Any) -> bool:
    """Tell a function that the compiler itself may run; there recursion does no harm."""
    cell = parsed.owner(cursor.location)
    if cell is None:
        return False
    written = cell.edited.text.encode()[cursor.extent.start.offset : cursor.location.offset]
    return b"constexpr" in written or b"consteval" in written
