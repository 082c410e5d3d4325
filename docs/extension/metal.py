"""Metal in colors: lexers for a ``%%metal`` cell and for the errors that end one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from docutils import nodes
from pygments.lexer import RegexLexer
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Generic, Text
from sphinx.application import Sphinx

from metalnb.metal_lexer import MetalLexer


class MetalCellLexer(MetalLexer):
    """A cell: the magic's line, then Metal."""

    name = "Metal cell"
    aliases: ClassVar[list[str]] = ["metal-cell"]

    def get_tokens_unprocessed(self, text: str, stack: Any = ("root",)) -> Iterator[tuple[int, Any, str]]:
        """Yield the tokens, each with its place."""
        magic = re.match(r"\s*%%metal[^\n]*", text)
        begin = magic.end() if magic else 0
        yield 0, Comment.Preproc, text[:begin]
        for index, kind, word in super().get_tokens_unprocessed(text[begin:], stack):
            yield index + begin, kind, word


class ErrorLexer(RegexLexer):
    """What ends a cell: Python's words, and the compiler's lines with their caret and hint."""

    name = "Metal error"
    aliases: ClassVar[list[str]] = ["metal-error"]
    flags = re.MULTILINE
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"^-{20,}$", Comment),
            (r"^\w*(?:Error|Unavailable|Fault|Exception|Interrupt)\b", Generic.Error),
            (r"\b(?:error|warning):", Generic.Error),
            (r"^ +\^.*$|(?<=\|) +\^.*$", Generic.Error),
            (r"^ *= (?:hint|note):.*$", Generic.Strong),
            (r"^ *\d* +\|", Comment),
            (r"^(?:Cell|File) .*$|^-+> *\d+", Comment),
            (r"[^\n]|\n", Text),
        ],
    }


def color_cells(_app: Sphinx, tree: nodes.document) -> None:
    """Highlight text that begins with the cell magic as Metal."""
    for block in tree.findall(nodes.literal_block):
        if block.get("language") != "text" and block.astext().startswith("%%metal"):
            block["language"] = "metal-cell"


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the lexers, and use them."""
    app.add_lexer("metal", MetalLexer)
    app.add_lexer("metal-cell", MetalCellLexer)
    app.add_lexer("metal-error", ErrorLexer)
    app.add_lexer("mermaid", TextLexer)  # GitHub draws it; the site, which loads nothing from elsewhere, shows the text
    app.connect("doctree-read", color_cells)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
