"""Edits of declarations: ``threadgroup`` variables, and template parameters that are pointers to functions."""

from __future__ import annotations

from collections.abc import Mapping

from .edits import Edit
from .tokens import Token, close

__all__ = ["function_aliases", "function_parameters", "storage", "threadgroup_words"]

_BUILTIN_TYPES = frozenset({"unsigned", "signed", "long", "short", "int", "char"})
_SPECIFIERS = frozenset({"const", "volatile", "struct", "class", "union", "enum", "typename", "static"})


def threadgroup_words(macros: list[list[Token]]) -> Mapping[str, bool]:
    """Find the words that begin a threadgroup declaration; True for a macro that brings the type too.

    Parameters
    ----------
    macros : list of list of Token
        Each macro from its name on.
    """
    words = {"threadgroup": False}
    for tokens in macros:
        start = body(tokens)
        if start < len(tokens) and tokens[start].text == "threadgroup":
            typed = start + 1 < len(tokens)
            if not typed or _skip_type(tokens, start + 1) == len(tokens):
                words[tokens[0].text] = typed
    return words


def body(macro: list[Token]) -> int:
    """Index where a macro's body begins, after its name and parameters."""
    if len(macro) > 1 and macro[1].text == "(" and macro[1].start == macro[0].end:
        return close(macro, 1) + 1 or len(macro)
    return 1


def storage(tokens: list[Token], at: int, words: Mapping[str, bool], *, macro: bool = False) -> list[Edit]:
    """Edit ``threadgroup T a[N], b;`` into references to storage.

    Parameters
    ----------
    tokens : list of Token
    at : int
        Where one of ``words`` stands.
    words : mapping of str to bool
        From `threadgroup_words`.
    macro : bool
        True in a macro's definition, where the declaration may end with the text.
    """
    i = _declarators(tokens, at, words, macro=macro)
    if i is None:
        return []
    edits: list[Edit] = []
    while i < len(tokens) and tokens[i].kind == "word":
        name = tokens[i]
        i += 1
        while i < len(tokens) and tokens[i].text == "[":
            end = close(tokens, i)
            if end < 0 or tokens[i + 1].text == "[":
                return []
            i = end + 1
        last = tokens[i - 1].end
        stop = tokens[i].text if i < len(tokens) else ";" if macro else ""
        if stop not in {",", ";"}:
            return []  # an initialiser, or no declaration at all: the compiler's parser will say
        edits.append(Edit(name.start, name.end, f"(&{name.text})"))
        edits.append(Edit(last, last, " = $threadgroup_storage<__COUNTER__>()"))
        if stop == ";":
            return edits
        i += 1
    return []


def _declarators(tokens: list[Token], at: int, words: Mapping[str, bool], *, macro: bool) -> int | None:
    """Find where the names begin in the declaration that has ``threadgroup`` at ``at``."""
    before = tokens[at - 1] if at > (body(tokens) if macro else 0) else None
    if before is None or before.text in {";", "{", "}", ")", ":"}:
        if not words[tokens[at].text]:
            return _skip_type(tokens, at + 1)
        if at + 1 < len(tokens) and tokens[at + 1].text == "(":  # a macro that takes the type
            return close(tokens, at + 1) + 1 or None
        return at + 1
    # `float threadgroup tile[4];`
    after = tokens[at + 1 : at + 3]
    named = len(after) == 2 and after[0].kind == "word" and after[1].text in {"[", ",", ";"}
    return at + 1 if named and (before.kind == "word" or before.text == ">") else None


def function_parameters(tokens: list[Token], at: int) -> list[Edit]:
    """Edit ``template <void (*f)(int)>`` at ``at`` into ``template <void (&f)(int)>``: clang takes no pointer there."""
    end = close(tokens, at + 1)
    edits: list[Edit] = []
    for i in range(at + 2, end - 3):
        star, _, *after = (t.text for t in tokens[i + 1 : i + 5])
        if tokens[i].text == "(" and star == "*" and after == [")", "("]:
            edits.append(Edit(tokens[i + 1].start, tokens[i + 1].end, "&"))
    return edits


def function_aliases(tokens: list[Token]) -> list[Edit]:
    """Edit ``using F = void (*)(int);`` likewise: a template's parameter may be declared with it."""
    edits: list[Edit] = []
    alias = False
    for i, token in enumerate(tokens):
        alias = token.text == "using" or (alias and token.text not in {";", "{", "}"})
        if alias and [t.text for t in tokens[i : i + 4]] == ["(", "*", ")", "("]:
            edits.append(Edit(tokens[i + 1].start, tokens[i + 1].end, "&"))
    return edits


def _skip_type(tokens: list[Token], i: int) -> int | None:
    """Index after a type that starts at ``i``; None if there is none."""
    count = len(tokens)
    while i < count and tokens[i].text in _SPECIFIERS:
        i += 1
    if i >= count or tokens[i].kind != "word":
        return None
    if tokens[i].text in _BUILTIN_TYPES:
        while i < count and tokens[i].text in _BUILTIN_TYPES:
            i += 1
        return i
    if tokens[i].text == "decltype":
        end = close(tokens, i + 1) if i + 1 < count else -1
        return end + 1 if end > 0 else None
    while True:
        i += 1
        if i < count and tokens[i].text == "<":
            end = close(tokens, i)
            if end < 0:
                return None
            i = end + 1
        if i + 1 < count and tokens[i].text == "::":
            i += 1
            continue
        return i
