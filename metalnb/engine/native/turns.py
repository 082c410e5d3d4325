"""Loops in which lanes meet: after each turn the lanes that are still in the loop meet once more.

The runtime tells apart the SIMD functions of a program by their places, and serves the first at which lanes wait. In a
loop that is not enough: after ``continue`` or around an ``if``, a lane may come to a SIMD function in its second turn
while others wait there in their first. So ``$turned()`` stands at the end of each turn, as a SIMD function of no value:
behind every place in the loop's body and before every place after the loop. A loop whose body always runs whole, in a
straight line, needs none.
"""

from __future__ import annotations

from collections.abc import Iterator

from metalnb.msl.text.bracket_tree import Outline, Tree, outline

__all__ = ["with_turns"]

_COLLECTIVE = ("simd", "quad")
_BRANCHES = frozenset({
    "if", "continue", "switch", "for", "while", "do", "?", "&&", "||", "and", "or", "goto", "return",
})  # fmt: skip
_LOOPS = frozenset({"for", "while"})


def with_turns(text: str) -> str:
    """Return a text of a cell with the end of each turn marked, in loops in which lanes may meet."""
    if not any(word in text for word in _COLLECTIVE):
        return text
    read = outline(text)
    meeting = _meeting(read)
    edits = sorted(edit for tree in read.trees for edit in _edits(tree, meeting))
    parts, at = [], 0
    for place, end, new in edits:
        parts += [text[at:place], new]
        at = end
    return "".join([*parts, text[at:]])


def _meeting(read: Outline) -> set[str]:
    """Find the cell's own functions and macros in which lanes may meet, by name."""
    bodies = [(tree.texts[0], frozenset(tree.texts[tree.first :])) for tree in read.macros]
    for tree in read.trees:
        for head in tree.functions:
            brace = tree.find(head.end, frozenset({"{", ";"}))
            if tree.text(brace) == "{":
                bodies.append((tree.texts[head.name], frozenset(tree.texts[brace : tree.close(brace)])))
    found: set[str] = set()
    grown = True
    while grown:
        more = {name for name, words in bodies if name not in found and (words & found or any(map(_collective, words)))}
        grown = bool(more)
        found |= more
    return found


def _collective(word: str) -> bool:
    return any(part in word for part in _COLLECTIVE)


def _edits(tree: Tree, meeting: set[str]) -> Iterator[tuple[int, int, str]]:
    """Yield what to replace: where it starts and ends in the text, and the text to put there."""
    tails = set()  # `while` of a do statement
    for i in range(tree.first, len(tree.texts)):
        word = tree.texts[i]
        if word == "do":
            end = _statement_end(tree, i + 1)
            if tree.text(end) == "while" and tree.close(end + 1) > 0:
                tails.add(end)
                if _lanes_may_part(tree, i + 1, tree.close(end + 1), meeting):
                    yield _at(tree, end + 1, "($turned(), (")
                    yield _at(tree, tree.close(end + 1), "))")
        elif word in _LOOPS and i not in tails and tree.text(i + 1) == "(":
            closing = tree.close(i + 1)
            end = _statement_end(tree, closing + 1) if closing > 0 else -1
            if end < 0 or not _lanes_may_part(tree, i + 1, end, meeting):
                continue
            if word == "while":
                yield tree.tokens[i].start, tree.tokens[i + 1].end, "for (;"
                yield _at(tree, closing, "; $turned())")
                continue
            semicolons = [k for k in range(i + 2, closing) if tree.texts[k] == ";" and tree.around(k) == i + 1]
            if len(semicolons) == 2:
                start = tree.tokens[semicolons[1]].end
                yield start, start, " $turned()" + ("," if semicolons[1] + 1 < closing else "")


def _at(tree: Tree, place: int, new: str) -> tuple[int, int, str]:
    token = tree.tokens[place]
    return token.start, token.end, new


def _lanes_may_part(tree: Tree, start: int, stop: int, meeting: set[str]) -> bool:
    words = set(tree.texts[start:stop])
    return bool(words & meeting) or (bool(words & _BRANCHES) and any(map(_collective, words)))


_HEADED = frozenset({"if", "for", "while", "switch"})


def _statement_end(tree: Tree, i: int) -> int:
    """Return the place after the statement that starts at `i`; -1 when it is not understood."""
    count = len(tree.texts)
    while tree.text(i) == "[" == tree.text(i + 1):  # attributes
        i = tree.after(i)
    if i >= count:
        return -1
    word = tree.texts[i]
    if word == "{":
        end = tree.close(i)
        return end + 1 if end > 0 else -1
    if word in _HEADED:
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
