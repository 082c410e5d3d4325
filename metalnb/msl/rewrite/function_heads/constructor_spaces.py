"""Constructors qualified by an address space (MSL 4): ``number(float x) device`` beside ``number(float x) thread``.

In clang a constructor serves every address space, and the qualifier is an error. So one of several constructors with
the same parameters is kept, without its qualifier; the other constructors get an additional first parameter of a type
that no call can pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...text.bracket_tree import FunctionHead, Outline, Tree
from ...text.edits import Edit

__all__ = ["constructor_spaces", "qualified_constructors"]

_ELSEWHERE = ("device", "constant", "threadgroup")
_SPACES = frozenset({*_ELSEWHERE, "thread"})
_CLASS = frozenset({"class", "struct"})


class _Constructor(NamedTuple):
    function: FunctionHead
    key: tuple[str, ...]  # the name and the parameters
    spaces: list[int]


def qualified_constructors(tree: Tree) -> list[_Constructor]:
    """Find the constructors that are qualified by an address space."""
    return [constructor for constructor in _constructors(tree) if constructor.spaces]


def _constructors(tree: Tree) -> list[_Constructor]:
    classes = {after for word, after in zip(tree.texts, tree.texts[1:], strict=False) if word in _CLASS}
    return [
        _Constructor(
            f, tuple(tree.texts[f.name : f.closing]), [i for i in f.qualifiers if tree.texts[i] in _SPACES]
        )
        for f in tree.functions
        if tree.texts[f.name] in classes and f.name == f.opening - 1 and tree.texts[f.end] != "->"
    ]  # fmt: skip


def constructor_spaces(text: Outline) -> Iterator[Edit]:
    """Keep one constructor for all address spaces."""
    for tree in text.trees:
        constructors = _constructors(tree)
        keys = {c.key for c in constructors if not c.spaces or tree.texts[c.spaces[0]] == "thread"}
        for function, key, spaces in constructors:
            if not spaces:
                continue
            word = tree.tokens[spaces[0]]
            yield Edit(word.start, word.end, "")
            if word.text != "thread" and key in keys:
                yield from _hide_constructor(tree, function, _ELSEWHERE.index(word.text))
            keys.add(key)


def _hide_constructor(tree: Tree, function: FunctionHead, number: int) -> Iterator[Edit]:
    """Add a first parameter to a constructor, of a type that no call can pass."""
    position = tree.tokens[function.opening].end
    comma = "" if function.closing == function.opening + 1 else ", "
    yield Edit(position, position, f"$nothing<{number}>{comma}")
    if tree.texts[function.end] == "=" and tree.text(function.end + 1) == "default":
        default_token = tree.tokens[function.end + 1]
        yield Edit(default_token.start, default_token.end, "delete")
