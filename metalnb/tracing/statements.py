"""A cell with a call before each statement, which tells where the thread stands and which variables it sees.

The text that clang is given is edited, at the extents that libclang gives, so that templates, lambdas and helpers need
nothing of their own: ``$step`` (engine/native/steps.h) is a template, which clang fills in with the types. No line moves.
What a macro writes is one statement.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from metalnb.msl.libclang.parse import Parsed
from metalnb.msl.text.bracket_tree import Tree, outline
from metalnb.msl.text.edits import Edit, EditedText

__all__ = ["Marked", "Site", "StructFields", "marked", "structs"]

_FUNCTIONS = frozenset({"FUNCTION_DECL", "FUNCTION_TEMPLATE", "CXX_METHOD", "CONVERSION_FUNCTION"})
_HEADED = {"IF_STMT": "if", "FOR_STMT": "for", "WHILE_STMT": "while", "SWITCH_STMT": "switch", "CXX_FOR_RANGE_STMT": "for"}
_NESTED = frozenset({"NAMESPACE", "LINKAGE_SPEC", "UNEXPOSED_DECL", "STRUCT_DECL", "CLASS_DECL", "CLASS_TEMPLATE"})


@dataclass(frozen=True, slots=True)
class Site:
    """A place before which the kernel tells where it stands.

    Attributes
    ----------
    line, column : int
        In the author's text, from 1.
    width : int
        How many characters of that line it takes; of a statement with a body, its head.
    order : int
        Its place among all others of the text.
    kind : {"statement", "loop", "again", "end"}
        ``loop``: a loop's condition, with which a turn begins; ``again``: one at a turn's end, of a ``do`` loop; ``end``:
        a function's closing brace.
    names : tuple of str
        The variables in scope, the outermost first.
    loops : tuple of int
        The loops around it, as the order of each, the outermost first.
    function : str
    """

    line: int
    column: int
    width: int
    order: int
    kind: str
    names: tuple[str, ...]
    loops: tuple[int, ...]
    function: str


@dataclass(frozen=True, slots=True)
class Marked:
    """A text with its calls, and the sites that they name by number."""

    text: str
    sites: tuple[Site, ...]


Scope = dict[str, None]


def marked(parsed: Parsed, *, nested: bool = True) -> Marked:
    """Put a call before each statement of a cell's functions.

    Parameters
    ----------
    parsed : Parsed
    nested : bool, optional
        Whether the bodies of lambdas too.
    """
    writer = _Writer(parsed, nested=nested)
    for function in _functions(parsed, parsed.unit.cursor):
        writer.function(function)
    return Marked(EditedText(writer.text, writer.edits()).text, tuple(writer.sites))


def _functions(parsed: Parsed, cursor: Any) -> Iterator[Any]:
    for child in cursor.get_children():
        if parsed.owner(child.location) is not parsed.cell:
            continue
        kind = child.kind.name
        if kind in _FUNCTIONS and child.is_definition():
            yield child
        elif kind in _NESTED:
            yield from _functions(parsed, child)


class _Writer:
    def __init__(self, parsed: Parsed, *, nested: bool) -> None:
        self.parsed = parsed
        self.cell = parsed.cell
        self.text = parsed.cell.edited.text
        self.nested = nested
        self.sites: list[Site] = []
        self._tree: Tree = outline(self.text).program
        self._starts = [t.start for t in self._tree.tokens]
        self._data = self.text.encode()
        self._plain = len(self._data) == len(self.text)
        self._before: dict[int, list[str]] = {}
        self._after: dict[int, list[str]] = {}
        self._used: set[int] = set()
        self._function = ""
        self._loops: tuple[int, ...] = ()

    def edits(self) -> list[Edit]:
        """Return what was inserted: at one place, first what closes, then what opens."""
        places = sorted({*self._before, *self._after})
        return [Edit(p, p, "".join([*self._after.get(p, []), *self._before.get(p, [])])) for p in places]

    # ---- Places.

    def offset(self, at: int) -> int:
        """Return an offset in characters from one in bytes."""
        return at if self._plain else len(self._data[:at].decode(errors="ignore"))

    def token(self, offset: int) -> int:
        """Return the token that begins at an offset; -1 when none does."""
        i = bisect_right(self._starts, offset) - 1
        return i if i >= 0 and self._starts[i] == offset else -1

    def start(self, cursor: Any) -> int:
        return self.offset(cursor.extent.start.offset)

    def end(self, cursor: Any) -> int:
        """Return where a statement ends, its semicolon included."""
        kind = cursor.kind.name
        at = self.offset(cursor.extent.end.offset)
        if kind == "COMPOUND_STMT":
            return at
        if kind in _HEADED or kind in {"CASE_STMT", "DEFAULT_STMT", "LABEL_STMT"}:
            last = list(cursor.get_children())
            return self.end(last[-1]) if last else at
        found = _SEMICOLON.match(self.text, at)
        return found.end() if found else at

    def head(self, cursor: Any) -> int:
        """Return where a statement ends, or its head, when it has a body."""
        if cursor.kind.name not in _HEADED:
            return self.end(cursor)
        i = self.token(self.start(cursor)) + 1
        close = self._tree.close(i + (self._tree.text(i) == "constexpr"))
        return self._tree.tokens[close].end if close >= 0 else self.end(cursor)

    def site(self, offset: int, kind: str, scope: Mapping[str, None], end: int) -> str:
        """Make a site; return the call that names it."""
        line = self.text.count("\n", 0, offset) + 1
        column = offset - (self.text.rfind("\n", 0, offset) + 1) + 1
        names = tuple(scope)
        stop = self.text.find("\n", offset)
        stop = min(end, stop if stop >= 0 else len(self.text))
        edited = self.cell.edited
        first, last = edited.original_column(line, column), edited.original_column(line, column + stop - offset)
        self.sites.append(
            Site(line, first, max(1, last - first), offset, kind, names, self._loops, self._function),
        )
        return f"$step({', '.join([str(len(self.sites) - 1), *names])})"

    def before(self, offset: int, text: str) -> None:
        self._before.setdefault(offset, []).append(text)

    def after(self, offset: int, text: str) -> None:
        self._after.setdefault(offset, []).insert(0, text)

    # ---- What is walked.

    def function(self, cursor: Any) -> None:
        """Mark a function's body; one that is a constant expression's must call nothing."""
        body = next((c for c in cursor.get_children() if c.kind.name == "COMPOUND_STMT"), None)
        if body is None or self.parsed.owner(body.location) is not self.cell:
            return
        at = self.start(body)
        head = self.text[self.start(cursor) : at]
        if "constexpr" in head or self.token(at) < 0 or self.text[at] != "{":
            return
        self._function, self._loops = cursor.spelling, ()
        parameters = [c.spelling for c in cursor.get_children() if c.kind.name == "PARM_DECL"]
        self.body(body, {p: None for p in parameters if p})

    def body(self, cursor: Any, scope: Scope) -> None:
        at, end = self.start(cursor), self.offset(cursor.extent.end.offset)
        self.before(at + 1, f" const $inside $inside_{len(self.sites)}({len(self.sites)});")
        inner = self.block(cursor, scope)
        if self.text[end - 1] == "}":
            self.before(end - 1, f"{self.site(end - 1, 'end', inner, end)};")

    def block(self, cursor: Any, scope: Scope) -> Scope:
        """Mark what is in braces; return the scope at its end."""
        inner = dict(scope)
        for child in cursor.get_children():
            self.statement(child, inner)
        return inner

    def statement(self, cursor: Any, scope: Scope, *, alone: bool = False) -> None:
        """Mark a statement; ``alone``: it is a branch or a loop's body without braces."""
        kind, at = cursor.kind.name, self.start(cursor)
        if kind == "COMPOUND_STMT":
            if self.token(at) >= 0 and self.text[at] == "{" and at not in self._used:
                self.block(cursor, scope)
            return
        if kind in {"CASE_STMT", "DEFAULT_STMT", "LABEL_STMT"}:
            children = list(cursor.get_children())
            if children:
                self.statement(children[-1], scope)
            return
        if kind == "NULL_STMT" or at in self._used or self.token(at) < 0:
            return
        self._used.add(at)
        if alone:
            self.before(at, "{ ")
            self.after(self.end(cursor), " }")
            scope = dict(scope)
        if not self.tells_itself(cursor, kind):
            self.before(at, f"{self.site(at, 'statement', scope, self.head(cursor))}; ")
        word = _HEADED.get(kind, "do" if kind == "DO_STMT" else "")
        if word and self.text.startswith(word, at):
            self.headed(cursor, kind, dict(scope))
            return
        if kind == "DECL_STMT":
            for variable in cursor.get_children():
                if variable.kind.name == "VAR_DECL" and variable.spelling and _shown(variable):
                    scope.pop(variable.spelling, None)
                    scope[variable.spelling] = None
        if self.nested:
            self.lambdas(cursor)

    def tells_itself(self, cursor: Any, kind: str) -> bool:
        """Return whether nothing is to be told before a statement: a loop whose condition tells, an empty declaration."""
        if kind == "DECL_STMT":
            return not _does_something(cursor)
        word = {"FOR_STMT": "for", "DO_STMT": "do", "WHILE_STMT": "while"}.get(kind, "")
        declares = any(c.kind.name in {"VAR_DECL", "DECL_STMT"} for c in cursor.get_children())
        plain = kind != "WHILE_STMT" or not declares
        return bool(word) and plain and self.text.startswith(word, self.start(cursor))

    def headed(self, cursor: Any, kind: str, scope: Scope) -> None:
        """Mark the parts of an ``if``, a ``switch`` or a loop."""
        if kind == "DO_STMT":
            self.repeated(cursor, scope)
            return
        i = self.token(self.start(cursor)) + 1
        i += self._tree.text(i) == "constexpr"
        close = self._tree.close(i)
        if close < 0:
            return
        limit = self._tree.tokens[close].start
        children = list(cursor.get_children())
        head = [c for c in children if self.start(c) < limit]
        bodies = [c for c in children if self.start(c) > limit]
        for declared in head:
            for variable in [declared, *declared.get_children()]:
                if variable.kind.name == "VAR_DECL" and variable.spelling and _shown(variable):
                    scope[variable.spelling] = None
        outside = self._loops
        if kind in {"FOR_STMT", "WHILE_STMT", "CXX_FOR_RANGE_STMT"}:
            self._loops = (*outside, self.start(cursor))
            self.condition(kind, head, i, close, scope, bodies)
        for each in bodies:
            self.statement(each, dict(scope), alone=True)
        self._loops = outside

    def condition(self, kind: str, head: list[Any], i: int, close: int, scope: Scope, bodies: list[Any]) -> None:
        """Mark a loop's condition, with which each turn begins; where that declares a variable, its body's start."""
        opening, closing = self._tree.tokens[i].end, self._tree.tokens[close].start
        if kind == "FOR_STMT":
            ends = [k for k in range(i + 1, close) if self._tree.texts[k] == ";" and self._tree.around(k) == i]
            if len(ends) != 2:
                return
            opening, closing = self._tree.tokens[ends[0]].end, self._tree.tokens[ends[1]].start
        declares = kind == "WHILE_STMT" and any(c.kind.name in {"VAR_DECL", "DECL_STMT"} for c in head)
        if kind == "CXX_FOR_RANGE_STMT" or declares:
            body = bodies[-1] if bodies else None
            if body is not None and body.kind.name == "COMPOUND_STMT" and self.text[self.start(body)] == "{":
                at = self.start(body) + 1
                self.before(at, f" {self.site(at, 'loop', scope, at)};")
            return
        place = next((t.start for t in self._tree.tokens[i:close] if t.start >= opening), opening)
        call = self.site(min(place, closing), "loop", scope, closing)
        if self.text[opening:closing].strip():
            self.after(opening, f" ({call}, (")
            self.before(closing, "))")
        else:
            self.after(opening, f" ({call}, true)")

    def repeated(self, cursor: Any, scope: Scope) -> None:
        """Mark a ``do`` loop."""
        children = list(cursor.get_children())
        outside = self._loops
        self._loops = (*outside, self.start(cursor))
        if children:
            self.statement(children[0], dict(scope), alone=True)
            end = self.end(children[0])
            i = bisect_right(self._starts, end - 1)
            if self._tree.text(i) == "while" and self._tree.close(i + 1) > 0:
                first, last = self._tree.tokens[i + 1].end, self._tree.tokens[self._tree.close(i + 1)].start
                self.after(first, f"{self.site(first, 'again', scope, last)}, (")
                self.before(last, ")")
        self._loops = outside

    def lambdas(self, cursor: Any) -> None:
        """Mark the bodies of the lambdas in an expression: what they capture is not looked at."""
        for child in cursor.get_children():
            if child.kind.name == "LAMBDA_EXPR":
                body = [c for c in child.get_children() if c.kind.name == "COMPOUND_STMT"]
                if body and self.token(self.start(body[-1])) >= 0:
                    outer = self._function, self._loops
                    self._function, self._loops = "lambda", ()
                    self.body(body[-1], {
                        c.spelling: None for c in child.get_children() if c.kind.name == "PARM_DECL" and c.spelling
                    })  # fmt: skip
                    self._function, self._loops = outer
            else:
                self.lambdas(child)


