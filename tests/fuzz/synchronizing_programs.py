"""Generate programs with atomics, pointers, shuffles, loops with barriers and irregular counters.

Some have two dimensions, SIMD functions of quads, vectors of half, and threads that return before a barrier.
"""

from __future__ import annotations

from typing import ClassVar

from .generate import Choice, Generator, Scope
from .tree import ATOMICS, CELLS, HALVES, INTEGERS, TREES, VECTORS, Expr, Stmt, const, var

__all__ = ["ACTIVE", "PlanarGenerator", "SynchronizingGenerator"]

_LANES = ("simd_shuffle_xor", "simd_shuffle_up", "simd_shuffle_down", "simd_shuffle_rotate_down")
_QUADS = (
    "quad_sum", "quad_min", "quad_max", "quad_and", "quad_or", "quad_xor", "quad_product", "quad_broadcast_first",
    "quad_prefix_exclusive_sum", "quad_prefix_inclusive_sum", "quad_any", "quad_all",
)  # fmt: skip
ACTIVE = ("simd_last", "simd_product", "simd_prefix_inclusive_sum", "simd_prefix_exclusive_product")


class SynchronizingGenerator(Generator):
    """Generates one program, whose threads synchronize more often."""

    given: ClassVar[tuple[str, ...]] = ("i", "n", "lid", "size")

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.together = self.dice.random() < 0.6
        self.barriers = self.together and self.dice.random() < 0.6
        self.stops = not self.barriers and self.dice.random() < 0.4
        self.atomics = self.dice.random() < 0.4
        self.pointers = self.dice.random() < 0.5
        self.reach: dict[str, Scope] = {}  # where each pointer was created

    def _more(self, scope: Scope) -> list[Choice]:
        """Return further statements that may appear here, each with its weight."""
        if scope.result:
            return []
        found: list[Choice] = []
        if self.atomics:
            found.append((self._atomic, 3))
            if self.barriers and scope.uniform:
                found.append((self._gather, 2))
        if self.together:
            found.append((self._lanes, 4))
        if self.barriers and scope.uniform and scope.loops < 2:
            found.append((self._tree, 4))
        if self.pointers:
            if scope.loops == 0:
                found += [(self._rows, 1), (self._array, 1)]
            if scope.arrays or scope.rows:
                found.append((self._pointer, 3))
            if scope.pointers:
                found += [(self._point, 2), (self._through, 4)]
        return found

    # Atomics -------------------------------------------------------------------------------------

    def _atomic(self, scope: Scope) -> Stmt:
        """Change a cell that threads share, by an operation whose result does not depend on the order."""
        near = self.barriers and self.dice.random() < 0.6
        given = (self._expr("uint", scope, 1), self._expr("uint", scope, 2))
        return Stmt("atomic", given, text=self.dice.choice(list(ATOMICS)), type="held" if near else "cells")

    def _gather(self, scope: Scope) -> Stmt:
        """Synchronize, and read one of the threadgroup's cells."""
        where = const("uint", str(self.dice.randrange(CELLS)))
        made = Stmt("gather", (where,), text=self._name("v"), type="uint")
        scope.variables.append(("uint", made.text))
        return made

    # Threads that synchronize ---------------------------------------------------------------------------

    def _lanes(self, scope: Scope) -> Stmt:
        """Take another lane's value: any lane's in uniform control flow, otherwise an active lane's."""
        dice, kind = self.dice, self.dice.choice(("int", "uint", "uint", "ushort"))
        value = self._expr(kind, scope, 2)
        if scope.uniform and not self.stops:
            uniform = Expr("and", "uint", (var("uint", "n"), const("uint", "31")))
            by = uniform if dice.random() < 0.2 else const("uint", str(dice.choice((1, 2, 3, 4, 7, 8, 16, 31))))
            made = Expr(dice.choice(_LANES), kind, (value, by))
        else:
            made = Expr(dice.choice(ACTIVE), kind, (value,))
        name = self._name("v")
        scope.variables.append((kind, name))
        return Stmt("declare", (made,), text=name, type=kind)

    def _tree(self, scope: Scope) -> Stmt:
        """Fill threadgroup memory, reduce it in a loop whose counter halves, doubles or steps, and read a result."""
        dice, name = self.dice, self._name("v")
        inner = scope.inner(("uint", f"{name}k"), loops=scope.loops + 1, breakable=False, uniform=True)
        body = self._block(inner) if dice.random() < 0.6 else ()
        way = (dice.randrange(len(TREES)), dice.choice("+^|&"), dice.choice(["early", "late"]), dice.randrange(3))
        given = (self._expr("uint", scope, 2), self._any("uint", scope))
        scope.variables.append(("uint", name))
        return Stmt("tree", given, (body,), text=name, type=" ".join(map(str, (*way, "fold", "any"))))

    # Pointers ------------------------------------------------------------------------------------

    def _rows(self, scope: Scope) -> Stmt:
        kind = self.dice.choice(self.kinds)
        made = Stmt("rows", (self._expr(kind, scope, 1),), text=self._name("m"), type=kind)
        scope.rows.append((kind, made.text))
        return made

    def _place(self, kind: str, scope: Scope) -> Expr:
        """Return a pointer into an array of a type, or one of two such pointers."""
        dice = self.dice
        if dice.random() < 0.3:
            of = tuple(self._place(kind, scope) for _ in range(2))
            return Expr("choose", f"{kind}*", (self._condition(scope), *of))
        arrays = [("offset", name) for k, name in scope.arrays if k == kind]
        arrays += [("row", name) for k, name in scope.rows if k == kind]
        op, name = dice.choice(arrays)
        return Expr(op, f"{kind}*", (self._expr("uint", scope, 1),), name)

    def _pointer(self, scope: Scope) -> Stmt:
        kind, _ = self.dice.choice([*scope.arrays, *scope.rows])
        made = Stmt("pointer", (self._place(kind, scope),), text=self._name("q"), type=f"{kind}*")
        scope.pointers.append((kind, made.text))
        self.reach[made.text] = scope.inner()
        return made

    def _point(self, scope: Scope) -> Stmt:
        """Assign a pointer to another array that lives at least as long."""
        kind, name = self.dice.choice(scope.pointers)
        made = self.reach[name]
        place = self._place(kind, scope.inner(arrays=made.arrays, rows=made.rows))
        return Stmt("assign", (place,), text=name, type="=")

    def _through(self, scope: Scope) -> Stmt:
        """Store through a pointer."""
        kind, name = self.dice.choice(scope.pointers)
        return Stmt("through", (self._expr("uint", scope, 1), self._expr(kind, scope, 2)), text=name, type=kind)

    def _leaf(self, kind: str, scope: Scope) -> Expr:
        known = [name for k, name in scope.pointers if k == kind and kind in INTEGERS]
        if known and self.dice.random() < 0.3:
            return Expr("through", kind, (self._any("uint", scope),), self.dice.choice(known))
        return super()._leaf(kind, scope)


