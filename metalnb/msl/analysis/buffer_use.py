"""How a kernel's code uses each of its buffers: reads it, writes it, or both.

This is for counting the bytes that a dispatch must move, so it ignores which elements are accessed and which branches
are taken. A buffer whose address escapes (to a helper that may write through it, or to a field of a struct) is reported
as unknown.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..libclang.cursor_children import children_of
from ..libclang.flags import TARGET, posix_path
from ..text.includes import INCLUDE

__all__ = ["uses"]

_CURSORS = 4096  # most cursors in a kernel: analyzing a longer one would take longer than compiling it
_SEEN_THROUGH = frozenset({
    "UNEXPOSED_EXPR", "PAREN_EXPR", "CSTYLE_CAST_EXPR", "CXX_STATIC_CAST_EXPR", "CXX_REINTERPRET_CAST_EXPR",
    "CXX_CONST_CAST_EXPR", "CXX_FUNCTIONAL_CAST_EXPR", "CONDITIONAL_OPERATOR", "INIT_LIST_EXPR",
})  # fmt: skip
_PLACES = frozenset({
    "ARRAY_SUBSCRIPT_EXPR", "CONDITIONAL_OPERATOR", "DECL_REF_EXPR", "MEMBER_REF_EXPR", "PAREN_EXPR",
})  # fmt: skip
_STATEMENTS = frozenset({
    "COMPOUND_STMT", "IF_STMT", "FOR_STMT", "WHILE_STMT", "DO_STMT", "CASE_STMT", "DEFAULT_STMT", "LABEL_STMT",
})  # fmt: skip
_FUNCTIONS = frozenset({"FUNCTION_DECL", "FUNCTION_TEMPLATE", "CXX_METHOD", "CONSTRUCTOR", "CONVERSION_FUNCTION"})
_ADDRESSES = frozenset({"POINTER", "LVALUEREFERENCE", "RVALUEREFERENCE"})
_COMPARISONS, _ASSIGN, _COMMA = frozenset({10, 11, 12, 13, 14, 15, 16, 20, 21}), 22, 33  # CXBinaryOperatorKind
_STEPS, _ADDRESS, _DEREFERENCE = frozenset({1, 2, 3, 4}), 5, 6  # CXUnaryOperatorKind


class _Role(NamedTuple):
    """The effect on the object that an expression names or, with ``through``, on the one that it points to.

    Attributes
    ----------
    does : {"read", "write", "update", "escape", "alias", "move"}
        "move" is an assignment to the pointer itself, or a pointer whose value is not used: memory is not accessed.
    through : bool
    alias : int
        The variable that will refer to the object, as `_key` returns it.
    """

    does: str
    through: bool = False
    alias: int = 0


_READ, _WRITE, _UPDATE, _ESCAPE = _Role("read"), _Role("write"), _Role("update"), _Role("escape")
_MOVE = _Role("move")


def uses(kernel: Any, names: frozenset[str]) -> dict[str, str]:
    """Return how the kernel uses each buffer.

    Parameters
    ----------
    kernel : clang.cindex.Cursor
        The kernel's definition.
    names : frozenset of str
        Its buffers.

    Returns
    -------
    dict of str to {"none", "read", "write", "update", ""}
        "update" for both, in any order; "" for unknown.
    """
    parts = children_of(kernel)
    body = next((c for c in parts if c.kind.name == "COMPOUND_STMT"), None)
    effects = _effects(body) if body is not None else None
    if effects is None:
        return dict.fromkeys(names, "")
    keys = {c.spelling: c.hash for c in parts if c.kind.name == "PARM_DECL"}
    return {name: _summary(effects(keys[name])) if name in keys else "" for name in names}


def _effects(body: Any) -> Callable[[int], set[str]] | None:
    """Return a function that returns the effects on what a variable points to; None if the body is too long.

    The order of statements is ignored: in a loop, an assignment at the end affects the accesses before it. So a pointer
    may point into every buffer that is assigned to it anywhere.
    """
    effects: dict[int, set[str]] = {}  # a variable -> the effects of the expressions that name it
    aliases: dict[int, set[int]] = {}  # a variable -> those that are assigned its value
    pending = [(body, _MOVE)]  # iterative: the tree of a sum of thousands of terms is as deep as the sum is long
    for _ in range(_CURSORS):
        if not pending:
            break
        cursor, role = pending.pop()
        kind = cursor.kind.name
        if kind != "DECL_REF_EXPR":
            pending += reversed(list(_roles(cursor, kind, role)))
            continue
        key = _key(cursor)
        is_value = role.does not in {"alias", "move"} and not role.through and _is_pointer(cursor)
        effects.setdefault(key, set()).add("escape" if is_value else role.does)
        if role.alias:
            aliases.setdefault(key, set()).add(role.alias)
    else:
        return None

    def total(variable: int) -> set[str]:
        reached, waiting = {variable}, [variable]
        while waiting:
            new = aliases.get(waiting.pop(), set()) - reached
            reached |= new
            waiting += new
        return set[str]().union(*(effects.get(key, ()) for key in reached))

    return total


def _key(name: Any) -> int:
    """Return a number for the variable that an expression names: another one of the same name has its own."""
    variable = name.referenced
    return variable.hash if variable is not None else 0


def _summary(effects: set[str]) -> str:
    if "update" in effects or {"read", "write"} <= effects:
        return "update"
    plain_effects = effects - {"alias", "move"}
    return (
        plain_effects.pop() if len(plain_effects) == 1 and "escape" not in plain_effects else "" if effects else "none"
    )


def _roles(cursor: Any, kind: str, role: _Role) -> Iterator[tuple[Any, _Role]]:
    """Yield an expression's parts, each with the effect on it."""
    parts = children_of(cursor)
    if kind == "CALL_EXPR":
        yield from _call_roles(cursor, parts, role)
    elif kind == "ARRAY_SUBSCRIPT_EXPR" and len(parts) == 2:
        yield parts[0], _element_role(cursor, role)
        yield parts[1], _READ
    elif kind == "BINARY_OPERATOR" and len(parts) == 2:
        yield from _binary_roles(cursor, parts, role)
    elif kind == "COMPOUND_ASSIGNMENT_OPERATOR" and len(parts) == 2:
        yield parts[0], role if _is_pointer(parts[0]) else _UPDATE
        yield parts[1], _READ
    elif kind == "UNARY_OPERATOR" and len(parts) == 1:
        yield parts[0], _unary_role(cursor, parts[0], role)
    elif kind == "CONDITIONAL_OPERATOR" and len(parts) == 3:
        yield parts[0], _READ
        yield from ((p, role) for p in parts[1:])
    elif kind == "MEMBER_REF_EXPR":
        yield from ((p, _element_role(cursor, role)._replace(through=_is_pointer(p))) for p in parts)
    else:
        yield from _other_roles(cursor, kind, role, parts)


