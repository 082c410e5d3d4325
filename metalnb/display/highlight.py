"""MSL as HTML, its tokens marked by class: ``<span class="k">kernel</span>``.

Without Pygments (which comes with IPython) the text is only escaped.
"""

from __future__ import annotations

from html import escape
from typing import Any

from .frame import framed

__all__ = ["Source", "highlight"]


def highlight(text: str) -> str:
    """Mark the tokens of MSL.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
        HTML for the inside of a ``<pre>``. Classes: k keyword, t type, s string or character, m number, c comment,
        p preprocessor, f function.
    """
    try:
        from metalnb.metal_lexer import MetalLexer
    except ImportError:
        return escape(text)
    lexer = MetalLexer(stripnl=False, ensurenl=False)
    return "".join(_span(_class(kind), word) for kind, word in lexer.get_tokens(text))


def _span(name: str, text: str) -> str:
    return f'<span class="{name}">{escape(text)}</span>' if name else escape(text)


def _class(kind: Any) -> str:
    from pygments.token import Comment, Keyword, Literal, Name

    classes = {
        Comment.Preproc: "p", Comment.PreprocFile: "p", Comment: "c", Keyword.Type: "t", Keyword: "k",
        Literal.String: "s", Literal.Number: "m", Name.Function: "f",
    }  # fmt: skip
    return next((name for token, name in classes.items() if kind in token), "")


class Source(str):
    """MSL, or text generated from it, that a notebook shows highlighted."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return framed(f'<pre class="metalnb-code">{highlight(self)}</pre>')