_SEMICOLON = re.compile(r"(?:\s|/\*.*?\*/|//[^\n]*\n)*;", re.DOTALL)


def _does_something(cursor: Any) -> bool:
    """Return whether a declaration gives a variable a value; of threadgroup memory none does."""
    for variable in cursor.get_children():
        if variable.kind.name == "VAR_DECL":
            words = [t.spelling for t in variable.get_tokens()]
            if any(w in {"=", "{", "("} for w in words) and "$threadgroup_storage" not in words:
                return True
    return False


def _shown(variable: Any) -> bool:
    return "(lambda at" not in variable.type.spelling


@dataclass(frozen=True, slots=True)
class StructFields:
    """A struct's fields: name, the type's spelling, offset and size in bytes."""

    size: int
    fields: tuple[tuple[str, str, int, int], ...]


def structs(parsed: Parsed) -> dict[str, StructFields]:
    """Return the layouts of the cell's own structs, by name; templates of structs have none until they are used."""
    found: dict[str, StructFields] = {}

    def visit(cursor: Any) -> None:
        for child in cursor.get_children():
            if parsed.owner(child.location) is None:
                continue
            kind = child.kind.name
            if kind in {"STRUCT_DECL", "CLASS_DECL"} and child.is_definition() and child.type.get_size() > 0:
                fields = tuple(
                    (f.spelling, f.type.get_canonical().spelling, child.type.get_offset(f.spelling) // 8, f.type.get_size())
                    for f in child.get_children()
                    if f.kind.name == "FIELD_DECL" and f.spelling and not f.is_bitfield()
                )
                found[child.type.get_canonical().spelling] = StructFields(child.type.get_size(), fields)
            if kind in _NESTED or kind in _FUNCTIONS or kind in {"COMPOUND_STMT", "DECL_STMT"}:
                visit(child)

    visit(parsed.unit.cursor)
    return found
