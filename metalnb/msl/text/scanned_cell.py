"""A scanned cell: the author's source, the edited source, and the text that must not be compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from metalnb.errors import Diagnostic

from .edits import EditedText

__all__ = ["MAIN", "Cell", "Instantiation", "ScopeInput"]

# The compiler's file name for a cell, whatever its author calls it.
MAIN = "cell"


@dataclass(frozen=True, slots=True)
class Instantiation:
    """``template [[host_name("x")]] [[kernel]] decltype(f<T>) f<T>;``: ``f<T>`` is bound as ``x``.

    If ``f`` refers to several templates, or its arguments are to be deduced, ``type`` is the type that the statement
    repeats, ``void (device float*, uint)``; otherwise it is empty.
    """

    name: str
    function: str
    line: int
    type: str = ""


@dataclass(frozen=True, slots=True)
class ScopeInput:
    """An input that is declared at program scope (MSL 5.9): its name, attribute and type, and the type's position."""

    name: str
    attribute: str
    type: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A scanned text.

    Attributes
    ----------
    name : str
        "cell", or the name of a header cell.
    edited : EditedText
    instantiations : tuple of Instantiation
    expands : bool
        True if a macro produces instantiations, so that only the preprocessor can list them.
    includes : tuple of str
        The header cells it includes.
    optional : frozenset of str
        The function constants that it tests with ``is_function_constant_defined``.
    simd : bool
        True if one of its words may involve SIMD-groups; the parser then decides.
    bare : str
        The author's source without the ``#include`` of MSL's headers, for the preprocessor only.
    refused : mapping of str to Diagnostic
        The error for each placeholder in the edited text, which stands for text that must not be compiled: only the
        preprocessor knows whether it is skipped.
    notes : tuple of Diagnostic
        Warnings about text that was removed.
    derived : mapping of str to str
        The initializers of its constants at file scope, if it has function constants.
    overloaded : frozenset of str
        The names of members that a class has for const objects in both device and constant memory.
    scope_inputs : tuple of ScopeInput
        The inputs that it declares at program scope.
    """

    name: str
    edited: EditedText
    instantiations: tuple[Instantiation, ...]
    expands: bool
    includes: tuple[str, ...]
    optional: frozenset[str]
    simd: bool = False
    bare: str = ""
    refused: Mapping[str, Diagnostic] = field(default_factory=dict)
    notes: tuple[Diagnostic, ...] = ()
    derived: Mapping[str, str] = field(default_factory=dict)
    overloaded: frozenset[str] = frozenset()
    scope_inputs: tuple[ScopeInput, ...] = ()

    def about_all(self, message: str, hint: str = "") -> Diagnostic:
        """Return a diagnostic about the entire text, at its first line that is not empty."""
        lines = (line for line in range(1, self.edited.line_count + 1) if self.edited.line(line).strip())
        first = next(lines, 1)
        return Diagnostic(first, 1, message, self.edited.line(first), self.name, hint)

    def diagnostic(self, line: int, column: int, message: str, hint: str = "", severity: str = "error") -> Diagnostic:
        """Return a diagnostic at a line and column of the edited text (from 1, the column in bytes of UTF-8)."""
        line = max(1, min(line, self.edited.line_count))
        text = self.edited.line(line)
        character = min(self.original_column(line, column), len(text) + 1)
        return Diagnostic(line, character, message, text, self.name, hint, severity)

    def original_column(self, line: int, column: int) -> int:
        """Map a column (from 1, in bytes of UTF-8) of the edited text's line to the author's, in characters."""
        before = self.edited.edited_line(line).encode()[: max(0, column - 1)]
        return self.edited.original_column(line, len(before.decode(errors="ignore")) + 1)
