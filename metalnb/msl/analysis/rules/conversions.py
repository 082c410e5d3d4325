"""Check conversions: a value keeps its address space (MSL 4).

In clang, Metal's thread space is the generic address space, to which all other spaces convert. Apple's compiler
converts none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metalnb.errors import Diagnostic

from ...libclang.cursor_children import children_of
from ...libclang.parse import Parsed
from .instantiated_syntax import instantiated_syntax
from .syntax_walk import CellSyntax, marks, space

__all__ = ["check"]

_ELSEWHERE = frozenset({"device", "constant", "threadgroup"})


def check(parsed: Parsed, syntax: CellSyntax) -> Iterator[Diagnostic]:
    """Check functions' arguments and all pointers to thread memory; templates are checked as instantiated."""
    for part in (syntax, instantiated_syntax(parsed, syntax)):
        yield from _check_syntax(parsed, part)


def _check_syntax(parsed: Parsed, syntax: CellSyntax) -> Iterator[Diagnostic]:
    for function in syntax.functions:
        for call in function.calls:
            callee = call.referenced
            if callee is not None and parsed.owner(callee.location) is not None and not _is_implicit(callee):
                yield from _arguments(parsed, call, callee)
                yield from _deduced_spaces(parsed, call, callee)
    yield from _pointers(parsed, syntax)
    yield from _unmarked_conversions(parsed, syntax)


def _is_implicit(member: Any) -> bool:
    """Return whether a member is implicit, and so serves every space; its location is then that of its class."""
    return bool(member.kind.name == "CXX_METHOD" and member.location == member.semantic_parent.location)


def _arguments(parsed: Parsed, call: Any, callee: Any) -> Iterator[Diagnostic]:
    """Refuse a value in another space where a function takes a reference to thread memory (or is a thread object's)."""
    is_constructor = callee.kind.name == "CONSTRUCTOR"
    if callee.kind.name == "CONVERSION_FUNCTION" or (is_constructor and _copies(callee)):
        return  # a copy: MSL's own classes can be copied from every space
    for argument in children_of(call):
        is_object = argument.kind.name == "MEMBER_REF_EXPR"
        value = next(iter(children_of(argument)), None) if is_object else argument
        source_space = _source_space(value)
        # The object itself, which is passed to its members unchanged.
        is_own_object = is_object or (callee.kind.name == "CXX_METHOD" and callee.spelling.startswith("operator"))
        if not is_own_object and value is not None and value.type.kind.name != "POINTER" and _becomes_constant(value):
            yield parsed.diagnostic(
                argument.location, f"a device value is passed to '{call.spelling}', which takes a constant reference",
                f"copy it to a variable first, or overload '{call.spelling}' for device references (MSL 4.2)",
            )  # fmt: skip
        if is_constructor or not source_space or value is None or value.type.kind.name == "POINTER":
            continue
        if is_object:
            yield parsed.diagnostic(
                call.location,
                f"'{call.spelling}' is a member for thread objects; this object is in {source_space} memory",
                f"declare it for {source_space} objects too: {call.spelling}(…) const {source_space} {{ … }} (MSL 4)",
            )  # fmt: skip
        else:
            yield _argument_error(parsed, argument, call, source_space)


def _deduced_spaces(parsed: Parsed, call: Any, callee: Any) -> Iterator[Diagnostic]:
    """Refuse an address space deduced as part of a template's type parameter: ``device`` for ``thread T*``."""
    for parameter, argument in zip(callee.get_arguments(), call.get_arguments(), strict=False):
        source_space = space(parameter.type.get_pointee()) if parameter.type.kind.name in _ADDRESSES else ""
        if argument is None or source_space not in _ELSEWHERE or "thread" not in marks(parameter):
            continue
        if parameter.type.kind.name == "POINTER":
            yield _thread_pointer_error(parsed, argument, source_space)
        else:
            yield _argument_error(parsed, argument, call, source_space)


def _pointers(parsed: Parsed, syntax: CellSyntax) -> Iterator[Diagnostic]:
    """Refuse a pointer to another space where one to thread memory is required."""
    for cast, parent in syntax.casts:
        source_space = _source_space(cast)
        taker = parent.referenced if parent.kind.name == "CALL_EXPR" else None
        is_ours = taker is not None and parsed.owner(taker.location) is None
        if cast.type.kind.name != "POINTER":
            if parent.kind.name not in {"CALL_EXPR", "MEMBER_REF_EXPR"} and _becomes_constant(cast):
                yield _constant_error(parsed, cast)
            continue
        if not is_ours and parent.kind.name != "MEMBER_REF_EXPR" and _becomes_constant(cast):
            yield _constant_error(parsed, cast, pointer=True)
        if not source_space:
            continue
        callee = parent.referenced if parent.kind.name in {"CALL_EXPR", "MEMBER_REF_EXPR"} else None
        if callee is not None and parsed.owner(callee.location) is None:
            continue  # the library's members serve every space
        if parent.kind.name == "MEMBER_REF_EXPR":
            yield parsed.diagnostic(
                cast.location,
                f"'{parent.spelling}' is a member for thread objects; this object is in {source_space} memory",
                f"declare it for {source_space} objects too: {parent.spelling}(…) const {source_space} {{ … }} (MSL 4)",
            )  # fmt: skip
        else:
            yield _thread_pointer_error(parsed, cast, source_space)


