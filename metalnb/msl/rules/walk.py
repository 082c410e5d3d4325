"""One pass over what the author wrote, sorted by what the rules ask for.

libclang's own iterator makes a list for every node and costs seconds on a long kernel; here it calls back once
for each node, and only the few kinds that a rule reads are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Function", "Walk", "marks", "space", "walk"]

# CXCursorKind (clang-c/Index.h): numbers, because a name costs more than the visit.
_FIELD, _FUNCTION, _VAR, _PARM, _METHOD = 6, 8, 9, 10, 21
_CONSTRUCTOR, _DESTRUCTOR, _CONVERSION, _FUNCTION_TEMPLATE = 24, 25, 26, 30
_FUNCTIONS = frozenset({_FUNCTION, _METHOD, _CONSTRUCTOR, _DESTRUCTOR, _CONVERSION, _FUNCTION_TEMPLATE})
_EXPRESSION, _CALL, _FLOATING, _C_CAST = 100, 103, 107, 117
_CASTS = frozenset({_EXPRESSION, _C_CAST, 124, 126, 127, 128})  # implicit, C's, static, reinterpret, const, functional
_GOTO, _INDIRECT_GOTO, _ASM, _MS_ASM = 210, 211, 215, 229
_STATEMENTS = frozenset({_GOTO, _INDIRECT_GOTO, _ASM, _MS_ASM})
_RECURSE, _CONTINUE = 2, 1

# clang's numbers of OpenCL's address spaces, which stand for Metal's (target/words.h).
_SPACES = {1: "constant", 2: "threadgroup", 3: "constant", 4: "thread", 5: "thread", 6: "device"}
_THREAD = frozenset({4, 5})


@dataclass(slots=True)
class Function:
    """A function's declaration, and what its body holds (the bodies of its lambdas included)."""

    cursor: Any
    calls: list[Any] = field(default_factory=list)
    variables: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class Walk:
    """What a pass found.

    Attributes
    ----------
    functions : list of Function
    declared : list
        Variables, parameters and members, wherever they stand.
    program : list
        Variables that live as long as the program: at namespace scope and static members.
    casts : list of (cast, parent)
        Every conversion to a pointer into thread memory.
    literals, statements : list
        Floating-point literals; goto and asm statements.
    """

    functions: list[Function] = field(default_factory=list)
    declared: list[Any] = field(default_factory=list)
    program: list[Any] = field(default_factory=list)
    casts: list[tuple[Any, Any]] = field(default_factory=list)
    literals: list[Any] = field(default_factory=list)
    statements: list[Any] = field(default_factory=list)


def walk(unit: Any, declarations: Iterable[Any]) -> Walk:
    """Visit declarations at namespace scope, and all within them."""
    from clang import cindex

    found = Walk()
    lib = cindex.conf.lib
    pointer = cindex.TypeKind.POINTER.value
    current: Function | None = None

    def visit(cursor: Any, parent: Any, _: Any) -> int:
        nonlocal current
        kind = cursor._kind_id  # noqa: SLF001  (the property that hides it makes an object for every node)
        if kind in _CASTS:
            kept = lib.clang_getCursorType(keep(cursor))
            if kept._kind_id == pointer and lib.clang_getAddressSpace(lib.clang_getPointeeType(kept)) in _THREAD:  # noqa: SLF001
                found.casts.append((cursor, keep(parent)))
        elif kind == _CALL:
            if current is not None:
                current.calls.append(keep(cursor))
        elif kind in {_VAR, _PARM, _FIELD}:
            found.declared.append(keep(cursor))
            if kind == _VAR:
                (found.program if current is None else current.variables).append(cursor)
        elif kind in _FUNCTIONS:
            outer, current = current, Function(keep(cursor))
            found.functions.append(current)
            lib.clang_visitChildren(cursor, callback, None)
            current = outer
            return _CONTINUE
        elif kind == _FLOATING:
            found.literals.append(keep(cursor))
        elif kind in _STATEMENTS:
            found.statements.append(keep(cursor))
        return _RECURSE

    def keep(cursor: Any) -> Any:
        cursor._tu = unit  # noqa: SLF001  (a cursor that outlives the callback must hold its unit)
        return cursor

    callback = cindex.callbacks["cursor_visit"](visit)
    for cursor in declarations:
        if visit(cursor, unit.cursor, None) == _RECURSE:
            lib.clang_visitChildren(cursor, callback, None)
    return found


def space(kind: Any) -> str:
    """Name the address space of a type's values; an empty string when it has none."""
    while kind.kind.name in {"CONSTANTARRAY", "INCOMPLETEARRAY", "VARIABLEARRAY", "DEPENDENTSIZEDARRAY"}:
        kind = kind.element_type
    # libclang dies of an address space asked of an invalid type.
    return _SPACES.get(kind.get_address_space(), "") if kind.kind.name != "INVALID" else ""


def marks(cursor: Any) -> dict[str, Any]:
    """Give a declaration's attributes: those of MSL, and its words thread, constant and kernel."""
    return {c.spelling: c for c in cursor.get_children() if c.kind.name == "ANNOTATE_ATTR"}
