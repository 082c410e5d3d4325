"""Explain calls that match two overloads equally: name both, and the cast that selects one."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from typing import Any

from metalnb.dtypes import spell

__all__ = ["choice"]

_SPACE = re.compile(r"\b__\w+ ?")
_NUMBERS = frozenset({"bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float"})
_PROMOTED = frozenset({"bool", "char", "uchar", "short", "ushort"})


def choice(unit: Any, location: Any) -> str:
    """Name the first two of the best overloads of a call, and the cast that selects one of them.

    Parameters
    ----------
    unit : clang.cindex.TranslationUnit
    location : clang.cindex.SourceLocation
        The position of the ambiguous call: at its function's name.

    Returns
    -------
    str
        An empty string if the arguments or the overloads are not all scalars.
    """
    call = _call(unit.cursor, location)
    if call is None:
        return ""
    callee, *arguments = call.get_children()
    argument_types = tuple(_scalar(argument.type) for argument in arguments)
    if not argument_types or not all(argument_types):
        return ""
    ranks = {takes: tuple(map(_rank, argument_types, takes)) for takes in _overloads(callee, len(argument_types))}
    best = [takes for takes, rank in ranks.items() if not any(_beats(r, rank) for r in ranks.values())]
    if len(best) < 2:
        return ""
    # A cast to an integer may lose a fraction, so prefer floats; the first argument shows the intent best.
    best.sort(key=lambda takes: (takes[0] not in {"half", "float"}, ranks[takes]))
    name = callee.spelling or next(callee.get_children()).spelling
    first, second = (f"{name}({', '.join(takes)})" for takes in best[:2])
    pairs = enumerate(zip(best[0], argument_types, strict=True), 1)
    casts = [f"{parameter}(…) for argument {n}" for n, (parameter, argument) in pairs if parameter != argument]
    return f"{first} and {second} fit equally: write {' and '.join(casts)}"


def _call(cursor: Any, location: Any) -> Any:
    """Find the call whose function is named at a location."""
    for child in cursor.get_children():
        extent = child.extent
        file = extent.start.file
        if file is None or file.name != location.file.name:
            continue
        if not extent.start.offset <= location.offset <= extent.end.offset:
            continue
        inner = _call(child, location)
        if inner is not None:
            return inner
        callee = next(child.get_children(), None)
        is_name = callee is not None and callee.kind.name == "DECL_REF_EXPR" and extent.start.offset == location.offset
        if is_name and _overloaded_reference(callee) is not None:
            return child
    return None


def _overloaded_reference(callee: Any) -> Any:
    """Return a callee's reference to overloaded functions."""
    return next((c for c in callee.walk_preorder() if c.kind.name == "OVERLOADED_DECL_REF"), None)


def _overloads(callee: Any, count: int) -> Iterator[tuple[str, ...]]:
    """Yield the parameters' types of the overloads that take `count` scalars."""
    from clang import cindex

    library, reference = cindex.conf.lib, _overloaded_reference(callee)
    for n in range(library.clang_getNumOverloadedDecls(reference)):
        kinds = library.clang_getOverloadedDecl(reference, ctypes.c_uint(n)).type
        takes = tuple(map(_scalar, kinds.argument_types())) if kinds.kind.name == "FUNCTIONPROTO" else ()
        if len(takes) == count and all(takes):
            yield takes


def _scalar(kind: Any) -> str:
    """Return a built-in number's name in Metal, or an empty string."""
    name = spell(_SPACE.sub("", kind.get_canonical().spelling))
    return name if name in _NUMBERS else ""


def _rank(argument_type: str, parameter_type: str) -> int:
    """Rank a conversion as C++ does: none, a promotion, any other."""
    return 0 if argument_type == parameter_type else 1 if argument_type in _PROMOTED and parameter_type == "int" else 2


def _beats(first_ranks: tuple[int, ...], second_ranks: tuple[int, ...]) -> bool:
    return first_ranks != second_ranks and all(a <= b for a, b in zip(first_ranks, second_ranks, strict=True))
