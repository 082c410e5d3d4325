"""Insert a call before each statement of a cell; it records the thread's position and the variables in scope.

The source passed to clang is edited at the extents that libclang reports, so templates, lambdas and helpers need no
special treatment: ``$step`` (engine/cpu/steps.h) is a template, whose types clang deduces. No line moves. The expansion
of a macro is one statement.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from metalnb.msl.libclang.parse import Parsed
from metalnb.msl.text.edits import EditedText

from .source_marks import HEADED, Site, SourceMarks

__all__ = ["FUNCTIONS", "NESTED", "MarkedSource", "mark_statements"]

FUNCTIONS = frozenset({"FUNCTION_DECL", "FUNCTION_TEMPLATE", "CXX_METHOD", "CONVERSION_FUNCTION"})
NESTED = frozenset({"NAMESPACE", "LINKAGE_SPEC", "UNEXPOSED_DECL", "STRUCT_DECL", "CLASS_DECL", "CLASS_TEMPLATE"})

_LOOPS = {"FOR_STMT": "for", "DO_STMT": "do", "WHILE_STMT": "while", "CXX_FOR_RANGE_STMT": "for"}


@dataclass(frozen=True, slots=True)
class MarkedSource:
    """A source with the inserted calls, and the sites that they refer to by number."""

    text: str
    sites: tuple[Site, ...]


Scope = dict[str, None]


def mark_statements(parsed: Parsed, *, nested: bool = True) -> MarkedSource:
    """Put a call before each statement of a cell's functions.

    Parameters
    ----------
    parsed : Parsed
    nested : bool, optional
        Whether to include the bodies of lambdas.
    """
    writer = _Writer(parsed, nested=nested)
    for function in _functions(parsed, parsed.unit.cursor):
        writer.function(function)
    return MarkedSource(EditedText(writer.text, writer.edits()).text, tuple(writer.sites))


def _functions(parsed: Parsed, cursor: Any) -> Iterator[Any]:
    for child in cursor.get_children():
        if parsed.owner(child.location) is not parsed.cell:
            continue
        kind = child.kind.name
        if kind in FUNCTIONS and child.is_definition():
            yield child
        elif kind in NESTED:
            yield from _functions(parsed, child)


class _Writer(SourceMarks):
    def __init__(self, parsed: Parsed, *, nested: bool) -> None:
        super().__init__(parsed)
        self.nested = nested
        self._used: set[int] = set()

    def function(self, cursor: Any) -> None:
        """Mark a function's body, unless it is constexpr: such a function must not call the log."""
        body = next((c for c in cursor.get_children() if c.kind.name == "COMPOUND_STMT"), None)
        if body is None or self.parsed.owner(body.location) is not self.cell:
            return
        start = self.start(body)
        head = self.text[self.start(cursor) : start]
        if "constexpr" in head or self.token(start) < 0 or self.text[start] != "{":
            return
        self.name, self.loops = cursor.spelling, ()
        parameters = [c.spelling for c in cursor.get_children() if c.kind.name == "PARM_DECL"]
        self.body(body, {p: None for p in parameters if p})

    def body(self, cursor: Any, scope: Scope) -> None:
        start, end = self.start(cursor), self.offset(cursor.extent.end.offset)
        self.insert_before(start + 1, f" const $function_scope $inside_{len(self.sites)}({len(self.sites)});")
        inner = self.block(cursor, scope)
        if self.text[end - 1] == "}":
            self.insert_before(end - 1, f"{self.site(end - 1, 'end', inner, end)};")

    def block(self, cursor: Any, scope: Scope) -> Scope:
        """Mark the statements in braces; return the scope at their end."""
        inner = dict(scope)
        for child in cursor.get_children():
            self.statement(child, inner)
        return inner

    def statement(self, cursor: Any, scope: Scope, *, is_branch: bool = False) -> None:
        """Mark a statement; ``is_branch``: a branch or a loop's body without braces."""
        kind, start = cursor.kind.name, self.start(cursor)
        if kind == "COMPOUND_STMT":
            if self.token(start) >= 0 and self.text[start] == "{" and start not in self._used:
                self.block(cursor, scope)
            return
        if kind in {"CASE_STMT", "DEFAULT_STMT", "LABEL_STMT"}:
            children = list(cursor.get_children())
            if children:
                self.statement(children[-1], scope)
            return
        if kind == "UNEXPOSED_STMT" and (attributed := [c for c in cursor.get_children() if c.kind.is_statement()]):
            self.attributed(attributed[-1], scope, is_branch=is_branch)
            return
        if kind == "NULL_STMT" or start in self._used or self.token(start) < 0:
            return
        self._used.add(start)
        if is_branch:
            self.insert_before(start, "{ ")
            self.insert_after(self.end(cursor), " }")
            scope = dict(scope)
        if not self.reports_itself(cursor, kind):
            self.insert_before(start, f"{self.site(start, 'statement', scope, self.head(cursor))}; ")
        word = HEADED.get(kind, "do" if kind == "DO_STMT" else "")
        if word and self.text.startswith(word, start):
            self.mark_parts(cursor, kind, dict(scope))
            return
        if kind == "DECL_STMT":
            _declare(cursor, scope)
        if self.nested:
            self.lambdas(cursor)

    def attributed(self, cursor: Any, scope: Scope, *, is_branch: bool) -> None:
        """Mark a statement with an attribute or a ``#pragma unroll``, from which nothing may separate a loop."""
        kind, start = cursor.kind.name, self.start(cursor)
        word = _LOOPS.get(kind, "")
        if not word:
            self.statement(cursor, scope, is_branch=is_branch)
        elif start not in self._used and self.token(start) >= 0 and self.text.startswith(word, start):
            self._used.add(start)
            self.mark_parts(cursor, kind, dict(scope))

    def reports_itself(self, cursor: Any, kind: str) -> bool:
        """Return whether a statement needs no call: a loop, whose condition has one, or an empty declaration."""
        if kind == "DECL_STMT":
            return not _does_something(cursor)
        word = _LOOPS.get(kind, "") if kind != "CXX_FOR_RANGE_STMT" else ""
        declares = any(c.kind.name in {"VAR_DECL", "DECL_STMT"} for c in cursor.get_children())
        has_no_declaration = kind != "WHILE_STMT" or not declares
        return bool(word) and has_no_declaration and self.text.startswith(word, self.start(cursor))

    def mark_parts(self, cursor: Any, kind: str, scope: Scope) -> None:
        """Mark the parts of an ``if``, a ``switch`` or a loop."""
        if kind == "DO_STMT":
            self.mark_repetition(cursor, scope)
            return
        i = self.token(self.start(cursor)) + 1
        i += self.tree.text(i) == "constexpr"
        close = self.tree.close(i)
        if close < 0:
            return
        limit = self.tree.tokens[close].start
        children = list(cursor.get_children())
        head = [c for c in children if self.start(c) < limit]
        bodies = [c for c in children if self.start(c) > limit]
        for declaration in head:
            _declare(declaration, scope)
        outside = self.loops
        if kind in {"FOR_STMT", "WHILE_STMT", "CXX_FOR_RANGE_STMT"}:
            self.loops = (*outside, self.start(cursor))
            self.condition(kind, head, i, close, scope, bodies)
        for body in bodies:
            self.statement(body, dict(scope), is_branch=True)
        self.loops = outside

    def condition(self, kind: str, head: list[Any], i: int, close: int, scope: Scope, bodies: list[Any]) -> None:
        """Mark a loop's condition, which begins an iteration; if it declares a variable, mark the body's start."""
        opening, closing = self.tree.tokens[i].end, self.tree.tokens[close].start
        if kind == "FOR_STMT":
            ends = [k for k in range(i + 1, close) if self.tree.texts[k] == ";" and self.tree.enclosing(k) == i]
            if len(ends) != 2:
                return
            opening, closing = self.tree.tokens[ends[0]].end, self.tree.tokens[ends[1]].start
        declarations = (c for c in head if c.kind.name in {"VAR_DECL", "DECL_STMT"})
        declares = any(opening <= self.start(c) < closing for c in declarations)
        if kind == "CXX_FOR_RANGE_STMT" or declares:
            body = bodies[-1] if bodies else None
            if body is not None and body.kind.name == "COMPOUND_STMT" and self.text[self.start(body)] == "{":
                at = self.start(body) + 1
                self.insert_before(at, f" {self.site(at, 'loop', scope, at)};")
            return
        start = next((t.start for t in self.tree.tokens[i:close] if t.start >= opening), opening)
        call = self.site(min(start, closing), "loop", scope, closing)
        if self.text[opening:closing].strip():
            self.insert_after(opening, f" ({call}, (")
            self.insert_before(closing, "))")
        else:
            self.insert_after(opening, f" ({call}, true)")

    def mark_repetition(self, cursor: Any, scope: Scope) -> None:
        """Mark a ``do`` loop."""
        children = list(cursor.get_children())
        outside = self.loops
        self.loops = (*outside, self.start(cursor))
        if children:
            self.statement(children[0], dict(scope), is_branch=True)
            end = self.end(children[0])
            i = bisect_right(self.starts, end - 1)
            if self.tree.text(i) == "while" and self.tree.close(i + 1) > 0:
                first, last = self.tree.tokens[i + 1].end, self.tree.tokens[self.tree.close(i + 1)].start
                self.insert_after(first, f"{self.site(first, 'again', scope, last)}, (")
                self.insert_before(last, ")")
        self.loops = outside

    def lambdas(self, cursor: Any) -> None:
        """Mark the bodies of the lambdas in an expression; captures are ignored."""
        for child in cursor.get_children():
            if child.kind.name == "LAMBDA_EXPR":
                body = [c for c in child.get_children() if c.kind.name == "COMPOUND_STMT"]
                if body and self.token(self.start(body[-1])) >= 0:
                    outer = self.name, self.loops
                    self.name, self.loops = "lambda", ()
                    self.body(body[-1], {
                        c.spelling: None for c in child.get_children() if c.kind.name == "PARM_DECL" and c.spelling
                    })  # fmt: skip
                    self.name, self.loops = outer
            else:
                self.lambdas(child)


def _does_something(cursor: Any) -> bool:
    """Return whether a declaration initializes a variable; one in threadgroup memory does not."""
    for variable in cursor.get_children():
        if variable.kind.name == "VAR_DECL":
            words = [t.spelling for t in variable.get_tokens()]
            if any(w in {"=", "{", "("} for w in words) and "$threadgroup_storage" not in words:
                return True
    return False


def _declare(cursor: Any, scope: Scope) -> None:
    """Add a statement's declarations to a scope, except for lambdas, which have no value to show."""
    for variable in (cursor, *cursor.get_children()):
        if variable.kind.name == "VAR_DECL" and variable.spelling and "(lambda at" not in variable.type.spelling:
            scope.pop(variable.spelling, None)
            scope[variable.spelling] = None
