"""Comparisons of integers, parsed from LLVM's predicates.

Source: LLVM Language Reference, "icmp".
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["EQUAL", "NOT_EQUAL", "PREDICATES", "Relation"]


class Relation(NamedTuple):
    """A comparison of two integers.

    Attributes
    ----------
    sign : {"==", "!=", "<", "<=", ">", ">="}
    unsigned : bool or None
        Whether it compares unsigned integers; None for ``==`` and ``!=``, which compare both kinds.
    """

    sign: str
    unsigned: bool | None = None

    @property
    def inverse(self) -> Relation:
        """The relation that holds exactly where this one does not."""
        return _INVERSE[self]

    @property
    def swapped(self) -> Relation:
        """The same relation with its operands exchanged."""
        return _SWAPPED[self]

    @property
    def is_below(self) -> bool:
        """Whether it is ``<`` or ``<=``."""
        return self.sign in {"<", "<="}

    @property
    def is_inclusive(self) -> bool:
        """Whether it is ``<=`` or ``>=``: an order that holds for equal integers, too."""
        return self.sign in {"<=", ">="}

    @property
    def predicate(self) -> str:
        """LLVM's word for it."""
        return _WORDS[self]


EQUAL, NOT_EQUAL = Relation("=="), Relation("!=")
PREDICATES: dict[str, Relation] = {
    "eq": EQUAL, "ne": NOT_EQUAL,
    **{
        f"{kind}{word}": Relation(sign, kind == "u")
        for kind in "us"
        for word, sign in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))
    },
}  # fmt: skip
_WORDS = {relation: word for word, relation in PREDICATES.items()}
_INVERSE_SIGNS = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_SWAPPED_SIGNS = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_INVERSE = {relation: Relation(_INVERSE_SIGNS[relation.sign], relation.unsigned) for relation in _WORDS}
_SWAPPED = {relation: Relation(_SWAPPED_SIGNS[relation.sign], relation.unsigned) for relation in _WORDS}