def _other_roles(cursor: Any, kind: str, role: _Role, parts: list[Any]) -> Iterator[tuple[Any, _Role]]:
    """Yield the parts of a declaration, a statement, a lambda or a conversion."""
    if kind == "VAR_DECL":
        yield from ((p, _initial_role(cursor)) for p in parts)
    elif kind == "CXX_FOR_RANGE_STMT":  # the variable, the range, the body
        yield from ((p, _initial_role(parts[0]) if i == 1 else _READ) for i, p in enumerate(parts))
    elif kind == "LAMBDA_EXPR":
        yield from _capture_roles(parts)
    elif kind == "RETURN_STMT":  # of a lambda, which may return a reference
        yield from ((p, _ESCAPE if _is_place(p) else _READ) for p in parts)
    elif kind == "INIT_LIST_EXPR" and not role.alias:
        fields = cursor.type.get_canonical().get_fields()
        refers = any(f.type.get_canonical().kind.name in _ADDRESSES for f in fields)
        yield from ((p, _ESCAPE if refers and _is_place(p) else _READ) for p in parts)
    elif kind == "UNEXPOSED_DECL":  # auto& [a, b] = ...
        yield from ((p, _ESCAPE) for p in parts)
    elif kind == "StmtExpr":  # the value of ({ ...; p; }) is used
        yield from ((p, _READ) for block in parts for p in children_of(block))
    elif kind in _STATEMENTS:
        yield from ((p, _MOVE if _is_change(p) or _is_pointer(p) else _READ) for p in parts)
    else:
        yield from ((p, role if kind in _SEEN_THROUGH else _READ) for p in parts)


def _is_place(value: Any) -> bool:
    """Return whether a value is an object in memory that is not read here, but referred to."""
    kind = value.kind.name
    is_dereference = kind == "UNARY_OPERATOR" and _library().clang_getCursorUnaryOperatorKind(value) == _DEREFERENCE
    return is_dereference or kind in _PLACES


