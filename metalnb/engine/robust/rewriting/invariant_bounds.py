"""Compare an access's one index that varies in a loop with a bound that does not: half the work of a check.

`base + index * step` is in bounds if `index` is at most `(limit - base) / step`, which clang computes before the loop.
The exact check follows only where this test fails.
"""

from __future__ import annotations

import functools

from ..accesses import Access
from ..kernel_analysis import Analysis
from ..memory_roots import AffineAddress, Root

__all__ = ["InvariantBounds"]


class InvariantBounds:
    """Finds the accesses that can be compared in this way.

    Parameters
    ----------
    analysis : Analysis
    """

    def __init__(self, analysis: Analysis) -> None:
        self._roots, self._flow = analysis.roots, analysis.flow
        self._values_of = functools.cache(self._values)

    def split(self, access: Access) -> tuple[Root, AffineAddress, tuple[str, int]] | None:
        """Return an access's root, its address without the one index that its innermost loop changes, and that index.

        None if there is no loop, if the root is unknown, or unless the loop changes exactly one of several indices.
        """
        address, label = self._roots.address(access.pointer), access.inst.block
        header = self._flow.loop_of.get(label) if self._flow.irreducible is None else None
        root = self._roots.root(address.root)
        if header is None or address.offset < 0 or root is None:
            return None
        loop_values = self._values_of(header)
        varying = [term for term in address.terms if term[0] in loop_values]
        if len(varying) != 1 or len(address.terms) == 1 or varying[0][1] <= 0:
            return None
        fixed_terms = tuple(term for term in address.terms if term[0] not in loop_values)
        return root, AffineAddress(address.root, address.offset, fixed_terms), varying[0]

    def _values(self, header: str) -> frozenset[str]:
        """Return the values that are computed inside a loop."""
        body, blocks = self._flow.loops[header].body, self._flow.blocks
        return frozenset(inst.result for label in body for inst in blocks[label] if inst.result)
