"""Assemble a cell and its header cells into one text for Metal's compiler, and map its errors back."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass

from metalnb.errors import Diagnostic
from metalnb.msl.libclang.hints import hint_for
from metalnb.msl.text.bracket_tree import outline
from metalnb.msl.text.includes import header_cell
from metalnb.msl.text.scanned_cell import Cell

__all__ = ["OWN_MACRO", "AssembledSource", "Assembly"]

OWN_MACRO = "METALNB"  # also defined by the front end, so that both take the same branches


@dataclass(frozen=True)
class AssembledSource:
    """A text for Metal's compiler.

    Attributes
    ----------
    text : str
    origins : tuple
        For each line, the edited cell that it comes from and the line there; None for metalnb's own lines.
    """

    text: str
    origins: tuple[tuple[Cell, int] | None, ...]

    def diagnostics(self, report: str) -> list[Diagnostic]:
        """Parse the compiler's report, with each error at the author's position."""
        diagnostics = []
        for match in _REPORT.finditer(report):
            diagnostic = self.diagnostic(int(match["line"]), int(match["column"]), match["text"])
            if diagnostic is not None:
                diagnostics.append(diagnostic)
        return diagnostics

    def diagnostic(self, line: int, column: int, message: str) -> Diagnostic | None:
        """Return a diagnostic at the author's position for one in the text; None if the line is not the author's."""
        origin = self.origins[line - 1] if 0 < line <= len(self.origins) else None
        if origin is None:
            return None
        cell, cell_line = origin
        return cell.diagnostic(cell_line, column, message, hint_for(message))


_REPORT = re.compile(r"program_source:(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<text>.*)")


class Assembly:
    """The lines of a text, each with its origin; header cells are inserted where they are included.

    Parameters
    ----------
    headers : mapping of str to Cell
        The header cells, edited.
    """

    def __init__(self, headers: Mapping[str, Cell]) -> None:
        self.headers = headers
        self.lines: list[str] = []
        self.origins: list[tuple[Cell, int] | None] = []
        self._once: set[str] = set()
        self._imported: set[str] = set()

    def add_own_lines(self, text: str) -> None:
        """Add metalnb's own lines."""
        lines = text.splitlines()
        self.lines += lines
        self.origins += [None] * len(lines)

    def add_cell(self, cell: Cell) -> None:
        """Add a cell, and in it the header cells that it includes."""
        text = outline(cell.edited.original)
        folder = posixpath.dirname(cell.name) if cell.name in self.headers else ""
        included = {}
        for d in text.directives:
            include = "".join(t.text for t in d.tokens).rstrip(";")[1:-1]
            name = header_cell(include, frozenset(self.headers), folder)
            if d.name in {"include", "import"} and name in self.headers:
                included[cell.edited.position(d.start)[0]] = name
                if d.name == "import":
                    self._imported.add(name)
        has_once = any(d.name == "pragma" and [t.text for t in d.tokens] == ["once"] for d in text.directives)
        if cell.name in self._once and (has_once or cell.name in self._imported):
            return
        self._once.add(cell.name)
        for number, line in enumerate(cell.edited.text.split("\n"), 1):
            if number in included:
                self.add_cell(self.headers[included[number]])
            elif has_once and line.split() == ["#pragma", "once"]:
                self.add_own_lines("\n")  # the pragma applies to files, and there is only one
            else:
                self.lines.append(line)
                self.origins.append((cell, number))

    def finish(self) -> AssembledSource:
        """Return the text."""
        return AssembledSource("\n".join(self.lines), tuple(self.origins))
