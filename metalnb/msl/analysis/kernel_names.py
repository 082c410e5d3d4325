"""Find a kernel's own name, its function's name, and the type that distinguishes overloads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..libclang.cursor_children import children_of
from ..signature import Signature

__all__ = [
    "attributes_of", "by_name", "own_name", "qualified_name", "qualify_duplicates", "specialization", "template_of",
    "type_among",
]  # fmt: skip


def attributes_of(cursor: Any) -> dict[str, Any]:
    """Return a declaration's attributes, by name."""
    return {c.spelling: c for c in children_of(cursor) if c.kind.name == "ANNOTATE_ATTR"}


def own_name(name: str) -> str:
    """Return a name as the author wrote it, without the ``$`` that marks OpenCL's keywords (``target/words.h``)."""
    return name.removeprefix("$")


def qualified_name(cursor: Any) -> str:
    """Return a function's fully qualified name: ``::a::k``."""
    names = [own_name(cursor.spelling)]
    parent = cursor.semantic_parent
    while parent is not None and parent.kind.name == "NAMESPACE":
        names.insert(0, parent.spelling)
        parent = parent.semantic_parent
    return "::" + "::".join(n for n in names if n)


def specialization(tail: Any) -> Any:
    """Find the function that ``decltype(f<T>)`` refers to: there the attributes' arguments have values."""
    candidates = (c.referenced for c in tail.walk_preorder() if c.kind.name == "DECL_REF_EXPR")
    return next((c for c in candidates if c is not None and c.kind.name == "FUNCTION_DECL"), None)


def template_of(instance: Any) -> Any:
    """Return the kernel template that a function was instantiated from; None if there is none."""
    if instance is None:
        return None
    from clang import cindex

    template = cindex.conf.lib.clang_getSpecializedCursorTemplate(instance)
    is_kernel = (
        template is not None and template.kind.name == "FUNCTION_TEMPLATE" and "kernel" in attributes_of(template)
    )
    return template if is_kernel else None


_SPACES = (("__global_device", "device"), ("const __global", "constant"), ("__global const", "constant"))


def _author_type(kind: Any) -> str:
    """Return a parameter's type as a cell may write it."""
    text = str(kind.spelling)
    for opencl_space, metal_space in _SPACES:
        text = re.sub(rf"{opencl_space}\b", metal_space, text)
    return text


def qualify_duplicates(kernels: list[Signature]) -> list[Signature]:
    """Qualify kernels that have the same name in different namespaces as Metal does: ``a::k`` and ``b::k``."""
    functions: dict[str, set[str]] = {}
    for k in kernels:
        functions.setdefault(k.name, set()).add(k.function)
    return [
        replace(k, name=k.function.removeprefix("::"))
        if len(functions[k.name]) > 1 and k.function.endswith(f"::{k.name}") and k.function.count("::") > 1
        else k
        for k in kernels
    ]


def by_name(declarations: Iterable[Any]) -> dict[str, list[Any]]:
    """Return the functions and function templates among declarations, by name."""
    functions: dict[str, list[Any]] = {}
    for cursor in declarations:
        if cursor.kind.name in {"FUNCTION_DECL", "FUNCTION_TEMPLATE"}:
            functions.setdefault(cursor.spelling, []).append(cursor)
    return functions


def type_among(cursor: Any, functions: Mapping[str, list[Any]]) -> str:
    """Return the type of a kernel with an overloaded name; an empty string for any other kernel."""
    overloads, name = functions[cursor.spelling], qualified_name(cursor)
    if len(overloads) == 1 or {c.get_usr() for c in overloads if qualified_name(c) == name} == {cursor.get_usr()}:
        return ""
    types = (_author_type(t.get_canonical()) for t in cursor.type.argument_types())
    return f"void ({', '.join(types)})"
