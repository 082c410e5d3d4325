"""Let ``?:`` choose between vectors of different address spaces, as MSL's built-in vectors do (MSL 3.1).

To clang a vector is a class, and C++ has no common type for one class in two address spaces: with ``x`` in device
memory, ``i < n ? x[i] : float4(0)`` would not compile. So each operand is read by ``$either()->*``, which binds tighter
than any operator in an operand except postfix and unary ones. It turns a vector into a value, and returns anything else
unchanged (``target/words.h``).

The author's own operators bind less tightly: in a cell that has one, an operand that contains an operator is put into
parentheses and read as a unit, since a value returned by ``a + b`` has no address space, but a variable does.

A template's arguments are constants without an address space, and stay unchanged.

To clang, bfloat is also a class. As an operand, a bfloat becomes an object of another class, which combines
unambiguously with every number; in a cell that uses bfloat, ``$settled`` turns the result of ``?:`` back into a bfloat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..text.bracket_tree import Outline, Tree
from ..text.edits import Edit
from ..text.tokens import Token

__all__ = ["conditional_operands"]

_READ = " $either()->*"
_LITERALS = frozenset({"nullptr", "NULL", "true", "false", "INFINITY", "NAN"})
_CLOSING = {")": "(", "]": "[", "}": "{"}
_ENDS = frozenset({":", ";", ",", ")", "]", "}", ""})
_BEFORE_VALUES = frozenset({"=", "(", ",", "{", "return", "?", ":"})  # a brace after these holds values
_OPERATORS = frozenset("+-*/%&|^<>=?")
_VALUES = frozenset({"return", "="})
_OUTSIDE = frozenset({";", "{", "(", "["})  # tokens that no template argument list extends beyond
_HEAD_ENDS = frozenset({"(", "=", ";", "{"})
_NAMED_NEXT = frozenset({"class", "struct", "union", "using"})
_TEMPLATES = frozenset({
    "array", "bool_constant", "conditional_t", "enable_if_t", "integral_constant", "make_filled_simdgroup_matrix",
    "matrix", "packed_vec", "simdgroup_matrix", "template", "vec",
})  # fmt: skip
_OPENS = frozenset({",", ";", "return", "case", "else", "do"})  # tokens that may precede an expression


def conditional_operands(text: Outline) -> Iterator[Edit]:
    """Edit the operands of each ``?:`` whose value is used."""
    # The preprocessor evaluates a macro that an `#if` uses, and does not know the inserted operators.
    preprocessor_words = {
        t.text for d in text.directives if d.name in {"if", "elif"} for t in d.tokens if t.kind == "word"
    }
    has_bfloat = any("bfloat" in word.lower() for word in text.words) or any(
        _is_bfloat(token) for tree in text.trees for token in tree.tokens
    )
    # A header cell may define the author's operators.
    has_operators = "operator" in text.words or any(d.tokens[0].text[:1] == '"' for d in text.directives if d.tokens)
    templates = _template_names(text)
    for tree in text.trees:
        if tree.macro and tree.text(0) in preprocessor_words | {""}:
            continue
        closings = Counter[int]()  # edits at the same place are merged
        for question, colon in _pairs(tree):
            if _is_argument(tree, question, templates):
                continue
            stop = _stop(tree, colon + 1) if has_bfloat or has_operators else -1
            start = _start(tree, question) if has_bfloat and stop > 0 else -1
            if start >= 0:  # the whole ?: becomes an argument, if tokens show where it starts and ends
                first = tree.tokens[start].start
                yield Edit(first, first, "$settled(")
                closings[tree.tokens[stop - 1].end] += 1
            for mark, end in ((question, colon), (colon, stop)):
                if _is_literal(tree, mark + 1):
                    continue
                needs_call = has_operators and end > 0 and _has_operator(tree, mark + 1, end)
                place = tree.tokens[mark].end
                yield Edit(place, place, f"{_READ}(" if needs_call else _READ)
                if needs_call:
                    closings[tree.tokens[end - 1].end] += 1
        yield from (Edit(place, place, ")" * n) for place, n in closings.items())


def _pairs(tree: Tree) -> Iterator[tuple[int, int]]:
    """Yield the indices of each ``?`` and its ``:``."""
    brackets: list[tuple[bool, bool, bool]] = []  # the statement has a value; the bracket holds values; it is round
    waiting: list[tuple[int, int, bool]] = []  # for each ?: its index, its depth, whether its value is used
    is_used = tree.macro
    for i, text in enumerate(tree.texts):
        if text in _CLOSING.values():
            is_list = text != "{" or (is_used and _holds_values(tree, i))
            brackets.append((is_used, is_list, text == "("))
            is_used = is_list
        elif text in _CLOSING:
            is_list = True
            if brackets:
                is_used, is_list, _ = brackets.pop()
            while waiting and waiting[-1][1] > len(brackets):
                waiting.pop()
            if text == "}" and not is_list:
                is_used = tree.macro and not brackets
        elif text == ";":
            is_used = bool(brackets) and brackets[-1][2]  # a semicolon in the head of a for loop
        elif text in _VALUES:
            is_used = True
        elif text == "?":
            waiting.append((i, len(brackets), is_used))
        elif text == ":" and waiting and waiting[-1][1] == len(brackets):
            question, _, is_wanted = waiting.pop()
            if is_wanted and question + 1 < i:  # GNU's `a ?: b` has no operand between
                yield question, i


def _holds_values(tree: Tree, brace: int) -> bool:
    """Return whether a brace in an expression opens a list of values, not the body of a lambda."""
    previous = tree.text(brace - 1)
    follows_type = brace > 0 and (tree.tokens[brace - 1].kind == "word" or previous == ">")
    return previous in _BEFORE_VALUES or (follows_type and previous != "mutable" and tree.text(brace - 2) != "->")


def _has_operator(tree: Tree, start: int, stop: int) -> bool:
    """Return whether an operator may appear between two positions, outside brackets and after the first token."""
    i = tree.skip(start)
    while i < stop:
        if tree.texts[i] in _OPERATORS:
            return True
        i = tree.skip(i)
    return False


def _template_names(text: Outline) -> frozenset[str]:
    """Return the names of the templates that a text declares, and of Metal's own templates."""
    names = set(_TEMPLATES)
    for tree in text.trees:
        for template in tree.templates:
            first = template.closing + 1
            name_index = first + 1 if tree.text(first) in _NAMED_NEXT else tree.find(first, _HEAD_ENDS) - 1
            names.add(tree.text(name_index))
    return frozenset(names)


