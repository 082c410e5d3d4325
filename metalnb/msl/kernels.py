"""Find in a cell's own tokens where its kernels are defined and instantiated: what a rewriting of the text needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .signature import Input, Param, Signature
from .tokens import Token, close

__all__ = ["Definition", "Restated", "Segment", "attribute_lists", "definitions", "instantiated", "short_name"]

Tokens = list[Token]


@dataclass(frozen=True, slots=True)
class Segment:
    """One parameter of a kernel, in the text.

    Attributes
    ----------
    declarator : tuple of Token
        Its type and name.
    lists : tuple of tuple of int
        Where its attribute lists start and end.
    names : frozenset of str
        The words in them.
    """

    declarator: tuple[Token, ...]
    lists: tuple[tuple[int, int], ...]
    names: frozenset[str]

    @property
    def start(self) -> int:
        """Where it starts in the text."""
        return min(self.declarator[0].start, *(start for start, _ in self.lists), self.declarator[0].start)

    @property
    def end(self) -> int:
        """Where it ends in the text."""
        return max(self.declarator[-1].end, *(end for _, end in self.lists), 0)

    def name(self, name: str) -> Token:
        """Give the token of the parameter's name, or of its end when it has none."""
        return next((t for t in reversed(self.declarator) if t.text == name), self.declarator[-1])


@dataclass(frozen=True, slots=True)
class Definition:
    """A kernel's definition, as places in the text.

    Attributes
    ----------
    start : int
        Where an attribute list may be put before it.
    segments : tuple of Segment
    commas : tuple of int
        Between the parameters.
    end : int
        Of the parameter list: its closing parenthesis.
    body : int
        After the opening brace.
    limits : tuple of tuple of int
        Where ``max_total_threads_per_threadgroup(…)`` stands, with a comma beside it if there is one.
    """

    start: int
    segments: tuple[Segment, ...]
    commas: tuple[int, ...]
    end: int
    body: int
    limits: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Restated:
    """An explicit instantiation with a host name.

    Attributes
    ----------
    name : str or None
        The host name; None when a macro makes it.
    start, end : int
        Of the whole statement.
    signature : tuple of int or None
        Where the signature is restated: from after the host name to the parameter list's end.
    function : str
        ``f<…>`` as it stands there.
    """

    name: str | None
    start: int
    end: int
    signature: tuple[int, int] | None
    function: str


def short_name(function: str) -> str:
    """Give a function's own name: ``::ops::copy<float, 4>`` -> ``copy``."""
    return re.sub(r"<.*", "", function, flags=re.DOTALL).split("::")[-1].strip()


def definitions(tokens: Tokens, signature: Signature, *, macro: bool) -> Iterator[Definition]:
    """Find the definitions that fit a signature: by name (in a macro's body by its parameters alone)."""
    name = short_name(signature.function)
    for i, token in enumerate(tokens):
        if token.text != "(" or i == 0 or not (macro or tokens[i - 1].text == name):
            continue
        stop = close(tokens, i)
        head = _head(tokens, i)
        if stop < 0 or head is None:
            continue
        brace = stop + 1
        for _, last in attribute_lists(tokens, brace, adjacent=True):
            brace = last + 1
        if brace >= len(tokens) or tokens[brace].text != "{":
            continue
        segments, commas = _segments(tokens, i, stop)
        if _fits(segments, signature):
            limits = tuple(_limits(tokens, _statement(tokens, i), brace))
            yield Definition(tokens[head].start, segments, commas, tokens[stop].start, tokens[brace].end, limits)


def _statement(tokens: Tokens, at: int) -> int:
    """Index of the first token of the statement that ``at`` lies in."""
    while at > 0 and tokens[at - 1].text not in {";", "{", "}"}:
        at -= 1
    return at


def _head(tokens: Tokens, at: int) -> int | None:
    """Index before which an attribute list may stand: of ``kernel``, or of the list that holds it."""
    first = _statement(tokens, at)
    for i in range(at - 1, first - 1, -1):
        if tokens[i].text == "kernel":
            lists = [(a, b) for a, b in attribute_lists(tokens[:at], first) if a < i < b]
            return lists[0][0] if lists else i
    return None


