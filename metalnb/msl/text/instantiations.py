"""Explicit instantiations of kernel templates: ``template [[host_name("x")]] [[kernel]] decltype(f<T>) f<T>;``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .bracket_tree import Outline, Tree

__all__ = ["ExplicitInstantiation", "explicit_instantiations", "template_id", "written"]

_LITERAL = frozenset({"[", "]", "(", ")", ",", "host_name", "kernel"})


@dataclass(frozen=True, slots=True)
class ExplicitInstantiation:
    """One such statement, as places in the tree.

    Attributes
    ----------
    start, stop : int
        The word ``template``, and the ``;`` (or the end of a macro) after it.
    lists : tuple of (int, int)
        Its attribute lists.
    host : tuple of int
        The list with the host name, or an empty tuple.
    name : str
        The host name.
    literal : bool
        False when a macro makes the name.
    """

    start: int
    stop: int
    lists: tuple[tuple[int, int], ...]
    host: tuple[int, int] | tuple[()]
    name: str
    literal: bool


def explicit_instantiations(tree: Tree) -> Iterator[ExplicitInstantiation]:
    """Yield the explicit instantiations, those without a host name too."""
    for start, text in enumerate(tree.texts):
        if text != "template" or tree.text(start + 1) in {"<", ""}:
            continue
        stop = next((k for k in range(start, len(tree.texts)) if tree.texts[k] in {";", "{"}), len(tree.texts))
        lists = tuple(tree.attribute_lists(start, stop))
        hosts = [(a, b) for a, b in lists if "host_name" in tree.texts[a:b]]
        if not hosts:
            yield ExplicitInstantiation(start, stop, lists, (), "", literal=False)
            continue
        inner = tree.tokens[slice(*hosts[-1])]
        strings = [t.text.strip('"') for t in inner if t.kind == "string"]
        literal = all(t.kind == "string" or t.text in _LITERAL for t in inner)
        yield ExplicitInstantiation(start, stop, lists, hosts[-1], "".join(strings), literal)


def template_id(tree: Tree, start: int, stop: int) -> tuple[int, int] | None:
    """Find ``f<…>`` at the end of an explicit instantiation, before the parameters if they are restated."""
    i, found = start, None
    while i < stop:
        if tree.texts[i] == "(" and found is not None:
            break
        end = tree.close(i + 1) if tree.tokens[i].kind == "word" and tree.text(i + 1) == "<" else -1
        if tree.texts[i] in {"[", "("} and tree.close(i) < 0:
            return None
        if end >= 0:
            first = i
            while first >= 2 and tree.texts[first - 1] == "::" and tree.tokens[first - 2].kind == "word":
                first -= 2
            found = first, end
        i = end + 1 if end >= 0 else tree.after(i)
    return found


def written(text: Outline, tree: Tree, found: tuple[int, int]) -> str:
    """Return what is written between two places, on one line."""
    between = text.source[tree.tokens[found[0]].start : tree.tokens[found[1]].end]
    return " ".join(between.replace("\\\n", " ").split())
