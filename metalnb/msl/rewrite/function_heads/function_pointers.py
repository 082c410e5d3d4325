"""Make template parameters references to functions: ``template <void (*f)(int)>`` -> ``template <void (&f)(int)>``.

clang does not allow a pointer as the parameter. An alias also becomes a reference, ``using F = void (&)(int);``, since
a template's parameter may be declared with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...text.bracket_tree import Outline, Tree
from ...text.edits import Edit

__all__ = ["function_pointers"]


def function_pointers(text: Outline) -> Iterator[Edit]:
    """Turn the pointers into references."""
    for tree in text.trees:
        for template in tree.templates:
            places = range(template.opening + 1, template.closing)
            yield from (_reference(tree, i) for i in places if _is_pointer(tree, i, has_name=True))
        for start, word in enumerate(tree.texts):
            if word == "using":
                places = range(start, tree.find(start, frozenset({";", "{", "}"})))
                yield from (_reference(tree, i) for i in places if _is_pointer(tree, i, has_name=False))


def _is_pointer(tree: Tree, i: int, *, has_name: bool) -> bool:
    """Return whether the text at a position is ``(*f)(`` or, without a name, ``(*)(``."""
    end = i + 3 if has_name else i + 2
    return tree.texts[i] == "(" and tree.text(i + 1) == "*" and tree.close(i) == end and tree.text(end + 1) == "("


def _reference(tree: Tree, i: int) -> Edit:
    return Edit(tree.tokens[i + 1].start, tree.tokens[i + 1].end, "&")
