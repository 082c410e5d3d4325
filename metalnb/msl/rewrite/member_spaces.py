"""Address spaces that qualify a member function (MSL 4): ``T get() const device`` -> ``T get() const __global``."""

from __future__ import annotations

from collections.abc import Iterator

from ..text.bracket_tree import FunctionHead, Outline, Tree
from ..text.edits import Edit
from .constructor_spaces import qualified_constructors

__all__ = ["member_spaces"]

_SPACES = {"device": "__global", "constant": "__constant", "threadgroup": "__local", "thread": ""}


def member_spaces(text: Outline) -> Iterator[Edit]:
    """Write the space as OpenCL does."""
    for tree in text.trees:
        constructors = {place for made in qualified_constructors(tree) for place in made.spaces}
        for function in tree.functions:
            if tree.texts[function.end] == ":":
                continue
            for place in _spaces(tree, function):
                space = _SPACES[tree.texts[place]]
                # A constant object finds the member for device objects, or this one where there is none for those.
                if tree.texts[place] == "constant" and "device" not in _overloads(tree, function):
                    space = _SPACES["device"]
                if place not in constructors:
                    yield Edit(tree.tokens[place].start, tree.tokens[place].end, space)


def _spaces(tree: Tree, function: FunctionHead) -> list[int]:
    return [i for i in function.qualifiers if tree.texts[i] in _SPACES]


def _overloads(tree: Tree, function: FunctionHead) -> set[str]:
    """Return the address spaces for which the class has this member function."""
    brace = tree.around(function.opening, "{")
    head = tree.texts[function.name : function.closing]
    return {
        tree.texts[i]
        for other in tree.functions
        if tree.texts[other.name : other.closing] == head and tree.around(other.opening, "{") == brace
        for i in _spaces(tree, other)
    }
