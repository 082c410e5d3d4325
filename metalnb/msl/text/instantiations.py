"""Find explicit instantiations of kernel templates: ``template [[host_name("x")]] [[kernel]] decltype(f<T>) f<T>;``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .bracket_tree import Outline, Tree

__all__ = ["ExplicitInstantiation", "explicit_instantiations", "restated_head", "template_id", "text_of_range"]

_LITERAL = frozenset({"[", "]", "(", ")", ",", "host_name", "kernel"})


@dataclass(frozen=True, slots=True)
class ExplicitInstantiation:
    """An explicit instantiation, as positions in the tree.

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
        False if a macro produces the host name.
    """

    start: int
    stop: int
    lists: tuple[tuple[int, int], ...]
    host: tuple[int, int] | tuple[()]
    name: str
    literal: bool


def explicit_instantiations(tree: Tree) -> Iterator[ExplicitInstantiation]:
    """Yield the explicit instantiations, including those without a host name."""
    for start, text in enumerate(tree.texts):
        if text != "template" or tree.text(start + 1) in {"<", ""}:
            continue
        stop = next((k for k in range(start, len(tree.texts)) if tree.texts[k] in {";", "{"}), len(tree.texts))
        lists = tuple(tree.attribute_lists(start, stop))
        host_lists = [(a, b) for a, b in lists if "host_name" in tree.texts[a:b]]
        if not host_lists:
            yield ExplicitInstantiation(start, stop, lists, (), "", literal=False)
            continue
        host_tokens = tree.tokens[slice(*host_lists[-1])]
        strings = [t.text.strip('"') for t in host_tokens if t.kind == "string"]
        is_literal = all(t.kind == "string" or t.text in _LITERAL for t in host_tokens)
        yield ExplicitInstantiation(start, stop, lists, host_lists[-1], "".join(strings), is_literal)


def template_id(tree: Tree, start: int, stop: int) -> tuple[int, int] | None:
    """Find ``f<…>`` at the end of an explicit instantiation, before the parameters if they are restated."""
    i, name_range = start, None
    while i < stop:
        if tree.texts[i] == "(" and name_range is not None:
            break
        end = tree.close(i + 1) if tree.tokens[i].kind == "word" and tree.text(i + 1) == "<" else -1
        if tree.texts[i] in {"[", "("} and tree.close(i) < 0:
            return None
        if end >= 0:
            first = i
            while first >= 2 and tree.texts[first - 1] == "::" and tree.tokens[first - 2].kind == "word":
                first -= 2
            name_range = first, end
        i = end + 1 if end >= 0 else tree.skip(i)
    return name_range


def restated_head(tree: Tree, instantiation: ExplicitInstantiation) -> tuple[str, str] | None:
    """Find the name and the type in ``template … void f(device float* a);``; None if it does not restate the head."""
    opening = tree.open(instantiation.stop - 1)
    words_before = tree.texts[instantiation.start : opening] if opening > 0 else []
    if "void" not in words_before or "decltype" in words_before:
        return None
    name = words_before[len(words_before) - words_before[::-1].index("void") :]
    attributes = {i for a, b in tree.attribute_lists(opening, instantiation.stop) for i in range(a, b + 1)}
    parameters = (tree.texts[i] for i in range(opening + 1, instantiation.stop - 1) if i not in attributes)
    return " ".join(name), f"void ({' '.join(parameters)})"


def text_of_range(text: Outline, tree: Tree, token_range: tuple[int, int]) -> str:
    """Return the text between two positions, on one line."""
    text_between = text.source[tree.tokens[token_range[0]].start : tree.tokens[token_range[1]].end]
    return " ".join(text_between.replace("\\\n", " ").split())
