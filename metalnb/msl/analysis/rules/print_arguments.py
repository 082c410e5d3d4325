"""Check printed values against their format: one value per conversion, each of a matching type (MSL 6.19)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from metalnb.dtypes import spell
from metalnb.errors import Diagnostic
from metalnb.plurals import quantity

from ...language.print_formats import Conversion, conversions, wants
from ...libclang.parse import Parsed
from .syntax_walk import CellSyntax

__all__ = ["check"]

_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_FLOATS = frozenset({"float", "half", "bfloat", "double"})
_INTEGERS = re.compile(r"u?(?:int|short|char|long)|bool|unsigned.*|signed char|size_t")


def check(parsed: Parsed, syntax: CellSyntax) -> Iterator[Diagnostic]:
    """Check the calls that print."""
    for function in syntax.functions:
        for call in function.prints:
            yield from _call(parsed, call)


def _call(parsed: Parsed, call: Any) -> Iterator[Diagnostic]:
    arguments = list(call.get_arguments())
    cell = parsed.owner(call.location)
    if not arguments or cell is None or arguments[0].extent.start.offset == call.extent.start.offset:
        return  # in a macro's expansion, everything is located at the macro's name
    data = cell.edited.text.encode()
    format_text = data[arguments[0].extent.start.offset : arguments[0].extent.end.offset].decode(errors="replace")
    strings = _STRING.findall(format_text)
    if not strings:
        if "char" in arguments[0].type.spelling:
            yield parsed.diagnostic(arguments[0].location, "the format must be a string literal",
                                    'print("%d", x)')  # fmt: skip
        return
    format_conversions, values = conversions("".join(strings)), arguments[1:]
    for conversion in format_conversions:
        if not conversion.letter:
            message = f"'{conversion.text}' in the format is not a conversion"
            yield parsed.diagnostic(
                arguments[0].location, message, "%d, %u, %x, %f, %g, %e, %c, %p, %v4f; %% prints a % (MSL 6.19)"
            )
            return
    if len(format_conversions) != len(values):
        yield parsed.diagnostic(
            arguments[0].location,
            f"the format has {_count(len(format_conversions), 'conversion')}, and {_count(len(values), 'value')} "
            f"{'follows' if len(values) == 1 else 'follow'}",
            "give one value for each %; a literal % is %%",
        )
        return
    for conversion, value in zip(format_conversions, values, strict=True):
        kind = spell(value.type.get_canonical().spelling)
        if not _fits(conversion, kind):
            yield parsed.diagnostic(
                value.location,
                f"'{conversion.text}' takes {wants(conversion)}; this is {kind}",
                _cure(conversion, kind),
            )


def _count(n: int, noun: str) -> str:
    return quantity(n, noun) if n else f"no {noun}s"


def _scalar_and_width(kind: str) -> tuple[str, int]:
    """Return a type's scalar and its number of components; an empty name for a dependent type."""
    unqualified = re.sub(r"\b(?:const|volatile|__\w+)\b ?", "", kind).strip().removesuffix("&").strip()
    vector = re.fullmatch(r"(?:metal::)?(?:packed_)?(?:vec<)?([a-z_ ]+?),? ?([234])>?", unqualified)
    return (vector[1], int(vector[2])) if vector else (unqualified, 1)


def _fits(conversion: Conversion, kind: str) -> bool:
    scalar, lanes = _scalar_and_width(kind)
    if "*" in kind or "[" in kind:
        return conversion.letter in {"p", "s"}
    is_known = scalar in _FLOATS or _INTEGERS.fullmatch(scalar)
    if not is_known:
        return "type-parameter" in kind or "dependent" in kind or scalar in {"", "auto"} or _template(kind)
    if lanes != conversion.lanes:
        return False
    return conversion.letter in ("fFeEgGaA" if scalar in _FLOATS else "diuoxXc")


def _template(kind: str) -> bool:
    """Return whether a type is dependent: ``T``, ``typename X::type``."""
    return bool(re.fullmatch(r"[A-Z]\w{0,2}", kind)) or "typename" in kind or "<" in kind


def _cure(conversion: Conversion, kind: str) -> str:
    scalar, lanes = _scalar_and_width(kind)
    if lanes != conversion.lanes:
        letter = "f" if scalar in _FLOATS else "d"
        return f"write %v{lanes}{letter}, or one component" if lanes > 1 else f"write %{letter}"
    if scalar in _FLOATS:
        return "write %f, or convert: int(x)"
    return "write %u, or convert: float(x)" if scalar.startswith("u") else "write %d, or convert: float(x)"
