"""Compound assignment in a template: ``v.x += a`` becomes ``v.x = v.x + (a)``, ``p += a`` becomes ``$advance(p, a)``.

If the author defines an ``operator+=``, clang treats every ``+=`` in a template as a call of it and does not see that
``v.x`` is a property. It treats ``=`` correctly, since ``operator=`` cannot be defined outside a class. clang also does
not advance a pointer by an object that converts to an integer, such as an integral constant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from ..text.bracket_tree import Outline, Tree
from ..text.edits import Edit

__all__ = ["compound_assignments"]

_COMPONENTS = re.compile(r"[xyzw]{1,4}|[rgba]{1,4}")
_OPERATORS = frozenset("+-*/%&|^")
_BEFORE = frozenset({";", "{", "}", ")", "(", ",", "else", "do"})
_EFFECTS = frozenset({"=", "(", "{", ";"})
_ENDS = frozenset({";", ",", ")", "]", "}"})


def compound_assignments(text: Outline) -> Iterator[Edit]:
    """Edit the compound assignments in the bodies of templates."""
    tree = text.program
    last_done = -1
    for start, stop in _bodies(tree):
        for i in range(max(start, last_done + 1), stop):
            if tree.texts[i - 1] == "." and _COMPONENTS.fullmatch(tree.texts[i]):
                yield from _assignment(tree, i)
            elif tree.tokens[i].kind == "word":
                yield from _advance(tree, i)
        last_done = max(last_done, stop)


def _bodies(tree: Tree) -> Iterator[tuple[int, int]]:
    """Yield where the bodies of templates start and end."""
    for template in tree.templates:
        opening = tree.find(template.closing + 1, frozenset({"{", ";"}))
        if tree.text(opening) == "{":
            yield opening, tree.close(opening)


def _assignment(tree: Tree, component: int) -> list[Edit]:
    """Edit the assignment whose target's last component is at `component`, if there is one."""
    if (
        tree.text(component + 1) not in _OPERATORS
        or tree.text(component + 2) != "="
        or tree.text(component + 3) in {"=", ""}
    ):
        return []
    operator, equals = tree.tokens[component + 1 : component + 3]
    first = _object(tree, component)
    stop = _end(tree, component + 3)
    if equals.start != operator.end or first < 1 or tree.texts[first - 1] not in _BEFORE or stop < 0:
        return []
    target = " ".join(tree.texts[first : component + 1])
    end = tree.tokens[stop]
    return [
        Edit(operator.start, equals.end, f"= {target} {operator.text} ("),
        Edit(end.start, end.end, f"){end.text}"),
    ]


def _advance(tree: Tree, start: int) -> list[Edit]:
    """Edit ``a += b;`` on plain names at `start`."""
    if tree.texts[start + 1 : start + 3] != ["+", "="]:
        return []
    if tree.text(start - 1) not in {";", "{", "}"} or tree.text(start + 4) != ";":
        return []
    name, plus, equals, step, end = tree.tokens[start : start + 5]
    if step.kind != "word" or plus.end != equals.start:
        return []
    return [
        Edit(name.start, name.start, "$advance("),
        Edit(plus.start, equals.end, ","),
        Edit(end.start, end.end, ");"),
    ]


def _object(tree: Tree, component: int) -> int:
    """Find the first token of ``a[i].b.x``; -1 where evaluating it twice might matter."""
    i = component
    while (i >= 2 and tree.texts[i - 1] in {".", "::"}) or (i >= 3 and tree.texts[i - 1] == "->"):
        i -= 2
        while i > 0 and tree.texts[i] == "]":
            opening = tree.open(i)
            inner = tree.texts[opening + 1 : i]
            is_doubled = any(a == b and a in {"+", "-"} for a, b in pairwise(inner))
            if opening < 0 or is_doubled or not _EFFECTS.isdisjoint(inner):
                return -1
            i = opening - 1
        if tree.tokens[i].kind != "word":
            return -1
    return i


def _end(tree: Tree, i: int) -> int:
    """Find the token that ends an expression; -1 for a list in braces."""
    if tree.texts[i] == "{":
        return -1
    while i < len(tree.texts):
        text = tree.texts[i]
        if text in _ENDS:
            return i
        list_end = tree.close(i) if text == "<" and tree.tokens[i - 1].kind == "word" else -1
        if text in {"(", "[", "{"} and tree.close(i) < 0:
            return -1
        i = list_end + 1 if tree.text(list_end + 1) in {"(", "{", "::"} and list_end > 0 else tree.skip(i)
    return -1
