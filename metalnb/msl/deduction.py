"""Let a function template deduce what Metal lets it deduce from references to thread memory.

A thread variable is private to clang, a thread pointer is generic, and clang takes the space into what it deduces: from
``thread T& a, T b`` it would deduce ``__private float`` and ``float``. Where T can be told from another parameter, the
thread ones are not asked:

``template <class T> void f(thread typename $thread_type<T>::type& a, T b)``

Where it cannot, one of them is asked, and T is what remains without the space:

``template <class $T_T> void f(thread $T_T& a, …) { typedef typename $thread_type<$T_T>::type T; …``
"""

from __future__ import annotations

from collections.abc import Iterator

from .edits import Edit
from .tokens import Token, close

__all__ = ["thread_parameters"]

_QUALIFIERS = frozenset({"const", "volatile", "thread"})
_NOT_FUNCTIONS = frozenset({"class", "struct", "union", "using", "template", "typedef"})
_TYPE = frozenset({"class", "typename"})
_OPERATIONS = frozenset({"decltype", "__attribute__", "alignas", "noexcept", "sizeof", "explicit"})


def thread_parameters(tokens: list[Token], at: int) -> list[Edit]:
    """Edit the function template at ``at`` where it has a parameter like ``thread T&``."""
    end = close(tokens, at + 1)
    if end < 0 or end + 1 >= len(tokens) or tokens[end + 1].text in _NOT_FUNCTIONS:
        return []
    types = [
        tokens[i + 1].text for i in range(at + 2, end - 1)
        if tokens[i].text in _TYPE and tokens[i + 1].kind == "word" and _declares(tokens, i + 1)
    ]  # fmt: skip
    opening = _parameter_list(tokens, end + 1) if types else -1
    if opening < 0:
        return []
    params = list(_split(tokens, opening))
    edits = []
    for name in types:
        references = [t for t in (_thread_reference(p, name) for p in params) if t is not None]
        if any(_tells(p, name) for p in params):
            edits += [Edit(t.start, t.end, f"typename $thread_type<{name}>::type") for t in references]
        elif references:
            edits += _renamed(tokens, (at, opening), name, references[0])
    return edits


def _renamed(tokens: list[Token], between: tuple[int, int], name: str, asked: Token) -> list[Edit]:
    """Give T another name up to the body, and there its own."""
    at, opening = between
    stop = close(tokens, opening) + 1
    while stop < len(tokens) and tokens[stop].text not in {"{", ";", ":", "="}:
        stop += 1
    if stop >= len(tokens) or tokens[stop].text in {":", "="}:
        return []
    edits = []
    for i in range(at, stop):
        token = tokens[i]
        if token.text != name or tokens[i - 1].text in {".", "->", "::"}:
            continue
        new = f"$T_{name}"
        if token is not asked and not (i < opening and tokens[i - 1].text in _TYPE and _declares(tokens, i)):
            new = f"{'' if tokens[i - 1].text == 'typename' else 'typename '}$thread_type<$T_{name}>::type"
        edits.append(Edit(token.start, token.end, new))
    if tokens[stop].text == "{":
        at = tokens[stop].end
        edits.append(Edit(at, at, f" typedef typename $thread_type<$T_{name}>::type {name};"))
    return edits


def _declares(tokens: list[Token], i: int) -> bool:
    """Tell the T of ``class T`` in a template's list from one that is used."""
    return tokens[i + 1].text in {",", "=", ">"}


def _parameter_list(tokens: list[Token], i: int) -> int:
    """Find the parenthesis that opens a function's parameters; -1 when a declaration ends before one."""
    while i < len(tokens) and tokens[i].text not in {";", "{", "}", "="}:
        text = tokens[i].text
        if text == "operator":  # its own name may hold brackets: operator()(…), operator<(…)
            return next((k for k in range(i + 2, min(i + 6, len(tokens))) if tokens[k].text == "("), -1)
        if text == "(" and tokens[i - 1].text not in _OPERATIONS:
            return i
        if text in {"(", "[", "<"}:
            i = close(tokens, i)
            if i < 0:
                return -1
        i += 1
    return -1


def _split(tokens: list[Token], opening: int) -> Iterator[list[Token]]:
    """Split a parameter list at its commas."""
    end = close(tokens, opening)
    start = i = opening + 1
    while i < end:
        if tokens[i].text in {"(", "[", "{", "<"}:
            i = max(i, close(tokens, i))
        elif tokens[i].text == ",":
            yield tokens[start:i]
            start = i + 1
        i += 1
    if start < end:
        yield tokens[start:end]


def _thread_reference(param: list[Token], name: str) -> Token | None:
    """Give the token of T in ``thread T&``, ``thread T*``, ``T a[]`` or ``thread T (&…)[N]``, or None."""
    rest = [t for t in param if t.text not in _QUALIFIERS]
    texts = [t.text for t in rest[:3]]
    array = "[" in texts[1:3] and [t.text for t in rest[3:4]] != ["["]  # T a[4] is a pointer, T a [[…]] is not
    if not array and all(t.text != "thread" for t in param):
        return None
    if texts[:1] != [name] or texts[1:3] == ["&", "&"] or texts[1:3] == ["*", "*"]:
        return None
    return rest[0] if texts[1:2] in (["&"], ["*"]) or texts[1:3] == ["(", "&"] or array else None


def _tells(param: list[Token], name: str) -> bool:
    """Say whether T is deduced from a parameter without an address space in it."""
    texts = [t.text for t in param]
    open_ended = {"::", "decltype"} & set(texts) or _thread_reference(param, name) is not None
    bare_reference = not {"device", "constant", "threadgroup", "<"} & set(texts) and {"&", "*"} & set(texts)
    return name in texts and "=" not in texts and not open_ended and not bare_reference  # no default