def attribute_lists(tokens: Tokens, at: int = 0, *, adjacent: bool = False) -> Iterator[tuple[int, int]]:
    """Yield where ``[[…]]`` start and end, as indices; with ``adjacent`` only the ones in a row at ``at``."""
    i = at
    while i + 1 < len(tokens):
        if tokens[i].text == tokens[i + 1].text == "[":
            end = close(tokens, i)
            if end < 0:
                return
            yield i, end
            i = end
        elif adjacent:
            return
        i += 1


def _segments(tokens: Tokens, at: int, stop: int) -> tuple[tuple[Segment, ...], tuple[int, ...]]:
    """Split a parameter list at its commas."""
    starts, commas = [at + 1], []
    i = at + 1
    while i < stop:
        text = tokens[i].text
        if text in {"(", "[", "{"} or (text == "<" and tokens[i - 1].kind == "word"):
            i = max(i, close(tokens, i))
        elif text == ",":
            commas.append(tokens[i].start)
            starts.append(i + 1)
        i += 1
    ends = [*(s - 1 for s in starts[1:]), stop]
    made = tuple(_segment(tokens[a:b]) for a, b in zip(starts, ends, strict=True) if a < b)
    return made, tuple(commas)


def _segment(tokens: Tokens) -> Segment:
    inside: set[int] = set()
    lists = []
    for a, b in attribute_lists(tokens):
        inside |= set(range(a, b + 1))
        lists.append((tokens[a].start, tokens[b].end))
    declarator = tuple(t for i, t in enumerate(tokens) if i not in inside)
    names = frozenset(tokens[i].text for i in inside if tokens[i].kind == "word")
    return Segment(declarator, tuple(lists), names)


def _fits(segments: tuple[Segment, ...], signature: Signature) -> bool:
    if len(segments) != signature.arity or not all(s.declarator for s in segments):
        return False
    roles: list[Param | Input] = [*signature.params, *signature.inputs]
    for role in roles:
        segment = segments[role.position]
        if role.name and all(t.text != role.name for t in segment.declarator):
            return False
        if isinstance(role, Input) and role.attribute not in segment.names:
            return False
    return True


def _limits(tokens: Tokens, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield where the kernel's own limit of threads stands; a list that holds nothing else goes whole."""
    for a, b in attribute_lists(tokens[:last], first):
        for i in range(a, b):
            if tokens[i].text == "max_total_threads_per_threadgroup":
                end = close(tokens, i + 1)
                before, after = tokens[i - 1].text == ",", tokens[end + 1].text == ","
                if not before and not after:
                    yield tokens[a].start, tokens[b].end
                else:
                    yield tokens[i - 1 if before else i].start, tokens[end if before else end + 1].end


_HOST = frozenset({"[", "]", "(", ")", ",", "host_name", "kernel"})


def instantiated(tokens: Tokens, text: str) -> Iterator[Restated]:
    """Find the explicit instantiations with a host name."""
    for i, token in enumerate(tokens):
        if token.text != "template" or i + 1 >= len(tokens) or tokens[i + 1].text == "<":
            continue
        stop = next((k for k in range(i, len(tokens)) if tokens[k].text in {";", "{"}), len(tokens))  # a macro's end
        lists = attribute_lists(tokens[:stop], i)
        hosts = [(a, b) for a, b in lists if any(t.text == "host_name" for t in tokens[a:b])]
        if not hosts:
            continue
        last = hosts[0][1]
        inner = tokens[hosts[0][0] : last]
        strings = [t.text for t in inner if t.kind == "string"]
        known = all(t.kind == "string" or t.text in _HOST for t in inner)
        name = "".join(s.strip('"') for s in strings) if known else None
        signature, function = _restated(tokens[last + 1 : stop], text)
        yield Restated(name, token.start, tokens[min(stop, len(tokens) - 1)].end, signature, function)


def _restated(tokens: Tokens, text: str) -> tuple[tuple[int, int] | None, str]:
    """Find ``… f<T>(…)``."""
    for i, token in enumerate(tokens):
        if token.text == "<" and i and tokens[i - 1].kind == "word":
            end = close(tokens, i)
            if 0 < end < len(tokens) - 1 and tokens[end + 1].text == "(":
                first = i - 1
                while first >= 2 and tokens[first - 1].text == "::" and tokens[first - 2].kind == "word":
                    first -= 2
                stop = close(tokens, end + 1)
                function = text[tokens[first].start : tokens[end].end]
                return (tokens[0].start, tokens[stop].end), " ".join(function.replace("\\\n", " ").split())
    return None, ""
