"""MSL as HTML, its tokens marked by class: ``<span class="k">kernel</span>``.

Where there is no Pygments (it comes with IPython) the text is only escaped.
"""

from __future__ import annotations

from html import escape
from typing import Any

__all__ = ["highlight"]


def highlight(text: str) -> str:
    """Mark the tokens of MSL.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
        HTML to stand in a ``<pre>``. Classes: k keyword, t type, s string or character, m number, c comment,
        p preprocessor, f function.
    """
    try:
        from .metal_lexer import MetalLexer
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