def _unmarked_conversions(parsed: Parsed, syntax: CellSyntax) -> Iterator[Diagnostic]:
    """Refuse conversions that are not in clang's tree: those in templates and in braced values of a class's members."""
    for variable in (v for f in syntax.functions for v in f.variables):
        value = [c for c in children_of(variable) if c.kind.is_expression()][-1:]
        if value and value[0].kind.name == "INIT_LIST_EXPR":
            value = children_of(value[0])
        if value and _refers_to_device(variable.type, value[0]):
            yield _constant_error(parsed, value[0], pointer=variable.type.kind.name == "POINTER")
    for braces in syntax.lists:
        values = [c for c in children_of(braces) if c.kind.is_expression()]
        for member, value in zip(braces.type.get_canonical().get_fields(), values, strict=False):
            if value.kind.name == "INIT_LIST_EXPR" or member.type.get_canonical().kind.name not in _ADDRESSES:
                break  # after this, fields and values may not correspond
            if _refers_to_device(member.type, value):
                yield _constant_error(parsed, value, pointer=member.type.kind.name == "POINTER")


_ADDRESSES = frozenset({"POINTER", "LVALUEREFERENCE"})


def _refers_to_device(kind: Any, value: Any) -> bool:
    """Return whether a pointer or reference to constant memory is certain to refer to device memory."""
    if kind.kind.name not in _ADDRESSES or space(kind.get_pointee()) != "constant":
        return False
    value_type = value.type
    if kind.kind.name == "POINTER":
        return value_type.kind.name == "POINTER" and space(value_type.get_pointee()) == "device"
    return _address_space(value) == "device"


def _address_space(value: Any) -> str:
    """Return an expression's address space, even if its type is not known yet; "" if unknown."""
    while value.kind.name in {"UNEXPOSED_EXPR", "PAREN_EXPR", "MEMBER_REF_EXPR"}:
        inner = [c for c in children_of(value) if c.kind.is_expression()]
        if len(inner) != 1 or inner[0].type.kind.name == "POINTER":
            break
        value = inner[0]
    parts = [c for c in children_of(value) if c.kind.is_expression()]
    is_element = value.kind.name in {"ARRAY_SUBSCRIPT_EXPR", "UNARY_OPERATOR"} and parts
    kind = parts[0].type if is_element else value.type
    if is_element and kind.kind.name != "POINTER":
        return ""
    value_type = kind.get_pointee() if is_element else kind
    return "" if value_type.kind.name == "INVALID" else space(value_type)


def _thread_pointer_error(parsed: Parsed, value: Any, source_space: str) -> Diagnostic:
    return parsed.diagnostic(
        value.location, f"a {source_space} pointer is used as a thread pointer",
        f"a pointer keeps its address space: write {source_space} before its type, not thread (MSL 4)",
    )  # fmt: skip


def _argument_error(parsed: Parsed, value: Any, call: Any, source_space: str) -> Diagnostic:
    return parsed.diagnostic(
        value.location, f"a {source_space} value is passed to '{call.spelling}', which takes a thread reference",
        f"copy it to a variable first, or overload '{call.spelling}' for {source_space} references (MSL 4)",
    )  # fmt: skip


def _constant_error(parsed: Parsed, value: Any, *, pointer: bool = False) -> Diagnostic:
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


def _becomes_constant(cast: Any) -> bool:
    """Return whether an implicit conversion turns device memory into constant memory."""
    if cast.kind.name != "UNEXPOSED_EXPR" or not _leads_into(cast, "constant"):
        return False
    inner = [c for c in children_of(cast) if c.kind.is_expression()]
    if len(inner) != 1 or inner[0].kind.name == "CALL_EXPR":
        return False  # the result of a device member called on a constant object may well be meant as constant
    target, source = cast.type, inner[0].type
    if target.kind.name == "POINTER" == source.kind.name:
        target, source = target.get_pointee(), source.get_pointee()
    is_known = source.kind.name != "INVALID" and target.is_const_qualified()
    return bool(is_known and space(target) == "constant" and space(source) == "device")


def _leads_into(cast: Any, target_space: str) -> bool:
    """Return whether an expression may be a value in an address space or a pointer into it; a cheap first test."""
    kind = cast.type
    return target_space in {space(kind), space(kind.get_pointee()) if kind.kind.name == "POINTER" else ""}


def _source_space(cast: Any) -> str:
    """Return the space from which a conversion moves a value or pointer to thread memory; else an empty string."""
    if cast is None or not cast.kind.name.endswith("_EXPR") or not _leads_into(cast, "thread"):
        return ""
    inner = [c for c in children_of(cast) if c.kind.is_expression()]
    if len(inner) != 1:
        return ""
    target, source = cast.type, inner[0].type
    if target.kind.name == "POINTER":
        if source.kind.name != "POINTER":
            return ""
        target, source = target.get_pointee(), source.get_pointee()
    if source.kind.name == "INVALID" or space(target) != "thread":
        return ""
    source_space = space(source)
    return source_space if source_space in _ELSEWHERE else ""
