"""Make short programs that are mostly SIMD functions, early returns and loops: short kernels show much."""

from __future__ import annotations

from .generate import Choice, Scope
from .wider import WiderGenerator

__all__ = ["DenseGenerator"]


class DenseGenerator(WiderGenerator):
    """Throws the dice of one short program, whose SIMD-groups always meet."""

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
