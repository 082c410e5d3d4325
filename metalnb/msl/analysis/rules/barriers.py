"""Barriers that some threads of a threadgroup may never reach (MSL 6.9.1): a warning.

All threads of a threadgroup must reach a barrier. If some have returned or taken another branch, Apple's GPUs usually
continue without them; the specification promises nothing, and the CPU engine loses the group's results.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metalnb.errors import Diagnostic

from ...libclang.cursor_children import children_of
from ...libclang.parse import Parsed
from .syntax_walk import CellSyntax, FunctionSyntax, marks

__all__ = ["check"]

# The inputs that differ between the threads of a threadgroup.
_OWN = frozenset({"thread_position_in_grid", "thread_position_in_threadgroup", "thread_index_in_threadgroup"})
_ADDRESSES = frozenset({"POINTER", "LVALUEREFERENCE"})
_ASSIGNMENTS = frozenset({"BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR"})
_DECLARED = frozenset({"DECL_STMT", "VAR_DECL"})
_CURSORS = 8192  # most cursors in a kernel: analyzing a longer one would take longer than compiling it


def check(parsed: Parsed, syntax: CellSyntax) -> Iterator[Diagnostic]:
    """Warn about the first return and the first branch that make some threads of a kernel miss a barrier."""
    for function in syntax.functions:
        if function.barriers and "kernel" in marks(function.cursor):
            yield from _missed_barriers(parsed, function)


def _missed_barriers(parsed: Parsed, function: FunctionSyntax) -> Iterator[Diagnostic]:
    name = function.cursor.spelling
    threads = _Threads(function.cursor)
    early_return = next(
        ((r, b) for r in threads.returns for b in function.barriers if _offset(r) < b.location.offset), None,
    )  # fmt: skip
    if early_return is not None:
        line = parsed.diagnostic(early_return[1].location, "").line
        yield parsed.diagnostic(
            early_return[0].extent.start,
            f"{name}: threads that return here never reach the threadgroup_barrier on line {line}; all threads of a "
            "threadgroup must, and without them its results may be lost",
            "guard the loads and stores instead of returning: here a grid has no surplus threads (MSL 6.9.1)",
            "warning",
        )
    inside = (b for b in function.barriers if any(start <= b.location.offset < end for start, end in threads.branches))
    for barrier in list(inside)[:1]:
        yield parsed.diagnostic(
            barrier.location,
            f"{name}: this threadgroup_barrier is in a branch that some threads may not take; all threads of a "
            "threadgroup must reach it, and without them its results may be lost",
            "put the barrier after the branch (MSL 6.9.1)",
            "warning",
        )


def _offset(statement: Any) -> int:
    return int(statement.extent.start.offset)


class _Threads:
    """The parts of a kernel that only some threads of a threadgroup run, judged by its `if` statements.

    A variable is divergent once a divergent value has been assigned to it, or once such a part has assigned to it.
    Lambdas are skipped: a return in one does not leave the kernel.

    Attributes
    ----------
    returns : list
        The return statements in these parts, in the order of the text.
    branches : list of (int, int)
        The start and end of each of these parts.
    """

    def __init__(self, kernel: Any) -> None:
        self.returns: list[Any] = []
        self.branches: list[tuple[int, int]] = []
        self._budget = _CURSORS
        params = [c for c in children_of(kernel) if c.kind.name == "PARM_DECL"]
        self._divergent = {p.hash for p in params if not _OWN.isdisjoint(marks(p))}
        body = next((c for c in children_of(kernel) if c.kind.name == "COMPOUND_STMT"), None)
        pending = [(body, False)] if body is not None and self._divergent else []
        while pending and self._budget > 0:
            self._budget -= 1
            cursor, is_partial = pending.pop()
            pending += reversed(self._statement(cursor, is_partial=is_partial))

    def _statement(self, cursor: Any, *, is_partial: bool) -> list[tuple[Any, bool]]:
        """Analyze one statement; return the statements in it, each with whether only some threads run it."""
        kind = cursor.kind.name
        if kind == "RETURN_STMT":
            self.returns += [cursor] if is_partial else []
            return []
        if kind == "VAR_DECL" or cursor.kind.is_expression():
            self._assign(cursor, kind, is_partial=is_partial)
            return []
        children = children_of(cursor)
        if kind != "IF_STMT":
            return [(c, is_partial) for c in children]
        first = next((i for i, c in enumerate(children) if c.kind.name not in _DECLARED), 0)
        for declaration in children[:first]:
            for declared in (declaration, *children_of(declaration)):
                self._assign(declared, declared.kind.name, is_partial=is_partial)
        if self._is_divergent(children[first]):
            arms = [c for c in children[first + 1 :] if _offset(c) > _offset(cursor)]  # else one macro has written both
            self.branches += [(_offset(arm), arm.extent.end.offset) for arm in arms]
            is_partial = True
        return [(c, is_partial) for c in children[first + 1 :]]

    def _assign(self, cursor: Any, kind: str, *, is_partial: bool) -> None:
        """Record the variables that an expression or declaration makes divergent."""
        if kind == "VAR_DECL":
            if self._is_divergent(cursor):
                self._divergent.add(cursor.hash)
            return
        is_assignment = kind in _ASSIGNMENTS or (kind == "CALL_EXPR" and cursor.spelling.startswith("operator"))
        parts = children_of(cursor) if is_assignment else []
        parts = list(cursor.get_arguments()) if kind == "CALL_EXPR" else parts
        if len(parts) == 2 and (is_partial or self._is_divergent(parts[1])):
            variable = _variable(parts[0])
            if variable is not None:
                self._divergent.add(variable.hash)

    def _is_divergent(self, cursor: Any) -> bool:
        """Return whether an expression reads a divergent value."""
        pending = [cursor]  # iterative: the tree of a long sum is as deep as the sum is long
        while pending and self._budget > 0:
            self._budget -= 1
            inner = pending.pop()
            if inner.kind.name == "DECL_REF_EXPR" and inner.referenced is not None:
                if inner.referenced.hash in self._divergent:
                    return True
                continue
            pending += children_of(inner)
        return False


def _variable(target: Any) -> Any:
    """Return the variable that an assignment sets directly; None if it stores through a pointer or a reference."""
    while target.kind.name in {"UNEXPOSED_EXPR", "PAREN_EXPR", "MEMBER_REF_EXPR", "ARRAY_SUBSCRIPT_EXPR"}:
        target = next(iter(children_of(target)), None)
        if target is None:
            return None
    variable = target.referenced if target.kind.name == "DECL_REF_EXPR" else None
    if variable is None or variable.type.get_canonical().kind.name in _ADDRESSES:
        return None
    return variable
