"""Let a function template deduce its arguments from references to thread memory, as in Metal.

In clang a thread variable is private, a thread pointer is generic, and the space becomes part of the deduced type: from
``thread T& a, T b`` clang would deduce ``__private float`` and ``float``. Where T can be deduced from another
parameter, the thread parameters are excluded from deduction:

``template <class T> void f(thread typename $thread_type<T>::type& a, T b)``

Otherwise one thread parameter takes part in deduction, and T is the deduced type without the space:

``template <class $T_T> void f(thread $T_T& a, …) { typedef typename $thread_type<$T_T>::type T; …``
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from ...text.bracket_tree import FunctionHead, Outline, Template, Tree
from ...text.edits import Edit
from ...text.tokens import Token

__all__ = ["template_function", "thread_deduction"]

_QUALIFIERS = frozenset({"const", "volatile", "thread"})
_NOT_FUNCTIONS = frozenset({"class", "struct", "union", "using", "template", "typedef"})
_TYPE = frozenset({"class", "typename"})


def thread_deduction(text: Outline) -> Iterator[Edit]:
    """Edit the function templates that have a parameter like ``thread T&``."""
    for tree in text.trees:
        for template in tree.templates:
            yield from _template(tree, template)


def _template(tree: Tree, template: Template) -> Iterator[Edit]:
    types = [i for i in range(template.opening + 1, template.closing) if _declares(tree, i)]
    function = template_function(tree, template) if types else None
    if function is None:
        return
    params = [tree.tokens[a:b] for a, b in tree.parts(function.opening)]
    for name in (tree.texts[i] for i in types):
        references = [t for t in (_thread_reference(p, name) for p in params) if t is not None]
        if any(_deduces(p, name) for p in params):
            yield from (Edit(t.start, t.end, f"typename $thread_type<{name}>::type") for t in references)
        elif references:
            yield from _rename_type(tree, template, function, references[0])


def template_function(tree: Tree, template: Template) -> FunctionHead | None:
    """Return the function that a template declares, or None if it declares something else."""
    if tree.text(template.closing + 1) in _NOT_FUNCTIONS:
        return None
    following = bisect_right(tree.functions, template.closing, key=lambda f: f.opening)
    function = tree.functions[following] if following < len(tree.functions) else None
    return function if function is not None and tree.statement(function.opening) <= template.start else None


def _rename_type(tree: Tree, template: Template, function: FunctionHead, type_token: Token) -> list[Edit]:
    """Rename T up to the body, and restore its name there."""
    name, stop = type_token.text, tree.find(function.end, frozenset({"{", ";", ":", "="}))
    if tree.text(stop) not in {"{", ";"}:
        return []
    edits = []
    for i in range(template.start, stop):
        token = tree.tokens[i]
        if token.text != name or tree.texts[i - 1] in {".", "->", "::"}:
            continue
        new_name = f"$T_{name}"
        if token is not type_token and not (i < template.closing and _declares(tree, i)):
            new_name = f"{'' if tree.texts[i - 1] == 'typename' else 'typename '}$thread_type<$T_{name}>::type"
        edits.append(Edit(token.start, token.end, new_name))
    if tree.texts[stop] == "{":
        position = tree.tokens[stop].end
        edits.append(Edit(position, position, f" typedef typename $thread_type<$T_{name}>::type {name};"))
    return edits


def _declares(tree: Tree, i: int) -> bool:
    """Return whether a position is the T of ``class T`` in a template's list, not a use of it."""
    follows_keyword = tree.texts[i - 1] in _TYPE and tree.tokens[i].kind == "word"
    return follows_keyword and tree.text(i + 1) in {",", "=", ">"}


def _thread_reference(param: list[Token], name: str) -> Token | None:
    """Return the token of T in ``thread T&``, ``thread T*``, ``T a[]`` or ``thread T (&…)[N]``, or None."""
    rest = [t for t in param if t.text not in _QUALIFIERS]
    texts = [t.text for t in rest[:3]]
    array = "[" in texts[1:3] and [t.text for t in rest[3:4]] != ["["]  # T a[4] is a pointer, T a [[…]] is not
    if not array and all(t.text != "thread" for t in param):
        return None
    if texts[:1] != [name] or texts[1:3] == ["&", "&"] or texts[1:3] == ["*", "*"]:
        return None
    return rest[0] if texts[1:2] in (["&"], ["*"]) or texts[1:3] == ["(", "&"] or array else None


def _deduces(param: list[Token], name: str) -> bool:
    """Return whether T can be deduced from a parameter without an address space becoming part of it."""
    texts = [t.text for t in param]
    is_dependent = {"::", "decltype"} & set(texts) or _thread_reference(param, name) is not None
    bare_reference = not {"device", "constant", "threadgroup", "<"} & set(texts) and {"&", "*"} & set(texts)
    return name in texts and "=" not in texts and not is_dependent and not bare_reference  # no default
