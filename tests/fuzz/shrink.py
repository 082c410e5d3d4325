"""Reduce a program that shows a fault: remove statements, blocks and expressions as long as the fault remains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from .tree import FLOATS, INTEGERS, Expr, Helper, Program, Stmt, const, statements

__all__ = ["shrink", "size"]

_TRIED_TOGETHER = 8
_NAMING = {"var", "take", "component", "swizzle", "offset", "row", "cell", "through"}  # expressions of a variable
_ASSIGNING = {"put", "assign", "divide", "component", "lane", "move", "through"}  # statements that change a variable
_DECLARING = {"declare", "array", "rows", "pointer", "exchange", "gather", "tree", "matrices"}  # statements


def shrink(program: Program, first_failing: Callable[[Sequence[Program]], Program | None]) -> Iterator[Program]:
    """Yield ever smaller programs that still fail; nothing can be removed from the last one.

    Parameters
    ----------
    program : Program
    first_failing : callable
        Returns the first of several programs that shows the fault, or None.
    """
    done: set[Program] = set()
    while True:
        smaller = (p for p in variants(program) if p not in done and well_formed(p))
        while tried := list(islice(smaller, _TRIED_TOGETHER)):
            failing = first_failing(tried)
            done.update(tried[: tried.index(failing)] if failing else tried)
            if failing is not None:
                program = failing
                yield program
                break
        else:
            return


def size(program: Program) -> int:
    """Return the number of statements."""
    return sum(_count(b) for b in (program.body, *(h.body for h in program.helpers)))


def _count(body: Iterable[Stmt]) -> int:
    return sum(1 + sum(map(_count, s.bodies)) for s in body)


def variants(program: Program) -> Iterator[Program]:
    """Yield programs with one part removed, largest parts first."""
    called = {e.text for s in statements(program.body) for x in s.exprs for e in _parts(x) if e.op == "call"}
    kept = tuple(h for h in program.helpers if h.name in called)
    if kept != program.helpers:
        yield replace(program, helpers=kept)
    for body in _blocks(program.body):
        yield replace(program, body=body)
    for i, helper in enumerate(program.helpers):
        for body in _blocks(helper.body):
            helpers: list[Helper] = list(program.helpers)
            helpers[i] = replace(helper, body=body)
            yield replace(program, helpers=tuple(helpers))


def _blocks(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
    step = len(body) // 2
    while step >= 1:
        for at in range(0, len(body), step):
            yield body[:at] + body[at + step :]
        step //= 2
    for i, s in enumerate(body):
        for block in s.bodies:
            yield body[:i] + block + body[i + 1 :]
        for other in _smaller(s):
            yield (*body[:i], other, *body[i + 1 :])


def _smaller(s: Stmt) -> Iterator[Stmt]:
    if s.kind == "if" and len(s.bodies) > 1:
        yield replace(s, bodies=s.bodies[:1])
    for i, block in enumerate(s.bodies):
        for other in _blocks(block):
            yield replace(s, bodies=(*s.bodies[:i], other, *s.bodies[i + 1 :]))
    for i, e in enumerate(s.exprs):
        if (s.kind in {"for", "while", "do"} and i == 1) or (s.kind == "divide" and i == 0):
            continue
        for other_e in _simpler(e):
            yield replace(s, exprs=(*s.exprs[:i], other_e, *s.exprs[i + 1 :]))


def _simpler(e: Expr) -> Iterator[Expr]:
    """Yield expressions with one part removed."""
    if e.op == "const":
        return
    yield from _instead(e)
    if e.op == "mix" and len(e.args) > 1:
        for i in range(len(e.args)):
            yield replace(e, args=e.args[:i] + e.args[i + 1 :])
    for i, part in enumerate(e.args):
        if (e.op in {"rawdiv", "rawrem"} and i == 1) or (e.op == "call" and part.op == "var"):
            continue  # a divisor has its guard, and a reference needs a variable
        for other in _simpler(part):
            if e.op != "bits" or other.op != "const":
                yield replace(e, args=(*e.args[:i], other, *e.args[i + 1 :]))


def _instead(e: Expr) -> Iterator[Expr]:
    """Yield replacements for an expression: its operands of the same type, and a literal."""
    if not e.op.startswith(("simd_", "quad_")) and e.op not in {"call", "rawdiv", "rawrem"}:
        for part in e.args:
            if part.type == e.type:
                yield part
        if e.type in INTEGERS:
            yield const(e.type, "1")
        elif e.type in FLOATS:
            yield const(e.type, "half(1)" if e.type == "half" else "1.0f")


def _parts(e: Expr) -> Iterator[Expr]:
    yield e
    for part in e.args:
        yield from _parts(part)


def well_formed(program: Program) -> bool:
    """Return whether every name is in scope where it is used, and every function returns a value."""
    helpers = {h.name for h in program.helpers}
    whole = all(
        _known(h.body, {name for _, name, _ in h.params}, helpers) and h.body and h.body[-1].kind == "return"
        for h in program.helpers
    )
    return whole and _known(program.body, {"i", "n", "lid", "size"}, helpers)


def _known(body: Iterable[Stmt], names: set[str], helpers: set[str], *, looping: bool = False) -> bool:
    names = set(names)
    for s in body:
        if s.kind in {"break", "continue"} and not looping:
            return False
        for e in s.exprs:
            for part in _parts(e):
                named = part.text.split(".")[0]
                if part.op in _NAMING and named not in names:
                    return False
                if part.op == "call" and named not in helpers:
                    return False
        if s.kind in _ASSIGNING and s.text.split(".")[0] not in names:
            return False
        if s.kind in _DECLARING:
            names.add(s.text)
        within = names | {s.text} if s.kind == "for" else names | {f"{s.text}k"} if s.kind == "tree" else names
        inside = looping or s.kind in {"for", "while", "do"}
        if not all(_known(b, within, helpers, looping=inside) for b in s.bodies):
            return False
    return True
