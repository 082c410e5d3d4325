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
from functools import cached_property
from typing import NamedTuple, TypeVar

from metalnb.errors import CompileError
from metalnb.msl.text.bracket_tree import Tree, outline
from metalnb.msl.text.collective_calls import collective_functions, is_collective

from ..unit import Unit

__all__ = ["add_back_paths", "compile_with_back_paths"]

T = TypeVar("T")

_HEAD_KEYWORDS = frozenset({"if", "switch", "for", "while"})
_SPECIFIERS = frozenset({"inline", "static", "constexpr", "METAL_FUNC"})  # before a function's result type
_NOT_PLAIN = frozenset({"[", "(", "auto", "__attribute__"})
_TEST = "if ($never()) continue; "
_BACK, _NEVER = f"{{ {_TEST}", "$never() || ("
_ENDS = frozenset({";"})
_FLAGS = frozenset({"&&", "||", "!", "and", "or", "not"})  # keywords of a condition


class _Edit(NamedTuple):
    token: int
    before: str
    after: str
    drops_token: bool = False


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


def compile_with_back_paths(unit: Unit, compile_unit: Callable[[Unit], T]) -> T:
    """Call `compile_unit` on the unit with paths back, or on the unit itself if the compiler rejects that."""
    changed = _with_back_paths(unit)
    if changed is not unit:
        try:
            return compile_unit(changed)
        except CompileError:
            pass
    return compile_unit(unit)


def _with_back_paths(unit: Unit) -> Unit:
    """Return a unit with paths back in the texts of its cell and its headers, or the unit itself if it needs none."""
    if not unit.signature.simd:
        return unit
    collectives = collective_functions(*map(outline, unit.texts.values()))
    texts = {name: add_back_paths(text, collectives) for name, text in unit.texts.items()}
    return unit if texts == unit.texts else unit.with_texts(texts)


def add_back_paths(text: str, collectives: set[str] | None = None) -> str:
    """Return a text with a path back before each exit that needs one; lines keep their numbers.

    Parameters
    ----------
    text : str
    collectives : set of str, optional
        The functions in which lanes may converge, by default those of the text.
    """
    parsed = outline(text)
    if collectives is None:
        collectives = collective_functions(parsed)
    parts, end = [], 0
    edits = [(tree.tokens[e.token], e) for tree in parsed.trees for e in _Loops(tree, collectives).edits()]
    for token, edit in sorted(edits, key=lambda pair: pair[0].start):
        kept = "" if edit.drops_token else text[token.start : token.end]
        parts += [text[end : token.start], edit.before, kept, edit.after]
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
        at = self._tree.first if self._tree.macro else len(self._tree.texts)
        while at < len(self._tree.texts):  # a macro's statements; one may have only part of a loop
            at = max(at + 1, self._read_statement(at, None))
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
            head, tail = _Edit(i, _BACK, ""), ""
            is_known = tree.text(i + 1) != "{" or self._result_type(i)
            if word == "return" and is_known and self._has_collectives(i + 1, end):
                before, tail = self._split_return(i)
                head = _Edit(i, before, "", drops_token=True)
            is_closed = end < len(tree.texts)  # else the semicolon follows a macro's use
            self._edits |= {head, _Edit(end, tail, " }") if is_closed else _Edit(end - 1, "", f"{tail}; }}")}
        return end + 1

    def _split_return(self, i: int) -> tuple[str, str]:
        """Return the texts to insert around a return's operand, so that the path back follows its evaluation."""
        result = self._result_type(i)
        if result == "void":
            return "{ ", f"; {_TEST}return"
        if self._tree.text(i + 1) == "{" and result:
            return f"{{ {result} $value = ", f"; {_TEST}return $value"
        return "{ decltype(auto) $value = (", f"); {_TEST}return $value"

    def _result_type(self, i: int) -> str:
        """Return the result type of the function around a position; an empty string if it is not plain words."""
        around = [(brace, name) for brace, end, name in self._bodies if brace < i < end]
        if not around:
            return ""
        name = max(around)[1]
        start = self._tree.statement(name)
        if self._tree.text(start) == "template":
            start = self._tree.close(start + 1) + 1
        words = [word for word in self._tree.texts[start:name] if word not in _SPECIFIERS]
        is_plain = words and words[-1] != "::" and _NOT_PLAIN.isdisjoint(words)
        return " ".join(words) if is_plain else ""

    @cached_property
    def _bodies(self) -> list[tuple[int, int, int]]:
        """Each function's braces and name."""
        heads = (h for h in self._tree.functions if self._tree.texts[h.name] not in _HEAD_KEYWORDS)
        braces = ((self._tree.find(h.end, frozenset({"{", ";"})), h.name) for h in heads)
        return [(brace, self._tree.close(brace), name) for brace, name in braces if self._tree.text(brace) == "{"]

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
        """Make the condition between two tokens opaque if a branch with converging lanes sets a variable in it."""
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
