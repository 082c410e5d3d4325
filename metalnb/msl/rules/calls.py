"""Calls: no recursion, no kernel is called, and no pointer leaves its address space."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metalnb.errors import Diagnostic

from ..parse import Parsed
from .walk import Function, Walk, marks, space

__all__ = ["check"]

_ELSEWHERE = frozenset({"device", "constant", "threadgroup"})


def check(parsed: Parsed, found: Walk) -> Iterator[Diagnostic]:
    """Check who calls whom, and with what."""
    own = {f.cursor.spelling for f in found.functions} - {""}
    edges: dict[str, list[tuple[Any, str]]] = {}
    for function in found.functions:
        if not function.calls:
            continue
        out = edges.setdefault(function.cursor.get_usr(), [])
        for call in function.calls:
            if call.spelling not in own:
                continue
            callee = call.referenced
            if callee is None or parsed.owner(callee.location) is None:
                continue
            out.append((call, callee.get_usr()))
            if "kernel" in marks(callee):
                yield parsed.diagnostic(
                    call.location, f"kernel '{callee.spelling}' is called like a function",
                    "move what both need into a function without kernel, and call that (MSL 5.1)",
                )  # fmt: skip
            yield from _arguments(parsed, call, callee)
    yield from _recursion(parsed, found.functions, edges)
    yield from _pointers(parsed, found)


def _recursion(parsed: Parsed, functions: list[Function], edges: dict[str, list[tuple[Any, str]]]) -> Iterator[Diagnostic]:
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


def _reaches(start: str, goal: str, edges: dict[str, list[tuple[Any, str]]]) -> bool:
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


def _arguments(parsed: Parsed, call: Any, callee: Any) -> Iterator[Diagnostic]:
    """Refuse a value in another space where a function takes a reference to thread memory (or is a thread object's)."""
    if callee.kind.name in {"CONSTRUCTOR", "CONVERSION_FUNCTION"}:
        return  # a copy: MSL's own copies come from every space
    for argument in call.get_children():
        is_object = argument.kind.name == "MEMBER_REF_EXPR"
        given = next(iter(argument.get_children()), None) if is_object else argument
        moved = _moved(given)
        if not moved or given.type.kind.name == "POINTER":
            continue
        if is_object:
            yield parsed.diagnostic(
                call.location, f"'{call.spelling}' is a member for thread objects; this object is in {moved} memory",
                f"declare it for {moved} objects too: {call.spelling}(…) const {moved} {{ … }} (MSL 4)",
            )  # fmt: skip
        else:
            yield parsed.diagnostic(
                argument.location, f"a {moved} value is passed to '{call.spelling}', which takes a thread reference",
                f"copy it to a variable first, or overload '{call.spelling}' for {moved} references (MSL 4)",
            )  # fmt: skip


def _pointers(parsed: Parsed, found: Walk) -> Iterator[Diagnostic]:
    """Refuse a pointer to another space where one to thread memory is wanted."""
    for cast, parent in found.casts:
        moved = _moved(cast)
        if not moved:
            continue
        called = parent.referenced if parent.kind.name in {"CALL_EXPR", "MEMBER_REF_EXPR"} else None
        if called is not None and parsed.owner(called.location) is None:
            continue  # the library's members serve every space
        if parent.kind.name == "MEMBER_REF_EXPR":
            yield parsed.diagnostic(
                cast.location, f"'{parent.spelling}' is a member for thread objects; this object is in {moved} memory",
                f"declare it for {moved} objects too: {parent.spelling}(…) const {moved} {{ … }} (MSL 4)",
            )  # fmt: skip
        else:
            yield parsed.diagnostic(
                cast.location, f"a {moved} pointer is used as a thread pointer",
                f"a pointer keeps its address space: write {moved} in place of thread (MSL 4)",
            )  # fmt: skip


def _moved(cast: Any) -> str:
    """Name the space that a conversion takes a value or pointer from into thread memory; nothing when it does not."""
    if cast is None or not cast.kind.name.endswith("_EXPR"):
        return ""
    inner = [c for c in cast.get_children() if c.kind.is_expression()]
    if len(inner) != 1:
        return ""
    into, source = cast.type, inner[0].type
    if into.kind.name == "POINTER":
        if source.kind.name != "POINTER":
            return ""
        into, source = into.get_pointee(), source.get_pointee()
    if source.kind.name == "INVALID" or space(into) != "thread":
        return ""
    moved = space(source)
    return moved if moved in _ELSEWHERE else ""