def _is_argument(tree: Tree, question: int, templates: frozenset[str]) -> bool:
    """Return whether a position is in a list of template arguments; a ``>`` before ``::`` or ``{`` closes a list."""
    i = question - 1
    while i > tree.first and tree.texts[i] not in _OUTSIDE:
        list_end = tree.close(i) if tree.texts[i] == "<" else -1
        if list_end > question and (tree.texts[i - 1] in templates or tree.text(list_end + 1) in {"::", "{"}):
            return True
        opening = tree.open(i)
        i = (opening if opening >= 0 else i) - 1
    return False


def _start(tree: Tree, question: int) -> int:
    """Return the start of the condition; -1 if it is in an operand of another ``?:``, or the start is unclear."""
    i = question - 1
    while i >= tree.first:
        text = tree.texts[i]
        if text in {"?", ":"} or (text == "<" and tree.close(i) > question):
            return -1
        if text in {")", "]", "}"}:
            i = tree.open(i)
            if i < 0 or (text == "}" and tree.text(i - 1) in {")", ";", "{", "}", ""}):
                return -1
        elif text in _CLOSING.values() or text in _OPENS or (text == "=" and not _compares(tree, i)):
            return i + 1
        i -= 1
    return tree.first


def _compares(tree: Tree, i: int) -> bool:
    """Return whether a ``=`` is part of a comparison, since each token of an operator is one character."""
    touching = [tree.texts[k] for k in (i - 1, i - 2) if k >= 0 and tree.tokens[k].end == tree.tokens[k + 1].start]
    is_doubled = tree.text(i + 1) == "=" and tree.tokens[i + 1].start == tree.tokens[i].end
    return is_doubled or (touching[:1] in (["="], ["!"], ["<"], [">"]) and touching[:1] != touching[1:2])


def _stop(tree: Tree, i: int) -> int:
    """Return the token after the last operand, which may be another ``?:``; -1 if its end is unclear."""
    inner = 0
    while i < len(tree.texts):
        text = tree.texts[i]
        inner += (text == "?") - (text == ":")
        if inner < 0 or (text in _ENDS and text != ":"):
            return i
        list_end = tree.close(i) if text == "<" and tree.tokens[i - 1].kind == "word" else -1
        if text in _CLOSING.values() and tree.close(i) < 0:
            return -1
        i = list_end + 1 if tree.text(list_end + 1) in {"(", "{", "::"} and list_end > 0 else tree.skip(i)
    return i if tree.macro else -1


def _is_bfloat(token: Token) -> bool:
    """Return whether a token is a bfloat literal, ``1.0bf``."""
    return token.kind == "number" and token.text[-2:] in {"bf", "BF"} and token.text[:2] not in {"0x", "0X"}


def _is_literal(tree: Tree, operand: int) -> bool:
    """Return whether the operand at `operand` is only a literal: it has no address space and may be a null pointer."""
    if tree.text(operand) in {"-", "+"}:
        operand += 1
    if operand >= len(tree.texts):
        return True
    is_alone = tree.text(operand + 1) in _ENDS and not _is_bfloat(tree.tokens[operand])
    return is_alone and (tree.tokens[operand].kind in {"number", "string"} or tree.texts[operand] in _LITERALS)
