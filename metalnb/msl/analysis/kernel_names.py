"""The names of a kernel: its own, its function's, and the type that distinguishes overloads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..libclang.cursor_children import children_of
from ..signature import Signature

__all__ = ["apart", "attributes_of", "by_name", "own_name", "qualified", "specialization", "template_of", "type_among"]


def attributes_of(cursor: Any) -> dict[str, Any]:
    """Return a declaration's attributes, by name."""
    return {c.spelling: c for c in children_of(cursor) if c.kind.name == "ANNOTATE_ATTR"}


def own_name(name: str) -> str:
    """Return a name as the author wrote it: here, OpenCL's keywords are prefixed by ``$`` (``target/words.h``)."""
    return name.removeprefix("$")


def qualified(cursor: Any) -> str:
    """Return a function's fully qualified name: ``::a::k``."""
    names = [own_name(cursor.spelling)]
    parent = cursor.semantic_parent
    while parent is not None and parent.kind.name == "NAMESPACE":
        names.insert(0, parent.spelling)
        parent = parent.semantic_parent
    return "::" + "::".join(n for n in names if n)


def specialization(tail: Any) -> Any:
    """Find the function that ``decltype(f<T>)`` refers to, where the attributes' arguments have values."""
    found = (c.referenced for c in tail.walk_preorder() if c.kind.name == "DECL_REF_EXPR")
    return next((c for c in found if c is not None and c.kind.name == "FUNCTION_DECL"), None)


def template_of(made: Any) -> Any:
    """Return the kernel template that a function was instantiated from; None if there is none."""
    if made is None:
        return None
    from clang import cindex

    found = cindex.conf.lib.clang_getSpecializedCursorTemplate(made)
    is_kernel = found is not None and found.kind.name == "FUNCTION_TEMPLATE" and "kernel" in attributes_of(found)
    return found if is_kernel else None


_SPACES = (("__global_device", "device"), ("const __global", "constant"), ("__global const", "constant"))


def _written(kind: Any) -> str:
    """Return a parameter's type as a cell may write it."""
    text = str(kind.spelling)
    for ours, theirs in _SPACES:
        text = re.sub(rf"{ours}\b", theirs, text)
    return text


def apart(found: list[Signature]) -> list[Signature]:
    """Name kernels with the same name in several namespaces as Metal does, ``a::k`` and ``b::k``."""
    functions: dict[str, set[str]] = {}
    for k in found:
        functions.setdefault(k.name, set()).add(k.function)
    return [
        replace(k, name=k.function.removeprefix("::"))
        if len(functions[k.name]) > 1 and k.function.endswith(f"::{k.name}") and k.function.count("::") > 1
        else k
        for k in found
    ]


def by_name(declared: Iterable[Any]) -> dict[str, list[Any]]:
    """Return the functions and function templates among declarations, by name."""
    found: dict[str, list[Any]] = {}
    for cursor in declared:
        if cursor.kind.name in {"FUNCTION_DECL", "FUNCTION_TEMPLATE"}:
            found.setdefault(cursor.spelling, []).append(cursor)
    return found


def type_among(cursor: Any, declared: Mapping[str, list[Any]]) -> str:
    """Return the type of a kernel with an overloaded name; an empty string for any other."""
    named, name = declared[cursor.spelling], qualified(cursor)
    if len(named) == 1 or {c.get_usr() for c in named if qualified(c) == name} == {cursor.get_usr()}:
        return ""
    types = (_written(t.get_canonical()) for t in cursor.type.argument_types())
    return f"void ({', '.join(types)})"