class PlanarGenerator(SynchronizingGenerator):
    """Generates one program of two dimensions: rows of a threadgroup may be shorter or longer than a SIMD-group."""

    planar = True
    vectors = (*VECTORS, *HALVES, *HALVES)

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.barriers = self.together and self.dice.random() < 0.8
        self.stops = self.dice.random() < 0.5
        # A thread that returned has not written the elements that a reduction reads, nor does it add to the cells.
        self.atomics = self.atomics and not (self.stops and self.barriers)

    def _more(self, scope: Scope) -> list[Choice]:
        found = super()._more(scope)
        if self.together and scope.uniform and not self.stops:
            found.append((self._matrices, 2))
        if self.stops:
            found = [choice for choice in found if choice[0] != self._tree]
            if scope.uniform:
                found.append((self._return, 3))
        return [*found, (self._quad, 4)] if self.together and not scope.result else found

    def _return(self, scope: Scope) -> Stmt:
        """Let some threads return where all arrive; the others may synchronize later, even in the same loop."""
        return Stmt("if", (self._condition(scope),), ((*self._results(scope), Stmt("stop")),))

    def _matrices(self, scope: Scope) -> Stmt:
        """Multiply a matrix of small integers by itself, or by its transpose, and read an element of the product."""
        kind, transposed = self.dice.choice(("half", "float")), self.dice.choice(("false", "true"))
        name = self._name("v")
        given = (self._expr("uint", scope, 1), self._any("uint", scope), self._expr("uint", scope, 1))
        scope.variables.append(("uint", name))
        return Stmt("matrices", given, text=name, type=f"{kind} {transposed}")

    def _quad(self, scope: Scope) -> Stmt:
        """Call a function of the active threads of a quad, or take another thread's value of it."""
        dice, kind = self.dice, self.dice.choice(("int", "uint", "ushort"))
        value, name = self._expr(kind, scope, 2), self._name("v")
        op = dice.choice(_QUADS)
        if scope.uniform and not self.stops and dice.random() < 0.3:
            made = Expr("quad_shuffle_xor", kind, (value, const("uint", str(dice.randint(1, 3)))))
        elif op in {"quad_any", "quad_all"}:
            made = Expr(op, "uint", (self._condition(scope),))
        else:
            made = Expr(op, kind, (value,))
        scope.variables.append((made.type, name))
        return Stmt("declare", (made,), text=name, type=made.type)
