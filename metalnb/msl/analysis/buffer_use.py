"""How a kernel's code uses each of its buffers: reads it, writes it, or both.

This is for counting the bytes that a dispatch must move, so it ignores which elements are accessed and which branches
are taken. A buffer whose address escapes (to a helper that may write through it) is reported as unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..libclang.cursor_children import children_of

__all__ = ["uses"]

_CURSORS = 4096  # most cursors in a kernel: analyzing a longer one would take longer than compiling it
_SEEN_THROUGH = frozenset({
    "UNEXPOSED_EXPR", "PAREN_EXPR", "CSTYLE_CAST_EXPR", "CXX_STATIC_CAST_EXPR", "CXX_REINTERPRET_CAST_EXPR",
    "CXX_CONST_CAST_EXPR", "CXX_FUNCTIONAL_CAST_EXPR", "CONDITIONAL_OPERATOR", "INIT_LIST_EXPR",
})  # fmt: skip
_ADDRESSES = frozenset({"POINTER", "LVALUEREFERENCE"})


class _Role(NamedTuple):
    """The effect on the object that an expression names or, with ``through``, on the one that it points to.

    Attributes
    ----------
    does : {"read", "write", "update", "escape", "alias", "move"}
        "move" is an assignment to the pointer itself: memory is not accessed.
    through : bool
    alias : str
        The variable that will refer to the object.
    """

    does: str
    through: bool = False
    alias: str = ""


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
    body = next((c for c in children_of(kernel) if c.kind.name == "COMPOUND_STMT"), None)
    if body is None:
        return dict.fromkeys(names, "")
    effects: dict[str, set[str]] = {name: set() for name in names}
    aliases: dict[str, set[str]] = {name: {name} for name in names}  # a variable -> the buffers it may point into
    pending = [(body, _READ)]  # iterative: the tree of a sum of thousands of terms is as deep as the sum is long
    for _ in range(_CURSORS):
        if not pending:
            return {name: _summary(seen_effects) for name, seen_effects in effects.items()}
        cursor, role = pending.pop()
        kind = cursor.kind.name
        if kind == "DECL_REF_EXPR":
            for name in aliases.get(cursor.spelling, ()):
                if role.alias:
                    aliases.setdefault(role.alias, set()).add(name)
                escapes = _is_pointer(cursor) and not role.through and role.does not in {"alias", "move"}
                effects[name].add("escape" if escapes else role.does)
            continue
        if kind == "VAR_DECL":
            aliases.pop(cursor.spelling, None)  # another variable with that name
        pending += reversed(list(_roles(cursor, kind, role)))
    return dict.fromkeys(names, "")


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
        yield parts[0], _Role("read") if role.through else role._replace(through=True)
        yield parts[1], _READ
    elif kind == "BINARY_OPERATOR" and len(parts) == 2:
        if _operator(cursor, parts) == "=":
            yield from _assignment_roles(*parts)
        else:  # pointer plus number: follow the pointer
            yield from ((p, role if _is_pointer(p) else _READ) for p in parts)
    elif kind == "COMPOUND_ASSIGNMENT_OPERATOR" and len(parts) == 2:
        yield parts[0], _MOVE if _is_pointer(parts[0]) else _UPDATE
        yield parts[1], _READ
    elif kind == "UNARY_OPERATOR" and len(parts) == 1:
        yield parts[0], _unary(cursor, parts[0], role)
    elif kind == "MEMBER_REF_EXPR":
        yield from ((p, role._replace(through=_is_pointer(p))) for p in parts)
    elif kind == "VAR_DECL":
        address = cursor.type.get_canonical().kind.name in _ADDRESSES
        yield from ((p, _Role("alias", alias=cursor.spelling) if address else _READ) for p in parts)
    else:
        yield from ((p, role if kind in _SEEN_THROUGH else _READ) for p in parts)


def _assignment_roles(target: Any, value: Any) -> Iterator[tuple[Any, _Role]]:
    if _is_pointer(target):
        yield target, _MOVE
        yield value, _Role("alias", alias=target.spelling) if target.spelling else _ESCAPE
    else:
        yield target, _WRITE
        yield value, _READ


def _unary(cursor: Any, part: Any, role: _Role) -> _Role:
    if _is_pointer(part) and not _is_pointer(cursor):  # *p, or !p
        return role._replace(through=True)
    if _is_pointer(cursor) and not _is_pointer(part):  # &x
        return role._replace(through=False)
    if _is_pointer(part):  # p++
        return role if role.through or role.alias else _MOVE
    return _UPDATE if _sign(cursor, part) in {"++", "--"} else role if role.alias else _READ


def _sign(cursor: Any, part: Any) -> str:
    """Return the token before or after an operand, reading only that gap (see `_operator`)."""
    from clang import cindex

    before = cursor.extent.start.offset < part.extent.start.offset
    ends = (cursor.extent.start, part.extent.start) if before else (part.extent.end, cursor.extent.end)
    gap = list(cursor.translation_unit.get_tokens(extent=cindex.SourceRange.from_locations(*ends)))
    return str(gap[0 if before else -1].spelling) if gap else ""


def _parameters(function: Any) -> list[Any]:
    """Return the types of a function's parameters; none for a template or anything else without a prototype."""
    prototype = function is not None and function.type.kind.name == "FUNCTIONPROTO"
    return list(function.type.argument_types()) if prototype else []


