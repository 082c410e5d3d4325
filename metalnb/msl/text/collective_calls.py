"""Find where a SIMD-group's lanes may converge: in SIMD-group functions, and in functions that call them."""

from __future__ import annotations

from .bracket_tree import Outline

__all__ = ["collective_functions", "is_collective"]

_COLLECTIVE = ("simd", "quad")
_STATEMENTS = frozenset({"if", "for", "while", "switch"})  # these statements look like a function's head


def is_collective(text: str) -> bool:
    """Return whether a word, or any word of a text, may name a SIMD-group function."""
    return any(part in text for part in _COLLECTIVE)


def collective_functions(*texts: Outline) -> set[str]:
    """Return the names of the functions and macros of a cell and its headers in which lanes may converge."""
    bodies = [(tree.texts[0], frozenset(tree.texts[tree.first :])) for text in texts for tree in text.macros]
    for tree in (tree for text in texts for tree in text.trees):
        for head in tree.functions:
            brace = tree.find(head.end, frozenset({"{", ";"}))
            if tree.text(brace) == "{" and tree.texts[head.name] not in _STATEMENTS:
                bodies.append((tree.texts[head.name], frozenset(tree.texts[brace : tree.close(brace)])))
    callers: dict[str, set[str]] = {name: set() for name, _ in bodies}
    for name, words in bodies:
        for callee in words & callers.keys():
            callers[callee].add(name)
    pending = [name for name, words in bodies if any(map(is_collective, words))]
    names = set(pending)
    while pending:
        new_names = callers[pending.pop()] - names
        names |= new_names
        pending += new_names
    return names
