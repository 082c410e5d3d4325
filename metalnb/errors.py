"""What metalnb raises: one base class, one kind of error for each stage of a kernel's life.

Every message says which kernel and argument, what is required, (got …), and what to do.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ArgumentError",
    "CompileError",
    "Diagnostic",
    "EngineUnavailable",
    "KernelFault",
    "LaunchError",
    "MetalnbError",
]


class MetalnbError(Exception):
    """Base class of every error that metalnb raises on purpose."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding of the compiler, in the author's own text.

    Attributes
    ----------
    line, column : int
        Place in the cell, both from 1; a column counts characters.
    message : str
        What is wrong, in Metal's words.
    text : str
        The source line, without its line end.
    file : str
        The name of the cell or header cell.
    hint : str
        The cure, or an empty string.
    severity : {"error", "warning", "note"}
    """

    line: int
    column: int
    message: str
    text: str = ""
    file: str = "cell"
    hint: str = ""
    severity: str = "error"

    def __str__(self) -> str:
        head = f"{self.file}:{self.line}:{self.column}: {self.severity}: {self.message}"
        if not self.text:
            return head + (f"\n  hint: {self.hint}" if self.hint else "")
        number = str(self.line)
        # Tabs stay tabs before the caret, so that both lines are indented alike by any viewer.
        indent = "".join("\t" if c == "\t" else " " for c in self.text[: self.column - 1])
        parts = [head, f"  {number} | {self.text}", f"  {' ' * len(number)} | {indent}^"]
        if self.hint:
            parts.append(f"  {' ' * len(number)} = hint: {self.hint}")
        return "\n".join(parts)


class CompileError(MetalnbError, ValueError):
    """The cell is not a valid Metal program.

    Parameters
    ----------
    diagnostics : sequence of Diagnostic
        At least one; the first is the error that the properties speak of.

    Attributes
    ----------
    line, column, message, hint
        Of the first diagnostic: its place in the cell (from 1), its text and its cure.
    """

    shown = 8

    def __init__(self, diagnostics: tuple[Diagnostic, ...] | list[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        first = self.diagnostics[0]
        self.line, self.column = first.line, first.column
        self.message, self.hint = first.message, first.hint
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        shown = [str(d) for d in self.diagnostics[: self.shown]]
        rest = len(self.diagnostics) - len(shown)
        if rest > 0:
            shown.append(f"… and {rest} more")
        return "\n".join(shown)


class ArgumentError(MetalnbError, TypeError, ValueError):
    """An argument of a kernel call does not fit the kernel's parameter."""


class LaunchError(MetalnbError, ValueError):
    """The grid, the threadgroup or its memory is beyond what Metal or the kernel allows."""


class EngineUnavailable(MetalnbError, RuntimeError):
    """The engine asked for cannot run on this machine; the message says what would mend it."""


class KernelFault(MetalnbError, RuntimeError):
    """A kernel failed while it ran."""
