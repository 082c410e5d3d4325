"""Conversions: a value keeps its address space (MSL 4).

In clang, Metal's thread space is the generic address space, to which all others convert; in Apple's compiler none does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metalnb.errors import Diagnostic

from ...libclang.cursor_children import children_of
from ...libclang.parse import Parsed
from .instantiated_syntax import instantiated
from .syntax_walk import CellSyntax, marks, space

__all__ = ["check"]

_ELSEWHERE = frozenset({"device", "constant", "threadgroup"})


def check(parsed: Parsed, found: CellSyntax) -> Iterator[Diagnostic]:
    """Check arguments of functions, and every pointer to thread memory; templates through their instantiations."""
    for each in (found, instantiated(parsed, found)):
        yield from _checked(parsed, each)


def _checked(parsed: Parsed, found: CellSyntax) -> Iterator[Diagnostic]:
    for function in found.functions:
        for call in function.calls:
            callee = call.referenced
            if callee is not None and parsed.owner(callee.location) is not None and not _is_made(callee):
                yield from _arguments(parsed, call, callee)
                yield from _deduced(parsed, call, callee)
    yield from _pointers(parsed, found)
    yield from _bound(parsed, found)


def _is_made(member: Any) -> bool:
    """Return whether a member is implicit, and so serves every space: its location is that of its class."""
    return bool(member.kind.name == "CXX_METHOD" and member.location == member.semantic_parent.location)


def _arguments(parsed: Parsed, call: Any, callee: Any) -> Iterator[Diagnostic]:
    """Refuse a value in another space where a function takes a reference to thread memory (or is a thread object's)."""
    made = callee.kind.name == "CONSTRUCTOR"
    if callee.kind.name == "CONVERSION_FUNCTION" or (made and _copies(callee)):
        return  # a copy: MSL's own copies come from every space
    for argument in children_of(call):
        is_object = argument.kind.name == "MEMBER_REF_EXPR"
        given = next(iter(children_of(argument)), None) if is_object else argument
        moved = _moved(given)
        # An object, passed to its members as it is.
        own = is_object or (callee.kind.name == "CXX_METHOD" and callee.spelling.startswith("operator"))
        if not own and given is not None and given.type.kind.name != "POINTER" and _is_made_constant(given):
            yield parsed.diagnostic(
                argument.location, f"a device value is passed to '{call.spelling}', which takes a constant reference",
                f"copy it to a variable first, or overload '{call.spelling}' for device references (MSL 4.2)",
            )  # fmt: skip
        if made or not moved or given is None or given.type.kind.name == "POINTER":
            continue
        if is_object:
            yield parsed.diagnostic(
                call.location, f"'{call.spelling}' is a member for thread objects; this object is in {moved} memory",
                f"declare it for {moved} objects too: {call.spelling}(…) const {moved} {{ … }} (MSL 4)",
            )  # fmt: skip
        else:
            yield _not_passed(parsed, argument, call, moved)


def _deduced(parsed: Parsed, call: Any, callee: Any) -> Iterator[Diagnostic]:
    """Refuse an address space deduced as part of a template's type parameter: ``device`` for ``thread T*``."""
    for parameter, argument in zip(callee.get_arguments(), call.get_arguments(), strict=False):
        moved = space(parameter.type.get_pointee()) if parameter.type.kind.name in _ADDRESSES else ""
        if argument is None or moved not in _ELSEWHERE or "thread" not in marks(parameter):
            continue
        if parameter.type.kind.name == "POINTER":
            yield _not_thread(parsed, argument, moved)
        else:
            yield _not_passed(parsed, argument, call, moved)


def _pointers(parsed: Parsed, found: CellSyntax) -> Iterator[Diagnostic]:
    """Refuse a pointer to another space where one to thread memory is required."""
    for cast, parent in found.casts:
        moved = _moved(cast)
        taker = parent.referenced if parent.kind.name == "CALL_EXPR" else None
        ours = taker is not None and parsed.owner(taker.location) is None
        if cast.type.kind.name != "POINTER":
            if parent.kind.name not in {"CALL_EXPR", "MEMBER_REF_EXPR"} and _is_made_constant(cast):
                yield _not_constant(parsed, cast)
            continue
        if not ours and parent.kind.name != "MEMBER_REF_EXPR" and _is_made_constant(cast):
            yield _not_constant(parsed, cast, pointer=True)
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
            yield _not_thread(parsed, cast, moved)


def _bound(parsed: Parsed, found: CellSyntax) -> Iterator[Diagnostic]:
    """Refuse conversions that clang leaves no trace of: in templates, and in braces for a class's members."""
    for variable in (v for f in found.functions for v in f.variables):
        value = [c for c in children_of(variable) if c.kind.is_expression()][-1:]
        if value and value[0].kind.name == "INIT_LIST_EXPR":
            value = children_of(value[0])
        if value and _taken(variable.type, value[0]):
            yield _not_constant(parsed, value[0], pointer=variable.type.kind.name == "POINTER")
    for braces in found.lists:
        values = [c for c in children_of(braces) if c.kind.is_expression()]
        for member, value in zip(braces.type.get_canonical().get_fields(), values, strict=False):
            if value.kind.name == "INIT_LIST_EXPR" or member.type.get_canonical().kind.name not in _ADDRESSES:
                break  # from here on fields and values may not correspond
            if _taken(member.type, value):
                yield _not_constant(parsed, value, pointer=member.type.kind.name == "POINTER")


_ADDRESSES = frozenset({"POINTER", "LVALUEREFERENCE"})


def _taken(kind: Any, value: Any) -> bool:
    """Return whether a pointer or reference to constant memory is certain to refer to device memory."""
    if kind.kind.name not in _ADDRESSES or space(kind.get_pointee()) != "constant":
        return False
    given = value.type
    if kind.kind.name == "POINTER":
        return given.kind.name == "POINTER" and space(given.get_pointee()) == "device"
    return _place(value) == "device"


def _place(value: Any) -> str:
    """Return an expression's address space, even if its type is not known yet; "" if unknown."""
    while value.kind.name in {"UNEXPOSED_EXPR", "PAREN_EXPR", "MEMBER_REF_EXPR"}:
        inner = [c for c in children_of(value) if c.kind.is_expression()]
        if len(inner) != 1 or inner[0].type.kind.name == "POINTER":
            break
        value = inner[0]
    parts = [c for c in children_of(value) if c.kind.is_expression()]
    through = value.kind.name in {"ARRAY_SUBSCRIPT_EXPR", "UNARY_OPERATOR"} and parts
    kind = parts[0].type if through else value.type
    if through and kind.kind.name != "POINTER":
        return ""
    known = kind.get_pointee() if through else kind
    return "" if known.kind.name == "INVALID" else space(known)


def _not_thread(parsed: Parsed, value: Any, moved: str) -> Diagnostic:
    return parsed.diagnostic(
        value.location, f"a {moved} pointer is used as a thread pointer",
        f"a pointer keeps its address space: write {moved} before its type, not thread (MSL 4)",
    )  # fmt: skip


def _not_passed(parsed: Parsed, value: Any, call: Any, moved: str) -> Diagnostic:
    return parsed.diagnostic(
        value.location, f"a {moved} value is passed to '{call.spelling}', which takes a thread reference",
        f"copy it to a variable first, or overload '{call.spelling}' for {moved} references (MSL 4)",
    )  # fmt: skip


def _not_constant(parsed: Parsed, value: Any, *, pointer: bool = False) -> Diagnostic:
    if pointer:
        return parsed.diagnostic(
            value.location, "a device pointer is used as a constant pointer",
            "a pointer keeps its address space: write device const before its type, not constant (MSL 4.2)",
        )  # fmt: skip
    return parsed.diagnostic(
        value.location, "a device value is bound to a constant reference",
        "a reference keeps its address space: write device const before its type, not constant (MSL 4.2)",
    )  # fmt: skip


def _copies(constructor: Any) -> bool:
    return bool(constructor.is_copy_constructor() or constructor.is_move_constructor())


def _is_made_constant(cast: Any) -> bool:
    """Return whether an implicit conversion turns device memory into constant memory."""
    if cast.kind.name != "UNEXPOSED_EXPR" or not _leads_into(cast, "constant"):
        return False
    inner = [c for c in children_of(cast) if c.kind.is_expression()]
    if len(inner) != 1 or inner[0].kind.name == "CALL_EXPR":
        return False  # the result of a device member called on a constant object may well be meant as constant
    into, source = cast.type, inner[0].type
    if into.kind.name == "POINTER" == source.kind.name:
        into, source = into.get_pointee(), source.get_pointee()
    known = source.kind.name != "INVALID" and into.is_const_qualified()
    return bool(known and space(into) == "constant" and space(source) == "device")


def _leads_into(cast: Any, where: str) -> bool:
    """Return whether an expression may be a value in an address space or a pointer into it; a cheap first test."""
    kind = cast.type
    return where in {space(kind), space(kind.get_pointee()) if kind.kind.name == "POINTER" else ""}


def _moved(cast: Any) -> str:
    """Return the space from which a conversion moves a value or pointer to thread memory; else an empty string."""
    if cast is None or not cast.kind.name.endswith("_EXPR") or not _leads_into(cast, "thread"):
        return ""
    inner = [c for c in children_of(cast) if c.kind.is_expression()]
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