def _call_roles(cursor: Any, parts: list[Any], role: _Role) -> Iterator[tuple[Any, _Role]]:
    name = cursor.spelling
    if name == "operator->*":  # ours, around each operand of ?: (rewrite/conditional_operands.py)
        yield from ((p, role) for p in parts[-1:])
        return
    if name.startswith("operator"):
        changes = _CHANGING.get(name.removeprefix("operator"), _READ)
        yield from ((p, changes if i == 0 else _READ) for i, p in enumerate(parts))
        return
    arguments = list(cursor.get_arguments())
    kinds = _parameters(cursor.referenced)
    atomic = name.startswith("atomic_")
    for i, argument in enumerate(arguments):
        if atomic and i == 0:
            does = {"atomic_load_explicit": "read", "atomic_store_explicit": "write"}.get(name, "update")
            yield argument, _Role(does, through=True)
        elif i < len(kinds) and kinds[i].kind.name in _ADDRESSES and not kinds[i].get_pointee().is_const_qualified():
            yield argument, _ESCAPE
        else:
            yield argument, _argument_role(argument)
    if not arguments:  # unresolved, as it depends on the template's parameters: a constructor, or a call
        yield from ((p, _ESCAPE if _is_pointer(p) and not _is_constant(p) else _argument_role(p)) for p in parts)
    yield from ((p, _ESCAPE) for p in parts[:1] if p.kind.name == "MEMBER_REF_EXPR")  # a method may change its object


_CHANGING = {"=": _WRITE, "++": _UPDATE, "--": _UPDATE, "[]": _ESCAPE, "()": _ESCAPE} | dict.fromkeys(
    (f"{o}=" for o in ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")), _UPDATE
)


def _argument_role(cursor: Any) -> _Role:
    return _Role("read", through=_is_pointer(cursor))


def _is_constant(pointer: Any) -> bool:
    return bool(pointer.type.get_canonical().get_pointee().is_const_qualified())


def _is_pointer(cursor: Any) -> bool:
    return bool(cursor.type.get_canonical().kind.name == "POINTER")


def _operator(cursor: Any, parts: list[Any]) -> str:
    """Return the token between two operands, reading only the gap: the tokens of a long operand would take minutes."""
    from clang import cindex

    left_end, right_start = parts[0].extent.end, parts[1].extent.start
    gap = cursor.translation_unit.get_tokens(extent=cindex.SourceRange.from_locations(left_end, right_start))
    return next((t.spelling for t in gap if t.extent.start.offset < right_start.offset and t.spelling not in "()"), "")
