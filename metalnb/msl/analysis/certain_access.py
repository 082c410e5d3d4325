"""Find the arrays that every thread of the grid is certain to index by its own position.

If ``i`` is the thread's position in a 1-D grid and ``out[i] = a * x[i] + y[i]`` is under no condition, each of the
three arrays must have an element for every thread. Only certain accesses are reported, so a guarded access is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..libclang.cursor_children import children_of

__all__ = ["always_indexed", "threadgroup_arrays"]

_PLAIN = frozenset({
    "DECL_STMT", "BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR", "UNARY_OPERATOR", "CALL_EXPR", "UNEXPOSED_EXPR",
})  # fmt: skip
_CONDITIONAL = frozenset({"CONDITIONAL_OPERATOR", "LAMBDA_EXPR", "StmtExpr"})
_SHORT_CIRCUIT = ("&&", "||")
_STATEMENTS = 256  # statements read per kernel: few arrays are first accessed later
_CURSORS = 4096


def always_indexed(kernel: Any, position: str) -> frozenset[str]:
    """Return the names of the arrays indexed by ``position`` in every thread.

    Parameters
    ----------
    kernel : clang.cindex.Cursor
        The kernel's definition.
    position : str
        The name of an input, such as its 1-D ``[[thread_position_in_grid]]``.
    """
    body = _body(kernel)
    if body is None:
        return frozenset()
    arrays: set[str] = set()
    budget = [_CURSORS]
    for count, statement in enumerate(children_of(body)):
        if statement.kind.name not in _PLAIN or count >= _STATEMENTS:
            break  # a branch may leave the kernel, so later accesses are not certain
        for cursor in _certain_expressions(statement, budget):
            name = _changed_variable(cursor)
            if name == position:
                return frozenset(arrays)
            name = _indexed_array(cursor, position)
            if name:
                arrays.add(name)
    return frozenset(arrays)


def threadgroup_arrays(kernel: Any) -> dict[str, int]:
    """Return the number of elements of each threadgroup array that a kernel declares at the top of its body."""
    body = _body(kernel)
    statements = children_of(body) if body is not None else ()
    sizes = {}
    for statement in statements:
        for variable in children_of(statement) if statement.kind.name == "DECL_STMT" else ():
            array = variable.type.get_pointee()  # the scan has turned the array into a reference
            if variable.kind.name == "VAR_DECL" and array.kind.name == "CONSTANTARRAY" and "__local" in array.spelling:
                sizes[str(variable.spelling)] = int(array.element_count)
    return sizes


def _body(kernel: Any) -> Any:
    return next((c for c in children_of(kernel) if c.kind.name == "COMPOUND_STMT"), None)


def _certain_expressions(statement: Any, budget: list[int]) -> Iterator[Any]:
    """Yield the expressions that are always evaluated with the statement, in the order of the text."""
    pending = [statement]  # iterative: the tree of a sum of thousands of terms is as deep as the sum is long
    while pending and budget[0] > 0:
        budget[0] -= 1
        cursor = pending.pop()
        if cursor.kind.name in _CONDITIONAL:
            continue
        yield cursor
        children = children_of(cursor)
        is_binary = cursor.kind.name == "BINARY_OPERATOR"
        if is_binary and any(t.spelling in _SHORT_CIRCUIT for t in _tokens_between(cursor, children)):
            children = children[:1]
        pending += reversed(children)


def _tokens_between(cursor: Any, children: list[Any]) -> list[Any]:
    """Return the tokens between two operands."""
    if len(children) != 2:
        return []
    from clang import cindex

    # Tokenize only the gap: tokenizing every operand of a sum of thousands of terms would take minutes.
    left_end, right_start = children[0].extent.end, children[1].extent.start
    gap = cindex.SourceRange.from_locations(left_end, right_start)
    return [t for t in cursor.translation_unit.get_tokens(extent=gap) if t.extent.start.offset < right_start.offset]


def _reference(cursor: Any) -> str | None:
    """Return the variable that an expression names, looking through conversions."""
    while cursor.kind.name == "UNEXPOSED_EXPR":
        children = children_of(cursor)
        if len(children) != 1:
            return None
        cursor = children[0]
    return str(cursor.spelling) if cursor.kind.name == "DECL_REF_EXPR" else None


def _indexed_array(cursor: Any, position: str) -> str | None:
    """Return ``x`` of ``x[position]``."""
    if cursor.kind.name != "ARRAY_SUBSCRIPT_EXPR":
        return None
    children = children_of(cursor)
    if len(children) != 2 or _reference(children[1]) != position:
        return None
    return _reference(children[0])


def _changed_variable(cursor: Any) -> str | None:
    """Return the name of the variable that a cursor changes or redeclares."""
    kind = cursor.kind.name
    if kind == "VAR_DECL":
        return str(cursor.spelling)
    if kind in {"COMPOUND_ASSIGNMENT_OPERATOR", "UNARY_OPERATOR", "BINARY_OPERATOR"}:
        first = next(iter(children_of(cursor)), None)
        if first is not None and first.kind.name == "DECL_REF_EXPR":
            return str(first.spelling)
    return None
