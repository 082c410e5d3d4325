"""Find positions in a cell's source from libclang's cursors, and insert text there."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metalnb.msl.analysis.scope_inputs import HANDED
from metalnb.msl.libclang.parse import Parsed
from metalnb.msl.text.bracket_tree import Tree, outline
from metalnb.msl.text.edits import Edit

__all__ = ["HEADED", "Site", "SourceMarks"]

# Statements with a head in parentheses, and their keywords.
HEADED = {
    "IF_STMT": "if",
    "FOR_STMT": "for",
    "WHILE_STMT": "while",
    "SWITCH_STMT": "switch",
    "CXX_FOR_RANGE_STMT": "for",
}
_SEMICOLON = re.compile(r"(?:\s|/\*.*?\*/|//[^\n]*\n)*;", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Site:
    """A point at which the kernel records its position.

    Attributes
    ----------
    line, column : int
        The position in the author's source, from 1.
    width : int
        The length of the statement in that line, in characters; if it has a body, the length of its head.
    order : int
        Its position among all sites of the source.
    kind : {"statement", "loop", "again", "end"}
        ``loop``: a loop's condition, which begins an iteration; ``again``: a ``do`` loop's condition, which ends one;
        ``end``: a function's closing brace.
    names : tuple of str
        The variables in scope, the outermost first.
    loops : tuple of int
        The loops around it, by their `order`, the outermost first.
    function : str
    """

    line: int
    column: int
    width: int
    order: int
    kind: str
    names: tuple[str, ...]
    loops: tuple[int, ...]
    function: str


class SourceMarks:
    """A cell's source with the insertions.

    Attributes
    ----------
    sites : list of Site
        The sites made so far.
    name : str
        The current function.
    loops : tuple of int
        The loops around the current position.
    """

    def __init__(self, parsed: Parsed) -> None:
        self.parsed = parsed
        self.cell = parsed.cell
        self.text = parsed.cell.edited.text
        self.sites: list[Site] = []
        self.name = ""
        self.loops: tuple[int, ...] = ()
        self.tree: Tree = outline(self.text).program
        self.starts = [t.start for t in self.tree.tokens]
        self._data = self.text.encode()
        self._is_ascii = len(self._data) == len(self.text)
        self._before: dict[int, list[str]] = {}
        self._after: dict[int, list[str]] = {}

    def edits(self) -> list[Edit]:
        """Return the insertions; at the same position, closing insertions come before opening ones."""
        places = sorted({*self._before, *self._after})
        return [Edit(p, p, "".join([*self._after.get(p, []), *self._before.get(p, [])])) for p in places]

    def offset(self, byte_offset: int) -> int:
        """Convert an offset in bytes to an offset in characters."""
        return byte_offset if self._is_ascii else len(self._data[:byte_offset].decode(errors="ignore"))

    def token(self, offset: int) -> int:
        """Return the token that begins at an offset; -1 if none does."""
        i = bisect_right(self.starts, offset) - 1
        return i if i >= 0 and self.starts[i] == offset else -1

    def start(self, cursor: Any) -> int:
        """Return the start of a statement."""
        return self.offset(cursor.extent.start.offset)

    def end(self, cursor: Any) -> int:
        """Return the end of a statement, including its semicolon."""
        kind = cursor.kind.name
        position = self.offset(cursor.extent.end.offset)
        if kind == "COMPOUND_STMT":
            return position
        if kind in HEADED or kind in {"CASE_STMT", "DEFAULT_STMT", "LABEL_STMT"}:
            last = list(cursor.get_children())
            return self.end(last[-1]) if last else position
        semicolon = _SEMICOLON.match(self.text, position)
        return semicolon.end() if semicolon else position

    def head(self, cursor: Any) -> int:
        """Return the end of a statement, or of its head if it has a body."""
        if cursor.kind.name not in HEADED:
            return self.end(cursor)
        i = self.token(self.start(cursor)) + 1
        close = self.tree.close(i + (self.tree.text(i) == "constexpr"))
        return self.tree.tokens[close].end if close >= 0 else self.end(cursor)

    def site(self, offset: int, kind: str, scope: Mapping[str, None], end: int) -> str:
        """Make a site; return the call that names it."""
        line = self.text.count("\n", 0, offset) + 1
        column = offset - (self.text.rfind("\n", 0, offset) + 1) + 1
        names = tuple(scope)
        author_names = tuple(name.removeprefix(HANDED) for name in names)  # HANDED marks inputs
        stop = self.text.find("\n", offset)
        stop = min(end, stop if stop >= 0 else len(self.text))
        text = self.cell.edited
        first, last = text.original_column(line, column), text.original_column(line, column + stop - offset)
        self.sites.append(Site(
            line=line, column=first, width=max(1, last - first), order=offset, kind=kind, names=author_names,
            loops=self.loops, function=self.name,
        ))  # fmt: skip
        return f"$step({', '.join([str(len(self.sites) - 1), *names])})"

    def insert_before(self, offset: int, text: str) -> None:
        """Insert an opening text, or one without a counterpart, at a position."""
        self._before.setdefault(offset, []).append(text)

    def insert_after(self, offset: int, text: str) -> None:
        """Insert a closing text at a position."""
        self._after.setdefault(offset, []).insert(0, text)
