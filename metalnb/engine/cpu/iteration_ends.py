"""Mark the ends of iterations, where the lanes still in a loop converge again.

The runtime identifies a program's SIMD functions by their call sites, and executes the first one at which lanes wait.
In a loop that does not suffice: after ``continue`` or around an ``if``, a lane may reach a SIMD function in its second
iteration while others wait there in their first. So each iteration ends with ``$iteration_end()``, a SIMD function
without a result that is ordered after every call site in the loop's body and before every one after the loop. A loop
whose body is straight-line code needs none.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple

from metalnb.msl.text.bracket_tree import Tree, outline
from metalnb.msl.text.collective_calls import collective_functions, is_collective

from ..unit import Unit
from .debug_lines import Line

__all__ = ["MarkedText", "TextPosition", "find_iteration_ends", "mark_iteration_ends", "mark_unit"]

TextPosition = tuple[int, int]

_BRANCHES = frozenset({
    "if", "continue", "switch", "for", "while", "do", "?", "&&", "||", "and", "or", "goto", "return",
})  # fmt: skip
_LOOPS = frozenset({"for", "while"})


class MarkedText(NamedTuple):
    """A text with marks, and for each mark in front of its loop's body, the mark's actual position at the loop's end.

    Positions are lines and columns, from 1, of the text in UTF-8.
    """

    text: str
    ends: dict[TextPosition, TextPosition]


def mark_unit(unit: Unit) -> Unit:
    """Return a unit with the ends of iterations marked in the texts of its cell and its headers."""
    marked = _mark_texts(unit.texts)
    return unit.with_texts({name: text.text for name, text in marked.items()})


def find_iteration_ends(texts: Mapping[str, str]) -> dict[Line, TextPosition]:
    """Return, for each mark in front of its loop's body, the mark's actual position at the loop's end.

    Parameters
    ----------
    texts : mapping of str to str
        The unit's texts, without marks.
    """
    marked = _mark_texts(texts)
    return {Line(name, *mark): end for name, text in marked.items() for mark, end in text.ends.items()}


def _mark_texts(texts: Mapping[str, str]) -> dict[str, MarkedText]:
    if not any(map(is_collective, texts.values())):
        return {name: MarkedText(text, {}) for name, text in texts.items()}
    collectives = collective_functions(*map(outline, texts.values()))
    return {name: mark_iteration_ends(text, collectives) for name, text in texts.items()}


def mark_iteration_ends(text: str, collectives: set[str] | None = None) -> MarkedText:
    """Return a text with the end of each iteration marked in loops where lanes may converge.

    Parameters
    ----------
    text : str
    collectives : set of str, optional
        The functions in which lanes may converge, by default those of the text.
    """
    parsed = outline(text)
    if collectives is None:
        collectives = collective_functions(parsed)
    edits = sorted((edit for tree in parsed.trees for edit in _edits(tree, collectives)), key=lambda e: e.start)
    parts: list[str] = []
    at = shift = 0
    marks = []
    for edit in edits:
        parts += [text[at : edit.start], edit.text]
        at = edit.end
        if edit.loop_end >= 0:
            marks.append((edit.start + shift + edit.text.index("$"), edit.loop_end))
        shift += len(edit.text) - (edit.end - edit.start)
    new = "".join([*parts, text[at:]])
    starts = [edit.start for edit in edits]
    shifts = list(accumulate((len(edit.text) - (edit.end - edit.start) for edit in edits), initial=0))
    lines = [0, *(match.end() for match in re.finditer("\n", new))]

    def position(offset: int) -> TextPosition:
        line = bisect_right(lines, offset)
        return line, len(new[lines[line - 1] : offset].encode()) + 1

    return MarkedText(new, {position(mark): position(end + shifts[bisect_left(starts, end)]) for mark, end in marks})


class _Edit(NamedTuple):
    start: int
    end: int
    text: str
    loop_end: int = -1  # for a mark before its loop's body


def _edits(tree: Tree, collectives: set[str]) -> Iterator[_Edit]:
    do_whiles = set()  # the positions of the `while` of do statements
    for i in range(tree.first, len(tree.texts)):
        word = tree.texts[i]
        if word == "do":
            end = _statement_end(tree, i + 1)
            if tree.text(end) == "while" and tree.close(end + 1) > 0:
                do_whiles.add(end)
                if _may_diverge(tree, i + 1, tree.close(end + 1), collectives):
                    yield _replace_token(tree, end + 1, "($iteration_end(), (")
                    yield _replace_token(tree, tree.close(end + 1), "))")
        elif word in _LOOPS and i not in do_whiles and tree.text(i + 1) == "(":
            closing = tree.close(i + 1)
            end = _statement_end(tree, closing + 1) if closing > 0 else -1
            if end < 0 or not _may_diverge(tree, i + 1, end, collectives):
                continue
            last = tree.tokens[end - 1].start
            if word == "while":
                yield _Edit(tree.tokens[i].start, tree.tokens[i + 1].end, "for (;")
                yield _replace_token(tree, closing, "; $iteration_end())")._replace(loop_end=last)
                continue
            semicolons = [k for k in range(i + 2, closing) if tree.texts[k] == ";" and tree.enclosing(k) == i + 1]
            if len(semicolons) == 2:
                start = tree.tokens[semicolons[1]].end
                yield _Edit(start, start, " $iteration_end()" + ("," if semicolons[1] + 1 < closing else ""), last)


def _replace_token(tree: Tree, index: int, new: str) -> _Edit:
    token = tree.tokens[index]
    return _Edit(token.start, token.end, new)


def _may_diverge(tree: Tree, start: int, stop: int, collectives: set[str]) -> bool:
    words = set(tree.texts[start:stop])
    return bool(words & collectives) or (bool(words & _BRANCHES) and any(map(is_collective, words)))


_HEAD_KEYWORDS = frozenset({"if", "for", "while", "switch"})


def _statement_end(tree: Tree, i: int) -> int:
    """Return the position after the statement that starts at `i`, or -1 if it cannot be parsed."""
    count = len(tree.texts)
    while tree.text(i) == "[" == tree.text(i + 1):  # attributes
        i = tree.skip(i)
    if i >= count:
        return -1
    word = tree.texts[i]
    if word == "{":
        end = tree.close(i)
        return end + 1 if end > 0 else -1
    if word in _HEAD_KEYWORDS:
        at = i + 2 if tree.text(i + 1) == "constexpr" else i + 1
        closing = tree.close(at) if tree.text(at) == "(" else -1
        end = _statement_end(tree, closing + 1) if closing > 0 else -1
        if word == "if" and end > 0 and tree.text(end) == "else":
            return _statement_end(tree, end + 1)
        return end
    if word == "do":
        end = _statement_end(tree, i + 1)
        return tree.find(end, frozenset({";"})) + 1 if end > 0 else -1
    return min(tree.find(i, frozenset({";"})) + 1, count)
