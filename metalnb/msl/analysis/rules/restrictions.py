"""Reject C++ features that MSL lacks (MSL 1.5.4, 2.1) but the parser accepts; `hints` has those that it rejects."""

from __future__ import annotations

from collections.abc import Iterator

from metalnb.errors import Diagnostic

from ...language.versions import LAMBDAS, version_text
from ...libclang.parse import Parsed
from .syntax_walk import CellSyntax

__all__ = ["check"]

_WIDE = {"LONGLONG": ("long long", "long"), "ULONGLONG": ("unsigned long long", "ulong")}
_STATEMENTS = {
    "GOTO_STMT": ("goto is not supported", "write a loop, or return from a separate function (MSL 1.5.4)"),
    "INDIRECT_GOTO_STMT": ("goto is not supported", "write a switch (MSL 1.5.4)"),
    "ASM_STMT": ("asm is not supported", "MSL has no assembly: use the standard library's functions"),
    "MS_ASM_STMT": ("asm is not supported", "MSL has no assembly: use the standard library's functions"),
}


def check(parsed: Parsed, syntax: CellSyntax) -> Iterator[Diagnostic]:
    """Check for C++ features that MSL leaves out."""
    for cursor in syntax.declarations:
        kind = cursor.type.get_canonical()
        while kind.kind.name == "CONSTANTARRAY":
            kind = kind.element_type
        unsupported = _WIDE.get(kind.kind.name)
        if unsupported is not None:
            yield parsed.diagnostic(
                cursor.location, f"'{cursor.spelling}' has the type {unsupported[0]}, which Metal does not have",
                f"write {unsupported[1]}: it has 64 bits (MSL 2.1)",
            )  # fmt: skip
    for literal in syntax.literals:
        yield parsed.diagnostic(
            literal.location, "a long double literal: Metal has no long double",
            "drop the suffix: a literal without one is float (MSL 2.1)",
        )  # fmt: skip
    for statement in syntax.statements:
        message, hint = _STATEMENTS[statement.kind.name]
        yield parsed.diagnostic(statement.extent.start, message, hint)
    if parsed.version < LAMBDAS:
        for lambda_cursor in syntax.lambdas:
            yield parsed.diagnostic(
                lambda_cursor.location,
                f"a lambda needs MSL 3.2; the cell is read as MSL {version_text(parsed.version)}",
                "write a function, or a struct with an operator(); or, on an engine that has it, ask for the version: "
                "--msl 3.2, msl='3.2' (MSL 1.5.4)",
            )  # fmt: skip
    for function in syntax.functions:
        if function.cursor.is_virtual_method():
            yield parsed.diagnostic(
                function.cursor.location, f"'{function.cursor.spelling}' is virtual, which Metal does not support",
                "make the varying class a template parameter (MSL 1.5.4)",
            )  # fmt: skip
