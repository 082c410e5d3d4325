"""Refuse ``double`` and ``long double``, which the compiler has but Metal does not (MSL 2.1)."""

from __future__ import annotations

from collections.abc import Iterator

from ..text.bracket_tree import Outline
from ..text.edits import Edit, Refusal

__all__ = ["double_type"]


def double_type(text: Outline) -> Iterator[Edit | Refusal]:
    """Refuse the word ``double``."""
    for tree in text.trees:
        for i in range(tree.first, len(tree.texts)):
            if tree.texts[i] == "double":
                token = tree.tokens[i]
                message = "'double' is not supported in Metal"
                yield Refusal(token.start, token.end, token.start, message, "write float (MSL 2.1)")
                if tree.text(i - 1) == "long":
                    yield Edit(tree.tokens[i - 1].start, tree.tokens[i - 1].end, "")
