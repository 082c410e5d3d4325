"""Constructors qualified by an address space (MSL 4): ``number(float x) device`` beside ``number(float x) thread``.

clang has one constructor for every space, and refuses the qualifier. So of those with the same parameters one stays,
without its qualifier, and constructs objects wherever they are; the others get a first parameter that nothing can be
given for.
"""

from __future__ import annotations

from itertools import pairwise

from .edits import Edit
from .tokens import Token, close

__all__ = ["constructors"]

_ELSEWHERE = ("device", "constant", "threadgroup")
_SPACES = frozenset({*_ELSEWHERE, "thread"})
_QUALIFIERS = _SPACES | {"const", "volatile", "noexcept"}
_ENDS = frozenset({":", "{", ";", "="})


def constructors(tokens: list[Token]) -> tuple[list[Edit], frozenset[int]]:
    """Edit the qualified constructors in a stream of tokens; tell also where the qualifiers stand."""
    classes = {b.text for a, b in pairwise(tokens) if a.text in {"class", "struct"} and b.kind == "word"}
    seen: set[tuple[str, ...]] = set()
    qualified: list[tuple[tuple[str, ...], int, Token, Token | None]] = []
    for i, token in enumerate(tokens[:-1]):
        if token.text not in classes or tokens[i + 1].text != "(":
            continue
        stop = close(tokens, i + 1)
        if stop < 0:
            continue
        words = []
        after = stop + 1
        while after < len(tokens) and tokens[after].text in _QUALIFIERS:
            words += [tokens[after]] if tokens[after].text in _SPACES else []
            after += 1
        if after >= len(tokens) or tokens[after].text not in _ENDS:
            continue
        key = tuple(t.text for t in tokens[i:stop])
        if words:
            defaulted = tokens[after + 1] if tokens[after].text == "=" and after + 1 < len(tokens) else None
            qualified.append((key, i + 1, words[0], defaulted))
        if not words or words[0].text == "thread":
            seen.add(key)
    edits = []
    for key, opening, word, defaulted in qualified:
        edits.append(Edit(word.start, word.end, ""))
        if word.text != "thread" and key in seen:
            at = tokens[opening].end
            if defaulted is not None and defaulted.text == "default":
                edits.append(Edit(defaulted.start, defaulted.end, "delete"))
            comma = "" if tokens[opening + 1].text == ")" else ", "
            edits.append(Edit(at, at, f"$nothing<{_ELSEWHERE.index(word.text)}>{comma}"))
        seen.add(key)
    return edits, frozenset(word.start for _, _, word, _ in qualified)
