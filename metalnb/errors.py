"""The exceptions of metalnb: one base class, and one class for each stage of a kernel's life.

Every message names the kernel and the argument, says what is required, what was passed (got …), and what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

__all__ = [
    "ArgumentError", "CompileError", "Diagnostic", "EngineUnavailable", "KernelFault", "LaunchError",
    "MetalnbError", "MetalnbWarning",
]  # fmt: skip


Paint = Callable[[str, str], str]


def _plain(_part: str, text: str) -> str:
    return text


class MetalnbError(Exception):
    """Base class of every error that metalnb raises on purpose."""

    def report(self, paint: Paint = _plain) -> str:
        """Return the message; ``paint(part, text)`` may color its parts (see `Diagnostic.report`)."""
        del paint
        return str(self)

    def _render_traceback_(self) -> list[str]:
        """Return IPython's display: the author's own frames and the message (IPython's protocol)."""
        from .tracebacks import render

        return render(self)


class MetalnbWarning(UserWarning):
    """A kernel compiles and runs, but probably does not do what its author intended."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding of the compiler, in the author's own text.

    Attributes
    ----------
    line, column : int
        Position in the cell, both from 1; columns count characters.
    message : str
        What is wrong, in Metal's words.
    text : str
        The source line, without its line end.
    file : str
        The name of the cell or header cell.
    hint : str
        How to fix it, or an empty string.
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
        return self.report()

    def report(self, paint: Paint = _plain) -> str:
        """Return the finding as compilers format it: position and message, the line, a caret, the hint.

        A hint that the message already contains, as in "did you mean 'length'?", is not repeated.

        Parameters
        ----------
        paint : callable, optional
            ``paint(part, text)`` returns the text of a part in its color; the parts are "place", "error", "warning",
            "note", "message", "margin", "caret" and "hint".
        """
        hint = "" if self.hint and self.hint in self.message else self.hint
        location = paint("place", f"{self.file}:{self.line}:{self.column}:")
        head = f"{location} {paint(self.severity, self.severity + ':')} {paint('message', self.message)}"
        if not self.text:
            return head + (f"\n  {paint('hint', 'hint: ' + hint)}" if hint else "")
        number = str(self.line)
        blank = " " * len(number)
        # Tabs before the caret stay tabs, so that any viewer indents both lines alike.
        indent = "".join("\t" if c == "\t" else " " for c in self.text[: self.column - 1])
        parts = [head, f"  {paint('margin', number + ' |')} {self.text}"]
        parts.append(f"  {paint('margin', blank + ' |')} {indent}{paint('caret', '^')}")
        if hint:
            parts.append(f"  {paint('margin', blank + ' =')} {paint('hint', 'hint: ' + hint)}")
        return "\n".join(parts)


class CompileError(MetalnbError, ValueError):
    """The cell is not a valid Metal program.

    Parameters
    ----------
    diagnostics : sequence of Diagnostic
        The diagnostics, at least one; the properties describe the first.

    Attributes
    ----------
    line, column, message, hint
        Those of the first diagnostic: its position in the cell (from 1), its text, and how to fix it.
    """

    shown = 8

    def __init__(self, diagnostics: tuple[Diagnostic, ...] | list[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        first = self.diagnostics[0]
        self.line, self.column = first.line, first.column
        self.message, self.hint = first.message, first.hint
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return self.report()

    def report(self, paint: Paint = _plain) -> str:
        """Return the first diagnostics, one below another, and the number of further ones."""
        reports = [d.report(paint) for d in self.diagnostics[: self.shown]]
        rest = len(self.diagnostics) - len(reports)
        if rest > 0:
            reports.append(f"… and {rest} more")
        return "\n".join(reports)


class ArgumentError(MetalnbError, TypeError, ValueError):
    """An argument of a kernel call does not fit the kernel's parameter."""


class LaunchError(MetalnbError, ValueError):
    """The grid, the threadgroup or its memory exceeds what Metal or the kernel allows."""


class EngineUnavailable(MetalnbError, RuntimeError):
    """The requested engine cannot run on this machine; the message says how to fix that."""


class KernelFault(MetalnbError, RuntimeError):
    """A kernel failed while it ran.

    Attributes
    ----------
    kind : str
        The kind of fault: it "reads", "writes" or "updates" memory out of bounds, or was "stopped"; empty if the device
        does not report it.
    line, column : int or None
        The position in the cell, from 1.
    thread : tuple of 3 int or None
        The position in the grid of the first thread at fault.
    name : str
        The name of the buffer or the array.
    index : int or None
        The index of the element.
    """

    def __init__(
        self, message: str, *, kind: str = "", line: int | None = None, column: int | None = None,
        thread: tuple[int, int, int] | None = None, name: str = "", index: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.kind, self.line, self.column = kind, line, column
        self.thread, self.name, self.index = thread, name, index

    def left_out(self, names: Collection[str]) -> KernelFault:
        """Return the fault; if the caller left the buffer out, the message says how to set its size."""
        if self.name not in names:
            return self
        cure = f"pass shapes={{{self.name!r}: …}} to say how large it is, or pass {self.name} itself"
        message, newline, line = str(self).partition("\n")
        return KernelFault(
            f"{message} It was left out and made for the grid: {cure}.{newline}{line}", kind=self.kind, line=self.line,
            column=self.column, thread=self.thread, name=self.name, index=self.index,
        )  # fmt: skip
