"""Render rows of text as a table: for a terminal, and as HTML with the same content."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeVar

from .frame import framed

__all__ = ["Listing", "Table", "columns", "html_table", "wrapping"]

T = TypeVar("T")

# JupyterLab aligns cells to the right. In a notebook that it does not trust yet, it removes style sheets but keeps this
# attribute.
_LEFT = 'style="text-align:left"'

# Shorter cells do not wrap, so that in a narrow table only the longer ones do. Shorter words do not wrap either; a
# longer word may wrap after an underscore or a dot, before a capital, and at a bracket.
_SHORT_CELL = 20
_WORD = re.compile(r"\S{16,}")
_BREAK = re.compile(r"(?<=[_.])(?=\w)|(?<=[a-z])(?=[A-Z])|(?<=\()(?=\")|(?<=\w)(?=\(\d)")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under a head.

    Attributes
    ----------
    head : tuple of str
    rows : tuple of tuple of str
    caption : str
    empty : str
        The text in place of rows when there are none.
    code : frozenset of int
        The columns that contain code.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    empty: str = "none"
    code: frozenset[int] = frozenset()

    def text(self) -> str:
        """Return the table in columns."""
        lines = [self.caption] if self.caption else []
        return "\n".join([*lines, *columns([self.head, *self.rows])]) if self.rows else "\n".join([*lines, self.empty])

    def html(self) -> str:
        """Return the table as an HTML element."""
        caption = f'<div class="metalnb-head">{escape(self.caption)}</div>' if self.caption else ""
        body = html_table(self.head, self.rows, self.code) if self.rows else f"<div>{escape(self.empty)}</div>"
        return framed(caption + body)


class Listing(dict[str, T]):
    """A dictionary that a notebook shows as a table.

    Parameters
    ----------
    items : mapping
    table : Table
    """

    def __init__(self, items: Mapping[str, T], table: Table) -> None:
        super().__init__(items)
        self.table = table

    def __repr__(self) -> str:
        return self.table.text()

    def _repr_html_(self) -> str:
        return self.table.html()


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], code: frozenset[int]) -> str:
    """Return an HTML table; ``code`` has the indices of the columns of code."""
    def cell(i: int, text: str) -> str:
        content = wrapping(text)
        css_class = ' class="metalnb-long"' if len(text) > _SHORT_CELL or "<wbr/>" in content else ""
        return f"<td{css_class} {_LEFT}>{f'<code>{content}</code>' if i in code and text else content}</td>"

    top = "".join(f"<th {_LEFT}>{escape(h)}</th>" for h in head)
    body = "".join(f"<tr>{''.join(cell(i, text) for i, text in enumerate(row))}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def wrapping(text: str) -> str:
    """Return a text as HTML that may wrap within a long word."""
    marked = _WORD.sub(lambda word: _BREAK.sub("\0", word[0]), text.replace("\0", " "))
    return escape(marked).replace("\0", "<wbr/>")


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align rows of text in columns two spaces apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]  # none for no rows
    return ["  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip() for row in rows]