def _is_change(statement: Any) -> bool:
    """Return whether a statement changes a variable or memory; in a template its type may be unknown."""
    kind = statement.kind.name
    return (
        kind == "COMPOUND_ASSIGNMENT_OPERATOR"
        or (kind == "BINARY_OPERATOR" and _library().clang_getCursorBinaryOperatorKind(statement) == _ASSIGN)
        or (kind == "UNARY_OPERATOR" and _library().clang_getCursorUnaryOperatorKind(statement) in _STEPS)
    )


def _element_role(cursor: Any, role: _Role) -> _Role:
    """Return the effect on the memory that holds an element, a field or what a pointer points to.

    If that is itself a pointer, the memory is only read. What it points to has escaped when it was stored.
    """
    if not _is_pointer(cursor):
        return role._replace(through=True)
    return _Role("read" if role.through or role.does in {"read", "alias"} else "escape", through=True)


def _initial_role(variable: Any) -> _Role:
    """Return the effect on a variable's initial value."""
    kind = variable.type.get_canonical()
    if kind.kind.name not in _ADDRESSES:
        return _READ
    # A pointer may change through a reference or a pointer to it.
    return _ESCAPE if kind.get_pointee().kind.name in _ADDRESSES else _Role("alias", alias=variable.hash)


def _capture_roles(parts: list[Any]) -> Iterator[tuple[Any, _Role]]:
    """Yield a lambda's parts; a copied variable is named in its body as outside, one with an initial value is not."""
    names = {_key(p) for p in parts if p.kind.name == "DECL_REF_EXPR"}
    copies = {_key(p) for p in parts if p.kind.name == "VARIABLE_REF"} <= names
    for part in parts:
        if part.kind.name in {"COMPOUND_STMT", "PARM_DECL"}:
            yield part, _READ
        elif copies and part.kind.name == "DECL_REF_EXPR":
            yield part, _MOVE if _is_pointer(part) else _READ
        else:
            yield part, _ESCAPE


def _binary_roles(cursor: Any, parts: list[Any], role: _Role) -> Iterator[tuple[Any, _Role]]:
    operator = _library().clang_getCursorBinaryOperatorKind(cursor)
    left, right = parts
    if operator == _COMMA:
        yield left, _MOVE if _is_pointer(left) else _READ
        yield right, role
    elif operator != _ASSIGN:  # pointer plus number: follow the pointer; a comparison of pointers reads no memory
        pointer_role = _MOVE if operator in _COMPARISONS or all(map(_is_pointer, parts)) else role
        yield from ((p, pointer_role if _is_pointer(p) else _READ) for p in parts)
    elif _is_pointer(left):
        yield left, _MOVE
        if role.does != "move":
            yield left, role
        yield right, _assigned_role(left)
    else:
        yield left, _WRITE
        yield right, _READ
        if role.alias or role.does in {"write", "update", "escape"}:  # (x = y) += 1
            yield left, role


def _assigned_role(target: Any) -> _Role:
    """Return the effect on the value that is assigned to a pointer."""
    while target.kind.name == "PAREN_EXPR":
        target = children_of(target)[0]
    variable = target.referenced if target.kind.name == "DECL_REF_EXPR" else None
    if variable is None or not _is_pointer(variable):
        return _ESCAPE
    return _Role("alias", alias=variable.hash)


def _unary_role(cursor: Any, part: Any, role: _Role) -> _Role:
    operator = _library().clang_getCursorUnaryOperatorKind(cursor)
    if operator == _DEREFERENCE:
        return _element_role(cursor, role)
    if operator == _ADDRESS:
        if _is_pointer(part) or not (role.through or role.alias or role.does == "move"):
            return _ESCAPE  # a pointer may change through its address
        return role._replace(through=False)
    if _is_pointer(part):  # p++, or !p
        return role if operator in _STEPS else _MOVE
    return _UPDATE if operator in _STEPS else role if role.alias else _READ


@functools.cache
def _library() -> Any:
    """Return libclang with the calls that the Python binding lacks."""
    from clang import cindex

    library = cindex.conf.lib
    library.clang_getCursorBinaryOperatorKind.argtypes = [cindex.Cursor]
    library.clang_getCursorUnaryOperatorKind.argtypes = [cindex.Cursor]
    return library


def _parameters(function: Any) -> list[Any]:
    """Return the types of a function's parameters; none for a template or anything else without a prototype."""
    prototype = function is not None and function.type.kind.name == "FUNCTIONPROTO"
    return list(function.type.argument_types()) if prototype else []


