"""Member functions: which a class has, and which differ by the address space of their object alone."""

from __future__ import annotations

from .tokens import Token, close, tokenize

__all__ = ["methods", "overloads"]

_SPACES = frozenset({"device", "constant", "threadgroup", "thread"})


def overloads(tokens: list[Token], at: int) -> set[str]:
    """Give the address spaces for which the class has the member function that the space at ``at`` qualifies."""
    start, end = _class(tokens, at)
    wanted = _signature(tokens, at)
    return {tokens[i].text for i in range(start, end) if tokens[i].text in _SPACES and _signature(tokens, i) == wanted}


def _class(tokens: list[Token], at: int) -> tuple[int, int]:
    """Find the braces around a place, or the ends of the text."""
    depth = 0
    for i in range(at - 1, -1, -1):
        if tokens[i].text == "}":
            depth += 1
        elif tokens[i].text == "{":
            depth -= 1
            if depth < 0:
                end = close(tokens, i)
                return i, end if end > 0 else len(tokens)
    return 0, len(tokens)


def _signature(tokens: list[Token], at: int) -> tuple[str, ...]:
    """Give the tokens from a member function's name to the end of its parameters, of the space at ``at`` after them."""
    end = at - 1
    while end >= 0 and tokens[end].text in {"const", "volatile"}:
        end -= 1
    if end < 0 or tokens[end].text != ")":
        return ()
    depth, start = 0, end
    while start >= 0:
        depth += {")": 1, "(": -1}.get(tokens[start].text, 0)
        if depth == 0:
            break
        start -= 1
    name = start - 1
    for back in range(1, 5):  # operator float, operator[], operator()
        if start - back >= 0 and tokens[start - back].text == "operator":
            name = start - back
    return tuple(t.text for t in tokens[max(0, name) : end + 1])


def methods(text: str) -> dict[str, tuple[str, ...]]:
    """Give the names of the public member functions of each class in a text, as far as its tokens tell."""
    tokens = tokenize(text).program
    found: dict[str, tuple[str, ...]] = {}
    for i, token in enumerate(tokens[:-1]):
        if token.text not in {"struct", "class", "union"} or tokens[i + 1].kind != "word":
            continue
        name = tokens[i + 1].text
        start = next((k for k in range(i + 2, len(tokens)) if tokens[k].text in {"{", ";", "(", ")"}), 0)
        if start and tokens[start].text == "{":
            declared = _declared(tokens, start, hidden=token.text == "class")
            found[name] = tuple(dict.fromkeys([*found.get(name, ()), *(n for n in declared if n != name)]))
    return found


_NO_NAMES = frozenset({"alignas", "alignof", "decltype", "operator", "sizeof", "static_assert"})


def _declared(tokens: list[Token], start: int, *, hidden: bool) -> list[str]:
    """Give the words of a class that stand before a parenthesis, after what can be the end of a type."""
    names = []
    end = close(tokens, start)
    end = end if end > 0 else len(tokens)
    k = start + 1
    while k < end:
        token, after = tokens[k], tokens[k + 1].text if k + 1 < end else ""
        if token.text in {"public", "private", "protected"} and after == ":":
            hidden = token.text != "public"
        elif token.text in {"(", "{", "["}:
            k = max(k, close(tokens, k))
        elif token.kind == "word" and after == "(" and not hidden:
            before = tokens[k - 1]
            is_name = token.text not in _NO_NAMES and token.text[0] not in "$_" and before.text != "operator"
            if is_name and (before.kind == "word" or before.text in {">", "*", "&"}):
                names.append(token.text)
        k += 1
    return names
