"""Find where a cell uses its inputs at program scope, and which functions reach them (MSL 5.9)."""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from metalnb.dtypes import spell
from metalnb.errors import Diagnostic

from ..language.versions import Version, spelled
from ..libclang.cursor_children import children_of
from ..libclang.file_offset import file_offset
from ..libclang.parse import parse
from ..text.bracket_tree import Tree, outline
from ..text.edits import Edit
from .kernel_names import attributes_of, own_name
from .rules.entry_points import input_type

if TYPE_CHECKING:
    from ..text.scanned_cell import Cell, ScopeInput

__all__ = ["ScopeReferences"]

SINCE: Version = (3, 1)
_PLAIN = frozenset({"FUNCTION_DECL", "FUNCTION_TEMPLATE", "CXX_METHOD"})
_SPECIAL = {"CONSTRUCTOR": "a constructor", "DESTRUCTOR": "a destructor", "CONVERSION_FUNCTION": "a conversion"}
_FUNCTIONS = _PLAIN | _SPECIAL.keys()
_OVERLOADED = "OVERLOADED_DECL_REF"
_NAMES = frozenset({"DECL_REF_EXPR", "MEMBER_REF_EXPR"})
_VARIABLES = frozenset({"VAR_DECL", "PARM_DECL", "FIELD_DECL", "NON_TYPE_TEMPLATE_PARAMETER", "ENUM_CONSTANT_DECL"})


@dataclass(frozen=True, slots=True)
class _Reference:
    """A name in an expression, with its enclosing function, if any, and the reason why it cannot be edited, if any."""

    cursor: Any
    name: str
    token: tuple[str, int] | None  # the text's name and the token's index; None in a macro's definition
    function: Any
    around: str
    input: int = -1


