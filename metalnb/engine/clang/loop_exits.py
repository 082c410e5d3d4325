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

__all__ = ["add_back_paths", "compile_with_back_paths"]

T = TypeVar("T")

_HEAD_KEYWORDS = frozenset({"if", "switch", "for", "while"})
_BACK, _NEVER = "{ if ($never()) continue; ", "$never() || ("
_ENDS = frozenset({";"})
_FLAGS = frozenset({"&&", "||", "!", "and", "or", "not"})  # keywords of a condition


class _Edit(NamedTuple):
    token: int
    before: str
    after: str


class _Context(NamedTuple):
    """The context of a statement in a loop.

    Attributes
    ----------
    start : int
        The start of the innermost block, or of a branch without braces.
    is_branch : bool
        Whether it is in a branch of the loop's body.
    in_switch : bool
        Whether a ``break`` would leave a switch.
    has_collective_test : bool
        Whether the branch's condition calls a function in which lanes converge.
    """

    start: int
    is_branch: bool = False
    in_switch: bool = False
    has_collective_test: bool = False


def compile_with_back_paths(unit: Unit, compile_text: Callable[[str], T]) -> T:
    """Call `compile_text` on the cell's text with paths back, or on the author's text if the compiler rejects that.

    Parameters
    ----------
    unit : Unit
    compile_text : callable
        Receives the text, as `metalnb.engine.clang.entry_point` does; an empty one means the author's.
    """
    text = add_back_paths(unit.text) if unit.signature.simd else unit.text
    if text != unit.text:
        try:
            return compile_text(text)
        except CompileError:
            pass
    return compile_text("")


def add_back_paths(text: str) -> str:
    """Return a cell's text with a path back before each such exit from a loop; lines keep their numbers."""
    if not is_collective(text):
        return text
    parsed = outline(text)
    collectives = collective_functions(parsed)
    parts, end = [], 0
    edits = [(tree.tokens[e.token], e) for tree in parsed.trees for e in _Loops(tree, collectives).edits()]
    for token, edit in sorted(edits, key=lambda pair: pair[0].start):
        parts += [text[end : token.start], edit.before, text[token.start : token.end], edit.after]
        end = token.end
    return "".join([*parts, text[end:]])


class _Loops:
    """The loops of a text."""

    def __init__(self, tree: Tree, collectives: set[str]) -> None:
        self._tree = tree
        self._collectives = collectives
        self._edits: set[_Edit] = set()
        self._branches: list[tuple[int, int]] = []  # where branches begin and end

    def edits(self) -> set[_Edit]:
        """Return the text to insert before and after tokens; heads of functions inside bodies are read twice."""
        for head in self._tree.functions:
            brace = self._tree.find(head.end, frozenset({"{", ";"}))
            if self._tree.text(brace) == "{":
                self._read_block(brace, None)
        return self._edits

    def _read_block(self, brace: int, context: _Context | None) -> int:
        """Read a block's statements; return the position after it."""
        end = self._tree.close(brace)
        at = brace + 1
        context = context and context._replace(start=brace)
        while brace < at < end:
            at = self._read_statement(at, context)
        return end + 1

    def _read_statement(self, i: int, context: _Context | None) -> int:
        """Read a statement, inside or outside a loop; return the position after it."""
        tree, word = self._tree, self._tree.text(i)
        if word == "{":
            return self._read_block(i, context)
        if word in _HEAD_KEYWORDS:
            opening = i + 2 if tree.text(i + 1) == "constexpr" else i + 1
            closing = tree.close(opening) if tree.text(opening) == "(" else -1
            return self._read_headed(i, opening, closing, context) if closing > 0 else i + 1
        if word == "do":
            end = self._read_statement(i + 1, _Context(i + 1))
            if tree.text(end) == "while" and tree.text(end + 1) == "(":
                self._make_opaque(end + 1, tree.close(end + 1), i + 1, end)
            return tree.find(end, _ENDS) + 1
        if word in {"case", "default"}:
            return tree.find(i, frozenset({":"})) + 1
        end = tree.find(i, _ENDS)
        if context and self._is_collective_exit(i, end, context):
            self._edits |= {_Edit(i, _BACK, ""), _Edit(end, "", " }")}
        return end + 1

    def _is_collective_exit(self, i: int, end: int, context: _Context) -> bool:
        """Return whether a statement leaves a loop and lanes may converge in its block, on the path to it."""
        word = self._tree.text(i)
        if word == "return" or (word == "break" and not context.in_switch):
            return context.has_collective_test or self._has_collectives(context.start, end)
        return False

    def _read_headed(self, i: int, opening: int, closing: int, context: _Context | None) -> int:
        tree, word = self._tree, self._tree.text(i)
        if word in {"for", "while"}:
            end = self._read_statement(closing + 1, _Context(closing + 1))
            if word == "while":
                self._make_opaque(opening, closing, closing + 1, end)
            else:
                first = tree.find(opening + 1, _ENDS, closing)
                second = tree.find(min(first + 1, closing), _ENDS, closing)
                if second < closing and (second + 1 == closing or self._has_flag(first, second)):
                    self._make_opaque(first, second, closing + 1, end)
            return end
        inner = context
        if context:
            has_collective_test = not self._collectives.isdisjoint(tree.texts[opening:closing])
            inner = _Context(closing + 1, True, context.in_switch or word == "switch", has_collective_test)
        end = self._read_statement(closing + 1, inner)
        self._branches.append((closing + 1, end))
        if word == "if" and tree.text(end) == "else":
            start, end = end + 1, self._read_statement(end + 1, inner)
            self._branches.append((start, end))
        return end

    def _make_opaque(self, opening: int, closing: int, start: int, end: int) -> None:
        """Make the condition between two tokens opaque if it tests what a branch with converging lanes sets."""
        tree = self._tree
        tested = {*tree.texts[opening + 1 : closing]}
        if not tested or "=" in tested:
            return  # always true, or a declaration
        for first, last in self._branches:
            is_set = any(tree.text(k) in tested and tree.text(k + 1) == "=" for k in range(first, last))
            if start <= first and last <= end and is_set and self._has_collectives(first, last):
                self._edits |= {_Edit(opening, "", _NEVER), _Edit(closing, ")", "")}

    def _has_flag(self, start: int, end: int) -> bool:
        return any(self._tree.text(k) in _FLAGS for k in range(start, end))

    def _has_collectives(self, start: int, end: int) -> bool:
        """Return whether lanes may converge between two tokens."""
        words = self._tree.texts[start:end]
        return any(word in self._collectives or is_collective(word) for word in words)
