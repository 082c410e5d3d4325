"""Check that every pointer names an address space, and that variables are declared where theirs allows (MSL 4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metalnb.errors import Diagnostic

from ...libclang.parse import Parsed
from .syntax_walk import CellSyntax, FunctionSyntax, marks, space

__all__ = ["check"]

MAX_THREADGROUP_MEMORY = 32768
_ARRAYS = frozenset({"CONSTANTARRAY", "INCOMPLETEARRAY", "VARIABLEARRAY", "DEPENDENTSIZEDARRAY"})
_POINTERS = {"POINTER": "pointer", "LVALUEREFERENCE": "reference", "RVALUEREFERENCE": "reference"}
# Types that may include an address space: auto, a template's parameter, decltype.
_OPEN = frozenset({"AUTO", "UNEXPOSED", "DEPENDENT", "INVALID", "FUNCTIONPROTO", "FUNCTIONNOPROTO"})
_WORDS = "device, constant, threadgroup or thread"


def check(parsed: Parsed, syntax: CellSyntax) -> Iterator[Diagnostic]:
    """Check the declarations."""
    for cursor in syntax.declarations:
        kind = _pointer_without_space(cursor.type)
        if kind and "thread" not in marks(cursor):
            role = {"FIELD_DECL": "member", "PARM_DECL": "parameter"}.get(cursor.kind.name, "variable")
            name = f"{role} '{cursor.spelling}'" if cursor.spelling else f"a {role}"
            yield parsed.diagnostic(
                cursor.location, f"{name} is a {kind} without an address space",
                f"write {_WORDS} before its type, as in thread float{'*' if kind == 'pointer' else '&'} (MSL 4)",
            )  # fmt: skip
    for function in syntax.functions:
        kind = _pointer_without_space(function.cursor.type.get_result())
        if kind and "thread" not in marks(function.cursor):
            yield parsed.diagnostic(
                function.cursor.location, f"'{function.cursor.spelling}' returns a {kind} without an address space",
                f"write {_WORDS} before the type it returns (MSL 4)",
            )  # fmt: skip
        yield from _locals(parsed, function)
    for cursor in syntax.program:
        yield from _program_scope(parsed, cursor)
    yield from _members(parsed, syntax)


def _element(kind: Any) -> Any:
    while kind.kind.name in _ARRAYS:
        kind = kind.element_type
    return kind


def _pointer_without_space(kind: Any) -> str:
    """Return "pointer" or "reference" for a type that is one and has no address space, else an empty string."""
    kind = _element(kind)
    word = _POINTERS.get(kind.kind.name, "")
    if not word:
        return ""
    pointee = _element(kind.get_pointee())
    if word == "reference" and pointee.kind.name == "POINTER":
        return _pointer_without_space(pointee)  # Apple's compiler requires it only for the pointer: device float*& x
    if pointee.kind.name in _OPEN or pointee.get_canonical().kind.name in _OPEN:
        return ""
    return word if space(pointee) in {"thread", ""} else ""


def _is_storage(variable: Any) -> bool:
    """Return whether a reference is a threadgroup variable rewritten by the scan, and not the author's own."""
    if variable.type.kind.name != "LVALUEREFERENCE" or space(variable.type.get_pointee()) != "threadgroup":
        return False
    return any(c.spelling == "$threadgroup_storage" for c in variable.walk_preorder())


def _locals(parsed: Parsed, function: FunctionSyntax) -> Iterator[Diagnostic]:
    is_kernel = "kernel" in marks(function.cursor)
    total = 0
    for variable in function.variables:
        name = variable.spelling
        if variable.storage_class.name == "STATIC" and "constant" not in marks(variable):
            yield parsed.diagnostic(
                variable.location, f"variable '{name}' in a function cannot be static",
                "drop static; for a table write constant at program scope (MSL 5.3)",
            )  # fmt: skip
        if not _is_storage(variable):
            continue
        if not is_kernel:
            yield parsed.diagnostic(
                variable.location, f"threadgroup variable '{name}' is declared outside a kernel",
                f"declare it in a kernel's body, and pass '{function.cursor.spelling}' a pointer to it (MSL 4.4)",
            )  # fmt: skip
            continue
        size = max(0, variable.type.get_pointee().get_size())
        if total <= MAX_THREADGROUP_MEMORY < total + size:
            yield parsed.diagnostic(
                variable.location,
                f"kernel '{function.cursor.spelling}' declares {total + size:,} bytes of threadgroup memory, "
                f"including '{name}'; Metal allows {MAX_THREADGROUP_MEMORY:,}",
                "make its threadgroup variables smaller",
            )  # fmt: skip
        total += size


def _program_scope(parsed: Parsed, variable: Any) -> Iterator[Diagnostic]:
    name = variable.spelling
    if _is_storage(variable):
        yield parsed.diagnostic(
            variable.location, f"threadgroup variable '{name}' is declared outside a kernel",
            "declare it in the kernel's body (MSL 4.4)",
        )  # fmt: skip
    elif "constant" not in marks(variable) and "constant" not in marks(variable.type.get_declaration()):
        yield parsed.diagnostic(
            variable.location, f"program-scope variable '{name}' must be in the constant address space",
            "write constant before its type; for data that a kernel writes, pass a device buffer (MSL 4.2)",
        )  # fmt: skip
    elif variable.storage_class.name == "EXTERN" and variable.get_definition() is None:
        yield parsed.diagnostic(
            variable.location, f"extern variable '{name}' has no value: a cell is a complete program",
            "give it a value, or [[function_constant(n)]]",
        )  # fmt: skip


def _members(parsed: Parsed, syntax: CellSyntax) -> Iterator[Diagnostic]:
    for cursor in syntax.declarations:
        if cursor.kind.name == "FIELD_DECL" and _is_storage(cursor):
            yield parsed.diagnostic(
                cursor.location, f"member '{cursor.spelling}' cannot have its own address space",
                "drop threadgroup: a member lives where its struct does (MSL 4)",
            )  # fmt: skip
