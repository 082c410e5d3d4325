"""Keep SIMD functions on an exit path of a loop inside the loop.

``for (;;) { if (x == simd_broadcast_first(x)) { s = simd_sum(v); break; } }`` handles the lanes of one value per
iteration. To a compiler the block that ends in ``break`` is outside the loop, since no path leads from it into another
iteration. Compilers for CPUs and GPUs alike run the code after a loop once, when all lanes have left, so ``simd_sum``
would add up every lane. Each such exit path therefore gets a path back, ``if ($never()) continue;``. If a flag ends the
loop, the loop's condition is made opaque; otherwise clang would jump from the flag's assignment straight out of the
loop. Each target defines ``$never`` itself.

A loop is changed only if a SIMD function, or a function of the cell that calls one, is reached solely on an exit path:
in the block that ends with the exit, or in the branch that sets the flag.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from metalnb.errors import CompileError
from metalnb.msl.text.bracket_tree import Tree, outline
from metalnb.msl.text.collective_calls import collective_functions, is_collective

from ..unit import Unit

__all__ = ["made_with_ways_back", "with_ways_back"]

T = TypeVar("T")

_HEADED = frozenset({"if", "switch", "for", "while"})
_BACK, _NEVER = "{ if ($never()) continue; ", "$never() || ("
_ENDS = frozenset({";"})
_FLAGS = frozenset({"&&", "||", "!", "and", "or", "not"})  # keywords of a condition


class _Edit(NamedTuple):
    place: int
    before: str
    behind: str


class _Around(NamedTuple):
    """The context of a statement in a loop.

    Attributes
    ----------
    start : int
        The start of the innermost block, or of a branch without braces.
    branch : bool
        Whether it is in a branch of the loop's body.
    switch : bool
        Whether a ``break`` would leave a switch.
    asked : bool
        Whether the branch's condition calls a function in which lanes converge.
    """

    start: int
    branch: bool = False
    switch: bool = False
    asked: bool = False


def made_with_ways_back(unit: Unit, make: Callable[[str], T]) -> T:
    """Call `make` on the cell's text with paths back, or on the author's text if the compiler rejects that.

    Parameters
    ----------
    unit : Unit
    make : callable
        Receives the text, as `metalnb.engine.clang.entry_point` does; an empty one means the author's.
    """
    text = with_ways_back(unit.text) if unit.signature.simd else unit.text
    if text != unit.text:
        try:
            return make(text)
        except CompileError:
            pass
    return make("")


def with_ways_back(text: str) -> str:
    """Return a cell's text with a path back before each such exit from a loop; lines keep their numbers."""
    if not is_collective(text):
        return text
    read = outline(text)
    own = collective_functions(read)
    parts, at = [], 0
    edits = [(tree.tokens[e.place], e) for tree in read.trees for e in _Loops(tree, own).edits()]
    for token, edit in sorted(edits, key=lambda pair: pair[0].start):
        parts += [text[at : token.start], edit.before, text[token.start : token.end], edit.behind]
        at = token.end
    return "".join([*parts, text[at:]])


class _Loops:
    """The loops of a text."""

    def __init__(self, tree: Tree, own: set[str]) -> None:
        self._tree = tree
        self._own = own
        self._edits: set[_Edit] = set()
        self._branches: list[tuple[int, int]] = []  # where branches begin and end

    def edits(self) -> set[_Edit]:
        """Return the text to insert before and after tokens; heads of functions inside bodies are read twice."""
        for head in self._tree.functions:
            brace = self._tree.find(head.end, frozenset({"{", ";"}))
            if self._tree.text(brace) == "{":
                self._block(brace, None)
        return self._edits

    def _block(self, brace: int, around: _Around | None) -> int:
        """Read a block's statements; return the position after it."""
        end = self._tree.close(brace)
        at = brace + 1
        around = around and around._replace(start=brace)
        while brace < at < end:
            at = self._statement(at, around)
        return end + 1

    def _statement(self, i: int, around: _Around | None) -> int:
        """Read a statement, inside or outside a loop; return the position after it."""
        tree, word = self._tree, self._tree.text(i)
        if word == "{":
            return self._block(i, around)
        if word in _HEADED:
            opening = i + 2 if tree.text(i + 1) == "constexpr" else i + 1
            closing = tree.close(opening) if tree.text(opening) == "(" else -1
            return self._headed(i, opening, closing, around) if closing > 0 else i + 1
        if word == "do":
            end = self._statement(i + 1, _Around(i + 1))
            if tree.text(end) == "while" and tree.text(end + 1) == "(":
                self._condition(end + 1, tree.close(end + 1), i + 1, end)
            return tree.find(end, _ENDS) + 1
        if word in {"case", "default"}:
            return tree.find(i, frozenset({":"})) + 1
        end = tree.find(i, _ENDS)
        if around and self._leaves_with_lanes(i, end, around):
            self._edits |= {_Edit(i, _BACK, ""), _Edit(end, "", " }")}
        return end + 1

    def _leaves_with_lanes(self, i: int, end: int, around: _Around) -> bool:
        """Return whether a statement leaves a loop and lanes may converge in its block, on the path to it."""
        word = self._tree.text(i)
        if word == "return" or (word == "break" and not around.switch):
            return around.asked or self._has_collectives(around.start, end)
        return False

    def _headed(self, i: int, opening: int, closing: int, around: _Around | None) -> int:
        tree, word = self._tree, self._tree.text(i)
        if word in {"for", "while"}:
            end = self._statement(closing + 1, _Around(closing + 1))
            if word == "while":
                self._condition(opening, closing, closing + 1, end)
            else:
                first = tree.find(opening + 1, _ENDS, closing)
                second = tree.find(min(first + 1, closing), _ENDS, closing)
                if second < closing and (second + 1 == closing or self._flagged(first, second)):
                    self._condition(first, second, closing + 1, end)
            return end
        inner = around
        if around:
            asked = not self._own.isdisjoint(tree.texts[opening:closing])
            inner = _Around(closing + 1, True, around.switch or word == "switch", asked)
        end = self._statement(closing + 1, inner)
        self._branches.append((closing + 1, end))
        if word == "if" and tree.text(end) == "else":
            start, end = end + 1, self._statement(end + 1, inner)
            self._branches.append((start, end))
        return end

    def _condition(self, opening: int, closing: int, start: int, end: int) -> None:
        """Make the condition between two tokens opaque if it tests what a branch with converging lanes sets."""
        tree = self._tree
        asked = {*tree.texts[opening + 1 : closing]}
        if not asked or "=" in asked:
            return  # always true, or a declaration
        for first, last in self._branches:
            sets = any(tree.text(k) in asked and tree.text(k + 1) == "=" for k in range(first, last))
            if start <= first and last <= end and sets and self._has_collectives(first, last):
                self._edits |= {_Edit(opening, "", _NEVER), _Edit(closing, ")", "")}

    def _flagged(self, start: int, end: int) -> bool:
        return any(self._tree.text(k) in _FLAGS for k in range(start, end))

    def _has_collectives(self, start: int, end: int) -> bool:
        """Return whether lanes may converge between two tokens."""
        words = self._tree.texts[start:end]
        return any(word in self._own or is_collective(word) for word in words)
