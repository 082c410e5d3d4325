"""Let a function template deduce the length of an array in thread memory: ``thread const float (&a)[N]`` (MSL 4.3).

In clang the elements of a thread array are private and those of the parameter are generic, but clang deduces a length
only if both element types are equal. So the element type is also deduced, and constrained to the author's type:

``template <int N, class $E_0, typename $thread_element<$E_0, float>::type = 0> … (thread const $E_0 (&a)[N])``
"""

from __future__ import annotations

from collections.abc import Iterator

from ...text.bracket_tree import Outline, Template, Tree
from ...text.edits import Edit
from .thread_deduction import template_function

__all__ = ["array_deduction"]

_QUALIFIERS = frozenset({"const", "volatile", "thread"})


def array_deduction(text: Outline) -> Iterator[Edit]:
    """Edit the function templates that have a reference to a thread array as a parameter."""
    for tree in text.trees:
        for template in tree.templates:
            yield from _template(tree, template)


def _template(tree: Tree, template: Template) -> Iterator[Edit]:
    function = template_function(tree, template)
    if function is None:
        return
    template_words = set(tree.texts[template.opening : template.closing])
    types = {tree.texts[i + 1] for i in range(template.opening, template.closing) if tree.texts[i] in _TYPE}
    parameters = ""
    for number, (start, stop) in enumerate(tree.parts(function.opening)):
        first, last = _element(tree, start, stop)
        if first < 0 or tree.texts[tree.close(last) + 2] not in template_words - types or types & set(
            tree.texts[first:last],
        ):  # fmt: skip
            continue
        begin, end = tree.tokens[first].start, tree.tokens[last - 1].end
        name = f"$E_{number}"
        yield Edit(begin, end, name)
        element = " ".join(t.text for t in tree.tokens[first:last] if t.text not in _QUALIFIERS)
        parameters += f", class {name}, typename $thread_element<{name}, {element}>::type = 0"
    if parameters:
        position = tree.tokens[template.closing].start
        yield Edit(position, position, parameters)


_TYPE = frozenset({"class", "typename"})


def _element(tree: Tree, start: int, stop: int) -> tuple[int, int]:
    """Find the element type in ``thread const float (&a)[N]``: its first token and the bracket after it; -1 if none."""
    first = start
    while first < stop and tree.texts[first] in _QUALIFIERS:
        first += 1
    last = tree.find(first, frozenset({"("}), stop)
    array = tree.texts[last : last + 2] == ["(", "&"] and tree.text(tree.close(last) + 1) == "["
    return (first, last) if array and first < last and "thread" in tree.texts[start:last] else (-1, -1)
