"""Member functions that differ by the address space of their object alone."""

from __future__ import annotations

from .tokens import Token, close

__all__ = ["overloads"]

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