class ScopeReferences:
    """The inputs at program scope, and everything that refers to them.

    Attributes
    ----------
    inputs : list of ScopeInput
    types : list of str
        As clang spells them.
    uses : mapping of str to list of (int, int, int)
        By text: the number of an input, and the first and last token of a use of it.
    calls : mapping of str to list of int
        By text: the opening parenthesis of each call that must pass inputs on.
    heads : mapping of str to list of (int, str)
        By text: the opening parentheses of functions that reach an input, and their names.
    reached : mapping of str to set of int
        By a function's name, the numbers of the inputs.
    kernels, in_macros : set
        The names of kernels; the inputs that macros name.
    problems : list of Diagnostic
    """

    def __init__(self, cell: Cell, headers: Mapping[str, Cell], version: Version) -> None:
        cells = [_declared(c) for c in (cell, *headers.values())]
        self.parsed = parse(cells[0], {c.name: c for c in cells[1:]}, version=version, wrong=True)
        outlines = {c.name: outline(c.edited.original) for c in cells}
        self.trees: dict[str, Tree] = {name: each.program for name, each in outlines.items()}
        self.macros: dict[str, tuple[Tree, ...]] = {name: each.macros for name, each in outlines.items()}
        self._starts = {name: {t.start: i for i, t in enumerate(tree.tokens)} for name, tree in self.trees.items()}
        self.inputs: list[ScopeInput] = []
        self.types: list[str] = []
        self.uses: dict[str, list[tuple[int, int, int]]] = {}
        self.calls: dict[str, list[int]] = {}
        self.heads: dict[str, list[tuple[int, str]]] = {}
        self.reached: dict[str, set[int]] = {}
        self.kernels: set[str] = set()
        self.in_macros: set[int] = set()
        self.problems: list[Diagnostic] = []
        self._variables: dict[int, int] = {}
        self._functions: list[Any] = []
        self._references: list[_Reference] = []
        self._walk(version)
        self._reach()
        self._place()

    def _problem(self, cursor: Any, message: str, hint: str = "") -> None:
        self.problems.append(self.parsed.diagnostic(cursor.location, message, hint))

    def _walk(self, version: Version) -> None:
        """Collect the declarations of inputs and functions, and the names in expressions."""
        root = self.parsed.unit.cursor
        ahead = [(c, None, "") for c in children_of(root) if self.parsed.owner(c.location) is not None][::-1]
        while ahead:
            cursor, function, around = ahead.pop()
            kind = cursor.kind.name
            if kind in _FUNCTIONS:
                function, around = cursor, ""
                self._functions.append(cursor)
            elif kind == "VAR_DECL" and function is None:
                self._input(cursor, version)
            elif kind == "LAMBDA_EXPR":
                around = around or self._lambda(cursor)
            elif kind == "PARM_DECL":
                around = around or "a default argument"
            elif kind in _NAMES:
                self._references.append(self._reference(cursor, function, around))
            ahead += [(c, function, around) for c in children_of(cursor)][::-1]

    def _input(self, cursor: Any, version: Version) -> None:
        """Record a variable if it is an input."""
        cell = self.parsed.owner(cursor.location)
        token = self._token(cursor.location)
        if cell is None or token is None:
            return
        start = self.trees[cell.name].tokens[token[1]].start
        each = next((i for i in cell.scope_inputs if i.start <= start < i.end), None)
        if each is None:
            return
        self._variables[cursor.hash] = len(self.inputs)
        self.inputs.append(each)
        kind = _unqualified(cursor.type.get_canonical().spelling)
        self.types.append(kind)
        self.problems += input_type(self.parsed, cursor, each.attribute, spell(kind), kind)
        if version < SINCE:
            self._problem(cursor, f"input '{each.name}' at program scope needs MSL {spelled(SINCE)}",
                          "declare it as a parameter of the kernel (MSL 5.9)")  # fmt: skip

    def _lambda(self, cursor: Any) -> str:
        """Name a lambda without a capture default for a message; return "" for one that has it."""
        token = self._token(cursor.extent.start)
        captures = self.trees[token[0]].text(token[1] + 1) if token else ""
        return "" if captures in {"&", "="} else "a lambda that does not capture [=] or [&]"

    def _reference(self, cursor: Any, function: Any, around: str) -> _Reference:
        known = cursor.referenced
        open_ended = cursor.kind.name == "MEMBER_REF_EXPR" and not cursor.spelling
        token = self._asked(cursor) if open_ended else self._token(cursor.location)
        written = self.trees[token[0]].texts[token[1]] if token else ""
        name = own_name(cursor.spelling or (known.spelling if known is not None else "") or written)
        number = self._variables.get(known.hash, -1) if known is not None else -1
        return _Reference(cursor, name, token if written == name else None, function, around, number)

    def _asked(self, cursor: Any) -> tuple[str, int] | None:
        """Return the token of a dependent member's name, for which clang has no cursor."""
        base = next((c for c in children_of(cursor) if c.kind.is_expression()), None)
        at = self._original(base.extent.end) if base is not None else None
        if at is None:
            return None
        tree = self.trees[at[0]]
        i = bisect_left(tree.tokens, at[1], key=lambda t: t.start)
        if tree.text(i) not in {".", "->"}:
            return None
        return at[0], i + 1 + (tree.text(i + 1) == "template")

    def _reach(self) -> None:
        """Find which functions reach which inputs."""
        own = {own_name(f.spelling) for f in self._functions}
        self.kernels = {own_name(f.spelling) for f in self._functions if "kernel" in attributes_of(f)}
        calls: dict[str, set[str]] = {}
        for each in self._references:
            if each.function is None:
                continue
            caller = own_name(each.function.spelling)
            if each.input >= 0:
                self.reached.setdefault(caller, set()).add(each.input)
            elif each.name in own and not _is_variable(each.cursor):
                calls.setdefault(each.name, set()).add(caller)
        ahead = [*self.reached]
        while ahead:
            name = ahead.pop()
            for caller in calls.get(name, ()):
                before = self.reached.setdefault(caller, set())
                if not self.reached[name] <= before:
                    before |= self.reached[name]
                    ahead.append(caller)

    def _place(self) -> None:
        """Find the positions that must be edited, or cannot be."""
        for function in self._functions:
            if own_name(function.spelling) in self.reached:
                self._head(function)
        for each in self._references:
            if each.input >= 0:
                self._use(each)
            elif each.name in self.reached and not _is_variable(each.cursor):
                self._call(each)
        named = {self.inputs[i].name for i in self.in_macros}
        for each in self._references:
            if each.input < 0 and each.token is None and each.name in named and _is_variable(each.cursor):
                self._problem(each.cursor, f"a macro names '{each.name}', which is a variable here and an input "
                              "at program scope elsewhere", "rename one of them")  # fmt: skip

    def _head(self, function: Any) -> None:
        name = own_name(function.spelling)
        names = ", ".join(f"'{self.inputs[i].name}'" for i in sorted(self.reached[name]))
        what = _SPECIAL.get(function.kind.name) or ("an operator" if name.startswith("operator") else "")
        token = self._token(function.location)
        opening = self._opening(token) if token and self.trees[token[0]].texts[token[1]] == name else -1
        if what or token is None or opening < 0:
            where = what or f"'{name}', whose head a macro makes"
            self._refuse(function, names, where)
        else:
            self.heads.setdefault(token[0], []).append((opening, name))

    def _use(self, each: _Reference) -> None:
        name = f"'{self.inputs[each.input].name}'"
        if each.around or each.function is None:
            self._refuse(each.cursor, name, each.around or "code outside all functions")
        elif each.token is None:
            self.in_macros.add(each.input)
        else:
            text, last = each.token
            tree, first = self.trees[text], last
            while tree.text(first - 1) == "::":
                first -= 1 + (tree.tokens[first - 2].kind == "word")
            self.uses.setdefault(text, []).append((each.input, first, last))

    def _call(self, each: _Reference) -> None:
        names = ", ".join(f"'{self.inputs[i].name}'" for i in sorted(self.reached[each.name]))
        own = [c is None or self.parsed.owner(c.location) is not None for c in _meant(each.cursor)]
        if not any(own):
            return
        opening = self._opening(each.token) if each.token else -1
        if each.around or each.function is None:
            where = each.around or "code outside all functions"
            self._refuse(each.cursor, names, f"{where}, through '{each.name}'")
        elif each.token is None:
            self._refuse(each.cursor, names, f"'{each.name}', which a macro calls")
        elif not all(own):
            self._refuse(each.cursor, names, f"'{each.name}', which is a function of Metal's too")
        elif opening < 0:
            self._refuse(each.cursor, names, f"'{each.name}', which is not called here")
        else:
            self.calls.setdefault(each.token[0], []).append(opening)

    def _refuse(self, cursor: Any, names: str, where: str) -> None:
        self._problem(cursor, f"metalnb cannot hand {names}, an input at program scope, to {where}",
                      "pass it as an argument (MSL 5.9)")  # fmt: skip

    def _opening(self, token: tuple[str, int]) -> int:
        """Return the opening parenthesis after a name and its template arguments, or -1."""
        tree, i = self.trees[token[0]], token[1] + 1
        if tree.text(i) == "<" and tree.close(i) >= 0:
            i = tree.close(i) + 1
        return i if tree.text(i) == "(" and tree.close(i) >= 0 else -1

    def _token(self, location: Any) -> tuple[str, int] | None:
        """Return the token that begins at a location; for a macro's argument, where the argument is written."""
        at = self._original(location)
        i = self._starts[at[0]].get(at[1]) if at else None
        return None if at is None or i is None else (at[0], i)

    def _original(self, location: Any) -> tuple[str, int] | None:
        """Return the name of the author's text that contains a location, and the offset in it."""
        cell = self.parsed.owner(location)
        if cell is None:
            return None
        before = cell.edited.text.encode()[: file_offset(location)].decode()
        return cell.name, cell.edited.original_offset(len(before))


def _declared(cell: Cell) -> Cell:
    """Return the cell with its inputs declared as plain variables, for the parser."""
    edits = (Edit(i.start, i.end, f"extern constant {i.type} {i.name}") for i in cell.scope_inputs)
    return replace(cell, edited=cell.edited.exchanged(edits))


def _is_variable(cursor: Any) -> bool:
    known = cursor.referenced
    return known is not None and known.kind.name in _VARIABLES


def _meant(cursor: Any) -> list[Any]:
    """Return the declarations that a name may refer to; None for one that is not resolved yet."""
    from clang import cindex

    library = cindex.conf.lib
    known = cursor.referenced
    among = next((c for c in (known, *children_of(cursor)) if c is not None and c.kind.name == _OVERLOADED), None)
    if among is None:
        return [known]
    count = library.clang_getNumOverloadedDecls(among)
    return [library.clang_getOverloadedDecl(among, ctypes.c_uint(i)) for i in range(count)]


def _unqualified(spelling: str) -> str:
    return " ".join(word for word in spelling.split() if word not in {"const", "__constant", "__global"})
