"""Calls of members that a class may overload for const objects in device and in constant memory (MSL 4).

Where an overloaded member is called, a constant object must appear volatile
(`metalnb.msl.rewrite.function_heads.space_overloads`): ``c[1].get()`` becomes ``$within<n>(c[1]).get()``, where n is
the number of the name. ``$within`` returns any other object unchanged, so a call is recognized by its name alone, and
in a template the type may be dependent.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from metalnb.errors import CompileError, Diagnostic

from ..language.versions import DEFAULT, Version
from ..libclang.cursor_children import children_of
from ..libclang.file_offset import file_offset
from ..libclang.parse import Parsed, parse
from ..rewrite.function_heads.space_overloads import CONVERSION, OF_CONSTANT, name_number
from ..text.bracket_tree import Tree, outline
from ..text.edits import Edit
from .rules.syntax_walk import space

if TYPE_CHECKING:
    from ..text.scanned_cell import Cell

__all__ = ["overload_calls"]

_BUILT_IN = frozenset({"POINTER", "CONSTANTARRAY", "INCOMPLETEARRAY", "VARIABLEARRAY", "DEPENDENTSIZEDARRAY"})
_MEMBER = re.compile(r"\s*(?:\.|->)\s*(?:template\s+)?([\w$]+)")
_FUNCTIONS = frozenset({"FUNCTION_DECL", "FUNCTION_TEMPLATE", "CXX_METHOD", "CONVERSION_FUNCTION", "CONSTRUCTOR"})
_CONVERTING = frozenset({
    "BINARY_OPERATOR", "CALL_EXPR", "CSTYLE_CAST_EXPR", "CXX_FUNCTIONAL_CAST_EXPR", "CXX_STATIC_CAST_EXPR",
    "RETURN_STMT", "VAR_DECL",
})  # fmt: skip
_MAYBE_CLASS = frozenset({"DEPENDENT", "AUTO", "LVALUEREFERENCE", "RVALUEREFERENCE", "INVALID"})
_OPERATIONS = frozenset({"ARRAY_SUBSCRIPT_EXPR", "UNARY_OPERATOR", "BINARY_OPERATOR"})


def overload_calls(cell: Cell, headers: Mapping[str, Cell], version: Version = DEFAULT) -> dict[str, list[Edit]]:
    """Return the edits of each text of a cell, by its name.

    Parameters
    ----------
    cell : Cell
    headers : mapping of str to Cell
    version : tuple of int
        The version of the language.

    Raises
    ------
    CompileError
        If a macro's definition calls an overloaded member of a constant object.
    """
    cells = tuple(_loosen_constant_autos(c) for c in (cell, *headers.values()))
    parsed = parse(cells[0], {c.name: c for c in cells[1:]}, version=version, allow_errors=True)
    finder = _Finder(parsed, frozenset().union(*(c.overloaded for c in cells)))
    finder.walk()
    if finder.problems:
        raise CompileError(finder.problems)
    return {c.name: list(_edits(finder.objects.get(c.name, set()))) for c in cells}


def _loosen_constant_autos(cell: Cell) -> Cell:
    """Return a cell whose ``constant auto&`` may refer to device memory: the parser drops invalid initializers.

    Until the calls are edited, all of them return objects in device memory.
    """
    tree = outline(cell.edited.original).program
    words = (i for i, text in enumerate(tree.texts) if text == "constant")
    autos = (i for i in words if "auto" in {*tree.texts[max(0, i - 1) : i + 2], *_after_const(tree, i + 1)})
    edits = [Edit(tree.tokens[i].start, tree.tokens[i].end, "const") for i in autos]
    return dataclasses.replace(cell, edited=cell.edited.add_edits(edits))


def _after_const(tree: Tree, i: int) -> list[str]:
    return tree.texts[i + 1 : i + 2] if tree.text(i) == "const" else []


def _edits(objects: set[tuple[int, int, str]]) -> Iterator[Edit]:
    """Wrap objects in calls, outermost first if several begin at the same position."""
    openings: dict[int, str] = {}
    closings = Counter[int]()
    for start, end, call in sorted(objects, key=lambda span: (span[0], -span[1])):
        openings[start] = openings.get(start, "") + call
        closings[end] += call[-1] == "("
    yield from (Edit(at, at, calls) for at, calls in openings.items())
    # The comment distinguishes this parenthesis from another pass's at the same position: identical edits are merged.
    yield from (Edit(at, at, "/**/" + ")" * n) for at, n in closings.items() if n)


class _Finder:
    """Finds the objects whose members are called."""

    def __init__(self, parsed: Parsed, names: frozenset[str]) -> None:
        self.parsed = parsed
        self.names = names
        self.objects: dict[str, set[tuple[int, int, str]]] = {}
        self.problems: list[Diagnostic] = []
        cells = (parsed.cell, *parsed.headers.values())
        self._macros = {tree.text(0) for c in cells for tree in outline(c.edited.original).macros}
        self._symbols = {name.removeprefix("operator") for name in names if name.startswith("operator")}

    def walk(self) -> None:
        root = self.parsed.unit.cursor
        pending = [(c, c) for c in children_of(root) if self.parsed.owner(c.location) is not None]
        while pending:  # a cursor, and its enclosing function
            cursor, function = pending.pop()
            children = children_of(cursor)
            kind = cursor.kind.name
            function = cursor if kind in _FUNCTIONS else function
            pending += ((child, function) for child in children)
            if kind == "MEMBER_REF_EXPR":
                self._member(cursor, children, function)
            elif kind == "CALL_EXPR":
                self._call(cursor, children)
            elif kind in _OPERATIONS and children and self._is_open(children[0]):
                self._operation(cursor, children)
            if CONVERSION in self.names and kind in _CONVERTING and children and children[-1].kind.is_expression():
                self._conversion(cursor, children, function)

    def _member(self, cursor: Any, children: list[Any], function: Any) -> None:
        """Handle ``object.name``, or an implicit conversion."""
        name = cursor.spelling
        base = next((c for c in children if c.kind.is_expression()), None)
        if base is None:
            if name in self.names and OF_CONSTANT in self._text(function).partition("{")[0]:
                is_visible = self._text(cursor).strip().startswith(name)
                self._note(cursor, name, "$within_at<{}u>(this)->", is_visible=is_visible, empty=True)
            return
        if name.startswith(CONVERSION) and name[len(CONVERSION) :][:1].isalpha():
            name = CONVERSION
        following = self._text_after(base)
        match = _MEMBER.match(following)
        name = name or (match[1] if match else "")
        if name in self.names:
            arrow = name != CONVERSION and following.startswith("->")
            is_visible = (
                self._is_written(base) if name == CONVERSION else match is not None and name.startswith(match[1])
            )
            self._note(base, name, "$within_at<{}u>(" if arrow else "$within<{}u>(", is_visible=is_visible)

    def _conversion(self, cursor: Any, children: list[Any], function: Any) -> None:
        """Handle a dependent expression that is converted to a type other than the author's classes."""
        if cursor.kind.name == "CALL_EXPR":  # int(x), where the type precedes the operand; or x(…), or f<int>()
            if len(children) > 1 or children[0].extent.start.offset <= cursor.extent.start.offset:
                return
            target = cursor.type
        elif cursor.kind.name == "BINARY_OPERATOR":
            if self._text_between_operands(*children[:2]) != "=":
                return
            target = children[0].type
        else:
            target = function.result_type if cursor.kind.name == "RETURN_STMT" else cursor.type
        declaration = target.get_canonical().get_declaration()
        may_be_class = target.kind.name in _MAYBE_CLASS or self.parsed.owner(declaration.location) is not None
        if not may_be_class and children[-1].type.kind.name in {"DEPENDENT", "UNEXPOSED"}:
            self._note(children[-1], CONVERSION, "$within<{}u>(", is_visible=self._is_written(children[-1]))

    def _call(self, cursor: Any, children: list[Any]) -> None:
        """Handle the call of an operator, or of a dependent expression."""
        if cursor.spelling in self.names and cursor.spelling.startswith("operator"):
            argument = next(iter(cursor.get_arguments()), None)
            if argument is not None:
                symbol = cursor.spelling.removeprefix("operator")
                is_visible = self._text_after(argument).startswith(symbol[:1]) or self._text(cursor).startswith(symbol)
                self._note(argument, cursor.spelling, "$within<{}u>(", is_visible=is_visible)
        elif "operator()" in self.names and children and children[0].kind.name != "MEMBER_REF_EXPR":
            callee = children[0].referenced
            variable = callee is None or callee.kind.name in {"VAR_DECL", "PARM_DECL", "FIELD_DECL"}
            if variable and self._is_open(children[0]):
                self._note(
                    children[0], "operator()", "$within<{}u>(", is_visible=self._text_after(children[0]).startswith("(")
                )

    def _operation(self, cursor: Any, children: list[Any]) -> None:
        """Handle an operator with dependent operands."""
        first = children[0]
        if cursor.kind.name == "ARRAY_SUBSCRIPT_EXPR":
            symbol = "[]"
        elif cursor.kind.name == "UNARY_OPERATOR":
            symbol = self._text_between(cursor.extent.start, first.extent.start)
        else:
            symbol = self._text_between_operands(*children[:2])
        if symbol in self._symbols:
            self._note(first, f"operator{symbol}", "$within<{}u>(", is_visible=self._is_written(first))

    def _is_open(self, cursor: Any) -> bool:
        return cursor.kind.is_expression() and cursor.type.kind.name not in _BUILT_IN

    def _text_between(self, start: Any, end: Any | None) -> str:
        """Return the text between two locations, or after one, without surrounding spaces."""
        cell = self.parsed.owner(start)
        if cell is None:
            return ""
        offset = start.offset
        return (
            cell.edited.text.encode()[offset : offset + 256 if end is None else end.offset]
            .decode(errors="replace")
            .strip()
        )

    def _text(self, cursor: Any) -> str:
        return self._text_between(cursor.extent.start, cursor.extent.end)

    def _text_between_operands(self, first: Any, second: Any) -> str:
        return self._text_between(first.extent.end, second.extent.start)

    def _text_after(self, cursor: Any) -> str:
        return self._text_between(cursor.extent.end, None)

    def _is_written(self, cursor: Any) -> bool:
        """Return whether the author wrote an expression, so that it was not expanded from a macro."""
        word = re.match(r"[\w$]+", self._text(cursor))
        return word is None or word[0] not in self._macros

    def _note(self, cursor: Any, name: str, call: str, *, is_visible: bool, empty: bool = False) -> None:
        """Record an object by its range in the author's text; `is_visible` means that its member follows it."""
        while cursor.kind.name == "PAREN_EXPR":
            cursor = next(iter(children_of(cursor)))
        cell = self.parsed.owner(cursor.extent.start)
        start, end = file_offset(cursor.extent.start), file_offset(cursor.extent.end)
        if cell is None:
            return
        is_macro_argument = start != cursor.extent.start.offset  # the object is an argument of a macro
        if not (is_visible or is_macro_argument) or start >= end:
            if _is_constant(cursor):
                self.problems.append(self.parsed.diagnostic(
                    cursor.extent.start, f"a macro calls '{name.strip()}' on a constant object, and the class "
                    "overloads it for device objects", "write the call out, or give the two members different names",
                ))  # fmt: skip
            return
        text = cell.edited.text.encode()
        first, last = (cell.edited.original_offset(len(text[:at].decode())) for at in (start, end))
        if first < last:  # the author's text, not a pass's insertion
            entry = first, first if empty else last, call.format(name_number(name))
            self.objects.setdefault(cell.name, set()).add(entry)


def _is_constant(cursor: Any) -> bool:
    """Return whether an object was declared in constant memory."""
    while cursor.kind.name == "UNEXPOSED_EXPR":
        inner = next(iter(children_of(cursor)), None)
        if inner is None:
            break
        cursor = inner
    kind = cursor.type.get_pointee() if cursor.type.kind.name == "POINTER" else cursor.type
    return space(kind) == "constant"
