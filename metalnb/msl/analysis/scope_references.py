"""Find where a cell uses its inputs at program scope, and which functions reach them (MSL 5.9)."""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from metalnb.dtypes import spell
from metalnb.errors import Diagnostic

from ..language.versions import Version, version_text
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
    """A name in an expression, its enclosing function if it has one, and why it cannot be edited, if so."""

    cursor: Any
    name: str
    token: tuple[str, int] | None  # the text's name and the token's index; None in a macro's definition
    function: Any
    obstacle: str
    input: int = -1


class ScopeReferences:
    """The inputs at program scope, and everything that refers to them.

    Attributes
    ----------
    inputs : list of ScopeInput
    types : list of str
        The inputs' types, as clang spells them.
    uses : mapping of str to list of (int, int, int)
        Each use in a text: the input's number, and the use's first and last token.
    calls : mapping of str to list of int
        The opening parenthesis of each call in a text that must pass inputs on.
    heads : mapping of str to list of (int, str)
        The functions in a text that reach an input: the opening parenthesis and the name of each.
    reached : mapping of str to set of int
        The numbers of the inputs that a function reaches, by the function's name.
    kernels, in_macros : set
        The names of kernels, and the inputs that macros name.
    problems : list of Diagnostic
    """

    def __init__(self, cell: Cell, headers: Mapping[str, Cell], version: Version) -> None:
        cells = [_declare_inputs(c) for c in (cell, *headers.values())]
        self.parsed = parse(cells[0], {c.name: c for c in cells[1:]}, version=version, allow_errors=True)
        outlines = {c.name: outline(c.edited.original) for c in cells}
        self.trees: dict[str, Tree] = {name: outline.program for name, outline in outlines.items()}
        self.macros: dict[str, tuple[Tree, ...]] = {name: outline.macros for name, outline in outlines.items()}
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
        self._find_edits()

    def _problem(self, cursor: Any, message: str, hint: str = "") -> None:
        self.problems.append(self.parsed.diagnostic(cursor.location, message, hint))

    def _walk(self, version: Version) -> None:
        """Collect the declarations of inputs and functions, and the names in expressions."""
        root = self.parsed.unit.cursor
        pending = [(c, None, "") for c in children_of(root) if self.parsed.owner(c.location) is not None][::-1]
        while pending:
            cursor, function, obstacle = pending.pop()
            kind = cursor.kind.name
            if kind in _FUNCTIONS:
                function, obstacle = cursor, ""
                self._functions.append(cursor)
            elif kind == "VAR_DECL" and function is None:
                self._input(cursor, version)
            elif kind == "LAMBDA_EXPR":
                obstacle = obstacle or self._lambda(cursor)
            elif kind == "PARM_DECL":
                obstacle = obstacle or "a default argument"
            elif kind in _NAMES:
                self._references.append(self._reference(cursor, function, obstacle))
            pending += [(c, function, obstacle) for c in children_of(cursor)][::-1]

    def _input(self, cursor: Any, version: Version) -> None:
        """Record a variable if it is an input."""
        cell = self.parsed.owner(cursor.location)
        token = self._token(cursor.location)
        if cell is None or token is None:
            return
        start = self.trees[cell.name].tokens[token[1]].start
        scope_input = next((i for i in cell.scope_inputs if i.start <= start < i.end), None)
        if scope_input is None:
            return
        self._variables[cursor.hash] = len(self.inputs)
        self.inputs.append(scope_input)
        kind = _strip_qualifiers(cursor.type.get_canonical().spelling)
        self.types.append(kind)
        self.problems += input_type(self.parsed, cursor, scope_input.attribute, spell(kind), kind)
        if version < SINCE:
            self._problem(cursor, f"input '{scope_input.name}' at program scope needs MSL {version_text(SINCE)}",
                          "declare it as a parameter of the kernel (MSL 5.9)")  # fmt: skip

    def _lambda(self, cursor: Any) -> str:
        """Return a lambda's name for a message if it has no capture default; otherwise return ""."""
        token = self._token(cursor.extent.start)
        captures = self.trees[token[0]].text(token[1] + 1) if token else ""
        return "" if captures in {"&", "="} else "a lambda that does not capture [=] or [&]"

    def _reference(self, cursor: Any, function: Any, obstacle: str) -> _Reference:
        target = cursor.referenced
        is_dependent = cursor.kind.name == "MEMBER_REF_EXPR" and not cursor.spelling
        token = self._dependent_member(cursor) if is_dependent else self._token(cursor.location)
        word = self.trees[token[0]].texts[token[1]] if token else ""
        name = own_name(cursor.spelling or (target.spelling if target is not None else "") or word)
        number = self._variables.get(target.hash, -1) if target is not None else -1
        return _Reference(cursor, name, token if word == name else None, function, obstacle, number)

    def _dependent_member(self, cursor: Any) -> tuple[str, int] | None:
        """Return the token of a dependent member's name, for which clang has no cursor."""
        base = next((c for c in children_of(cursor) if c.kind.is_expression()), None)
        position = self._original(base.extent.end) if base is not None else None
        if position is None:
            return None
        tree = self.trees[position[0]]
        i = bisect_left(tree.tokens, position[1], key=lambda t: t.start)
        if tree.text(i) not in {".", "->"}:
            return None
        return position[0], i + 1 + (tree.text(i + 1) == "template")

    def _reach(self) -> None:
        """Find which functions reach which inputs."""
        own_functions = {own_name(f.spelling) for f in self._functions}
        self.kernels = {own_name(f.spelling) for f in self._functions if "kernel" in attributes_of(f)}
        calls: dict[str, set[str]] = {}
        for reference in self._references:
            if reference.function is None:
                continue
            caller = own_name(reference.function.spelling)
            if reference.input >= 0:
                self.reached.setdefault(caller, set()).add(reference.input)
            elif reference.name in own_functions and not _is_variable(reference.cursor):
                calls.setdefault(reference.name, set()).add(caller)
        pending = [*self.reached]
        while pending:
            name = pending.pop()
            for caller in calls.get(name, ()):
                callers_inputs = self.reached.setdefault(caller, set())
                if not self.reached[name] <= callers_inputs:
                    callers_inputs |= self.reached[name]
                    pending.append(caller)

    def _find_edits(self) -> None:
        """Find the positions that must be edited, and those that cannot be."""
        for function in self._functions:
            if own_name(function.spelling) in self.reached:
                self._head(function)
        for reference in self._references:
            if reference.input >= 0:
                self._use(reference)
            elif reference.name in self.reached and not _is_variable(reference.cursor):
                self._call(reference)
        macro_names = {self.inputs[i].name for i in self.in_macros}
        for reference in self._references:
            is_in_macro = reference.token is None and reference.name in macro_names
            if reference.input < 0 and is_in_macro and _is_variable(reference.cursor):
                message = f"a macro names '{reference.name}', a variable here and an input at program scope elsewhere"
                self._problem(reference.cursor, message, "rename one of them")

    def _head(self, function: Any) -> None:
        name = own_name(function.spelling)
        names = ", ".join(f"'{self.inputs[i].name}'" for i in sorted(self.reached[name]))
        obstacle = _SPECIAL.get(function.kind.name) or ("an operator" if name.startswith("operator") else "")
        token = self._token(function.location)
        opening = self._opening(token) if token and self.trees[token[0]].texts[token[1]] == name else -1
        if obstacle or token is None or opening < 0:
            target = obstacle or f"'{name}', whose head a macro makes"
            self._refuse(function, names, target)
        else:
            self.heads.setdefault(token[0], []).append((opening, name))

    def _use(self, reference: _Reference) -> None:
        name = f"'{self.inputs[reference.input].name}'"
        if reference.obstacle or reference.function is None:
            self._refuse(reference.cursor, name, reference.obstacle or "code outside all functions")
        elif reference.token is None:
            self.in_macros.add(reference.input)
        else:
            text, last = reference.token
            tree, first = self.trees[text], last
            while tree.text(first - 1) == "::":
                first -= 1 + (tree.tokens[first - 2].kind == "word")
            self.uses.setdefault(text, []).append((reference.input, first, last))

    def _call(self, reference: _Reference) -> None:
        names = ", ".join(f"'{self.inputs[i].name}'" for i in sorted(self.reached[reference.name]))
        are_own = [
            c is None or self.parsed.owner(c.location) is not None for c in _possible_declarations(reference.cursor)
        ]
        if not any(are_own):
            return
        opening = self._opening(reference.token) if reference.token else -1
        if reference.obstacle or reference.function is None:
            target = reference.obstacle or "code outside all functions"
            self._refuse(reference.cursor, names, f"{target}, through '{reference.name}'")
        elif reference.token is None:
            self._refuse(reference.cursor, names, f"'{reference.name}', which a macro calls")
        elif not all(are_own):
            self._refuse(reference.cursor, names, f"'{reference.name}', which is a function of Metal's too")
        elif opening < 0:
            self._refuse(reference.cursor, names, f"'{reference.name}', which is not called here")
        else:
            self.calls.setdefault(reference.token[0], []).append(opening)

    def _refuse(self, cursor: Any, names: str, target: str) -> None:
        self._problem(cursor, f"metalnb cannot pass {names}, an input at program scope, to {target}",
                      "pass it as an argument (MSL 5.9)")  # fmt: skip

    def _opening(self, token: tuple[str, int]) -> int:
        """Return the opening parenthesis after a name and its template arguments, or -1."""
        tree, i = self.trees[token[0]], token[1] + 1
        if tree.text(i) == "<" and tree.close(i) >= 0:
            i = tree.close(i) + 1
        return i if tree.text(i) == "(" and tree.close(i) >= 0 else -1

    def _token(self, location: Any) -> tuple[str, int] | None:
        """Return the token that begins at a location; a macro's argument is located where the author wrote it."""
        position = self._original(location)
        i = self._starts[position[0]].get(position[1]) if position else None
        return None if position is None or i is None else (position[0], i)

    def _original(self, location: Any) -> tuple[str, int] | None:
        """Return the name of the author's text that contains a location, and the offset in it."""
        cell = self.parsed.owner(location)
        if cell is None:
            return None
        text_before = cell.edited.text.encode()[: file_offset(location)].decode()
        return cell.name, cell.edited.original_offset(len(text_before))


def _declare_inputs(cell: Cell) -> Cell:
    """Return the cell with its inputs declared as plain variables, for the parser."""
    edits = (Edit(i.start, i.end, f"extern constant {i.type} {i.name}") for i in cell.scope_inputs)
    return replace(cell, edited=cell.edited.replace_edits(edits))


def _is_variable(cursor: Any) -> bool:
    target = cursor.referenced
    return target is not None and target.kind.name in _VARIABLES


def _possible_declarations(cursor: Any) -> list[Any]:
    """Return the declarations that a name may refer to; a name that is not resolved yet has None."""
    from clang import cindex

    library = cindex.conf.lib
    target = cursor.referenced
    overloads = next((c for c in (target, *children_of(cursor)) if c is not None and c.kind.name == _OVERLOADED), None)
    if overloads is None:
        return [target]
    count = library.clang_getNumOverloadedDecls(overloads)
    return [library.clang_getOverloadedDecl(overloads, ctypes.c_uint(i)) for i in range(count)]


def _strip_qualifiers(spelling: str) -> str:
    return " ".join(word for word in spelling.split() if word not in {"const", "__constant", "__global"})
