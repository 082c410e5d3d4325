"""Generate short programs of mostly SIMD functions, early returns and loops: short kernels find many faults.

In some, both arms of a branch call the same SIMD function, and no compiler may merge the two calls. Others reduce
threadgroup memory by steps that the compiler knows.
"""

from __future__ import annotations

from dataclasses import replace

from .generate import REDUCE, Choice, Scope
from .synchronizing_programs import ACTIVE, SynchronizingGenerator
from .tree import STEPS, TREES, Expr, Stmt, var

__all__ = ["ArmsGenerator", "DenseGenerator", "StepsGenerator"]

_OPS = (*REDUCE, *ACTIVE, "simd_broadcast_first")


class DenseGenerator(SynchronizingGenerator):
    """Generates one short program whose SIMD-groups always converge."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.together = True
        self.barriers = self.dice.random() < 0.4
        self.stops = not self.barriers and self.dice.random() < 0.8
        self.left = self.dice.choice((6, 9, 14, 20))

    def _more(self, scope: Scope) -> list[Choice]:
        found = super()._more(scope)
        if not scope.result:
            found += [(self._simd, 4), (self._if, 3)]
        if self.stops and not scope.uniform:
            found.append((self._leave, 3))
        return found


class ArmsGenerator(DenseGenerator):
    """Generates one program whose branches call the same SIMD function in both arms."""

    def _more(self, scope: Scope) -> list[Choice]:
        return [*super()._more(scope), *([] if scope.result else [(self._arms, 8)])]

    def _arms(self, scope: Scope) -> Stmt:
        """Assign to a variable a SIMD function's result for one value or another."""
        kind = self.dice.choice(("int", "uint", "uint", "ushort"))
        names = [name for k, name in scope.variables if k == kind]
        if not names:
            return self._simd(scope)
        op, name = self.dice.choice(_OPS), self.dice.choice(names)
        arms = (self._arm(op, kind, name, scope), self._arm(op, kind, name, scope))
        return Stmt("if", (self._condition(scope),), arms)

    def _arm(self, op: str, kind: str, name: str, scope: Scope) -> tuple[Stmt, ...]:
        made = Stmt("declare", (Expr(op, kind, (self._expr(kind, scope, 1),)),), text=self._name("v"), type=kind)
        return made, Stmt("assign", (var(kind, made.text),), text=name, type="=")


class StepsGenerator(DenseGenerator):
    """Generates one program that reduces threadgroup memory with no guard except the step's."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.barriers, self.stops = True, False

    def _more(self, scope: Scope) -> list[Choice]:
        fold = not scope.result and scope.uniform and scope.loops < 2
        return [*super()._more(scope), *([(self._tree, 12)] if fold else [])]

    def _tree(self, scope: Scope) -> Stmt:
        made = super()._tree(scope)
        _, sign, when, form, *_ = made.type.split()
        way, guard = len(TREES) + self.dice.randrange(len(STEPS)), self.dice.choice(("halves", "pairs"))
        return replace(made, type=f"{way} {sign} {when} {form} {guard} {self.dice.choice(('any', 'first', 'each'))}")
