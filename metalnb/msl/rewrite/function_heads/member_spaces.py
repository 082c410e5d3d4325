"""Address spaces that qualify a member function (MSL 4): ``T get() const device`` -> ``T get() const __global``.

clang accepts only OpenCL's keyword there, which is not quite Metal's space: ``__global`` covers both device and
constant objects. So references and pointers that the function returns, and its ``this``, are cast back to the space
that the author wrote: ``return v;`` -> ``return $reference_device(v);``. An object in the constant space is const.

If a class has a member for const objects of either space, `space_overloads` distinguishes them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...text.bracket_tree import FunctionHead, Outline, Tree
from ...text.edits import Edit
from .constructor_spaces import qualified_constructors
from .space_overloads import OF_CONSTANT, rename_members, space_overloads

__all__ = ["member_spaces"]

_SPACES = {"device": "__global", "constant": "__global", "threadgroup": "__local", "thread": ""}
_RETURNED = {"&": "reference", "*": "pointer"}


def member_spaces(text: Outline) -> Iterator[Edit]:
    """Replace the space by OpenCL's keyword for it."""
    for tree in text.trees:
        yield from rename_members(tree, space_overloads(tree))
        constructors = {place for constructor in qualified_constructors(tree) for place in constructor.spaces}
        for function in tree.functions:
            if tree.texts[function.end] == ":":
                continue
            for place in _spaces(tree, function):
                if place in constructors:
                    continue
                yield _qualifier(tree, function, place)
                if tree.texts[place] in {"device", "constant"} and tree.texts[function.end] == "{":
                    yield from _body(tree, function, tree.texts[place])


def _qualifier(tree: Tree, function: FunctionHead, place: int) -> Edit:
    word = tree.texts[place]
    text = _SPACES[word]
    if word == "constant":
        const = any(tree.texts[i] == "const" for i in function.qualifiers)
        text = f"{'' if const else 'const '}{text} {OF_CONSTANT}"
    return Edit(tree.tokens[place].start, tree.tokens[place].end, text)


def _body(tree: Tree, function: FunctionHead, space: str) -> Iterator[Edit]:
    """Cast a member function's result back to its object's space."""
    stop = tree.close(function.end)
    converts = tree.texts[function.name] == "operator" and tree.tokens[function.name + 1].kind == "word"
    head = tree.texts[function.name + 1 : function.opening] if converts else _result_type(tree, function)
    kind = _RETURNED.get(head[-1], "") if head and space in head else ""
    for i in range(function.end + 1, stop):
        token = tree.tokens[i]
        if token.text == "this":
            yield Edit(token.start, token.end, f"$pointer_{space}(this)")
        elif kind and token.text == "return" and tree.text(i + 1) not in {";", "{"}:
            end = tree.tokens[tree.find(i, frozenset({";", "}"}), stop)]
            yield Edit(token.end, token.end, f" ${kind}_{space}(")
            yield Edit(end.start, end.start, ")")


def _result_type(tree: Tree, function: FunctionHead) -> list[str]:
    return tree.texts[tree.statement(function.name) : function.name]


def _spaces(tree: Tree, function: FunctionHead) -> list[int]:
    return [i for i in function.qualifiers if tree.texts[i] in _SPACES]