def _call_roles(cursor: Any, parts: list[Any], role: _Role) -> Iterator[tuple[Any, _Role]]:
    name = cursor.spelling
    if name == "operator->*":  # ours, around each operand of ?: (rewrite/conditional_operands.py)
        yield from ((p, role) for p in parts[-1:])
        return
    function = cursor.referenced
    arguments = list(cursor.get_arguments())
    kinds = _parameters(function)
    is_operator = name.startswith("operator") and not (name[8:9].isalnum() or name[8:9] == "_")
    if is_operator:
        yield from _operator_roles(arguments or parts, kinds, _CHANGING.get(name.removeprefix("operator")))
        return
    candidates = _candidates(parts) if function is None else []
    name = candidates[0].spelling if candidates else name
    if name == "$advance":  # ours, for += in a template (rewrite/compound_assignments.py)
        yield from ((a, _READ if i else _MOVE if _is_pointer(a) else _UPDATE) for i, a in enumerate(arguments))
        return
    lists = [[c.type for c in children_of(f) if c.kind.name == "PARM_DECL"] for f in candidates] or [kinds]
    is_member = any(p.kind.name == "MEMBER_REF_EXPR" for p in parts[:1])
    is_unknown = not candidates and (is_member if function is None else function.kind.name not in _FUNCTIONS)
    for i, argument in enumerate(arguments):
        if name.startswith("atomic_") and i == 0:
            does = {"atomic_load_explicit": "read", "atomic_store_explicit": "write"}.get(name, "update")
            yield argument, _Role(does, through=True)
        else:
            escapes = is_unknown or any(_parameter_role(argument, t[i]) == _ESCAPE for t in lists if i < len(t))
            yield argument, _ESCAPE if escapes else _argument_role(argument)
    if not arguments:  # unresolved, as it depends on the template's parameters: a constructor, or a call
        yield from ((p, _ESCAPE if _is_pointer(p) and not _is_constant(p) else _argument_role(p)) for p in parts)
    yield from ((p, _ESCAPE) for p in parts[:1] if is_member)  # a method may change its object


def _operator_roles(operands: list[Any], kinds: list[Any], changes: _Role | None) -> Iterator[tuple[Any, _Role]]:
    """Yield the operands; ``kinds`` lacks the first operand's if the operator is a member of its class."""
    own = len(operands) - len(kinds)
    for i, operand in enumerate(operands):
        if i == 0 and changes is not None:
            yield operand, changes
        else:
            yield operand, _parameter_role(operand, kinds[i - own]) if own in {0, 1} and i >= own else _READ


def _parameter_role(argument: Any, kind: Any) -> _Role:
    """Return the effect of a call on an argument, from the type of the parameter."""
    if kind.kind.name not in _ADDRESSES:
        kind = kind.get_canonical()
    if kind.kind.name not in _ADDRESSES:  # a pointer's type may be the template's parameter
        return _ESCAPE if _is_pointer(argument) and not _is_constant(argument) else _argument_role(argument)
    pointee = kind.get_pointee()
    if not pointee.is_const_qualified():
        return _ESCAPE
    target = pointee.get_canonical()
    leads_on = target.kind.name == "POINTER" and not target.get_pointee().is_const_qualified()
    return _ESCAPE if leads_on else _argument_role(argument)


def _candidates(parts: list[Any]) -> list[Any]:
    """Return the functions that an unresolved call in a template may call; of the library's, the first."""
    name = next((c for p in parts[:1] for c in children_of(p) if c.kind.name == "OVERLOADED_DECL_REF"), None)
    if name is None:
        return []
    library, functions = _library(), []
    for i in range(library.clang_getNumOverloadedDecls(name)):
        functions.append(library.clang_getOverloadedDecl(name, i))
        file = functions[-1].location.file
        if file is not None and posix_path(file.name).startswith((f"{INCLUDE.as_posix()}/", f"{TARGET.as_posix()}/")):
            break
    return functions


_CHANGING = {"=": _WRITE, "++": _UPDATE, "--": _UPDATE, "[]": _ESCAPE, "()": _ESCAPE} | dict.fromkeys(
    (f"{o}=" for o in ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")), _UPDATE
)


def _argument_role(cursor: Any) -> _Role:
    return _Role("read", through=_is_pointer(cursor))


def _is_constant(pointer: Any) -> bool:
    return bool(pointer.type.get_canonical().get_pointee().is_const_qualified())


def _is_pointer(cursor: Any) -> bool:
    return bool(cursor.type.get_canonical().kind.name == "POINTER")
