"""Put string arguments into the constant address space (MSL 4.2): ``f("a")`` -> ``f("a"_metalnb_text)``.

In clang a string has an address space of its own, to which a ``constant char*`` cannot point.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..text.bracket_tree import Outline, Tree
from ..text.edits import Edit

__all__ = ["string_literals"]

# Words that take a string literal at compile time.
_READERS = frozenset({
    "static_assert", "_Static_assert", "_Pragma", "host_name", "deprecated", "__attribute__", "annotate", "asm",
    "__asm__", "defined",
})  # fmt: skip


def string_literals(text: Outline) -> Iterator[Edit]:
    """Mark the strings that are arguments of functions."""
    macros = {tree.text(0) for tree in text.macros}
    for tree in text.trees:
        for i, token in enumerate(tree.tokens):
            if token.kind == "string" and token.text[:1] + token.text[-1:] == '""' and _is_argument(tree, i):
                callers = _callers(tree, i)
                if callers[0] and callers[0] not in macros and _READERS.isdisjoint(callers):
                    yield Edit(token.end, token.end, "_metalnb_text")


def _is_argument(tree: Tree, i: int) -> bool:
    """Return whether a string is the last literal of an argument that consists only of adjacent literals."""
    first = i
    while first >= 0 and tree.tokens[first].kind == "string":
        first -= 1
    return first > 0 and tree.texts[first] in {"(", ","} and tree.text(i + 1) in {")", ","}


def _callers(tree: Tree, i: int) -> list[str]:
    """Return the word before each bracket around a position, innermost first; an empty string if there is no word."""
    words = []
    i = tree.enclosing(i)
    while i >= 0:
        words.append(tree.texts[i - 1] if tree.texts[i] == "(" and i and tree.tokens[i - 1].kind == "word" else "")
        i = tree.enclosing(i)
    return words or [""]
