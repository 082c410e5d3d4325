"""MSL as HTML, its tokens marked by class: ``<span class="k">kernel</span>``.

Pygments knows C++, not Metal; Metal adds some keywords, and the types of `metalnb.dtypes`. Without Pygments (which
comes with IPython) the text is only escaped.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from metalnb.dtypes import layout_of

from .frame import framed

__all__ = ["Source", "highlight"]

# MSL 4 (address spaces) and 5.1 (functions).
_WORDS = frozenset({"kernel", "device", "constant", "threadgroup", "thread"})
_TYPE = re.compile(r"(?:atomic_\w+|simdgroup_\w+|(?:packed_)?vec|[su]?size_t|ptrdiff_t|u?int\d+_t)$")


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
        from pygments.lexers.c_cpp import CppLexer
    except ImportError:
        return escape(text)
    lexer = CppLexer(stripnl=False, ensurenl=False)
    return "".join(_span(_class(kind, word), word) for kind, word in lexer.get_tokens(text))


def _span(name: str, text: str) -> str:
    return f'<span class="{name}">{escape(text)}</span>' if name else escape(text)


def _class(kind: Any, word: str) -> str:
    from pygments.token import Comment, Keyword, Literal, Name

    if kind in Comment:
        return "p" if kind in Comment.Preproc or kind in Comment.PreprocFile else "c"
    if word in _WORDS:
        return "k"
    if kind in Keyword.Type or ((kind in Name or kind in Keyword) and (layout_of(word) or _TYPE.match(word))):
        return "t"
    classes = {Keyword: "k", Literal.String: "s", Literal.Number: "m", Name.Function: "f"}
    return next((name for token, name in classes.items() if kind in token), "")


class Source(str):
    """MSL, or text generated from it, that a notebook shows highlighted."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return framed(f'<pre class="metalnb-code">{highlight(self)}</pre>')
