"""A function's values as a graph of scalars: vectors become their components, copies their sources.

Pointers and 64-bit integers are treated alike, so a conversion between them is a copy. The flags that let LLVM treat a
value as poison (``nsw``, ``inbounds``, …) are dropped, since every operation is taken modulo 2^bits. Each use of an
undefined value is a new value.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...llvm.instructions import IRFunction, IRInstruction
from ...llvm.llvm_types import IRType
from .operand_scalars import BIT, Operands, Scalar
from .scalar_forms import FORMS, opaque

__all__ = ["ScalarGraph"]


class ScalarGraph(Operands):
    """The values of a function.

    Parameters
    ----------
    function : IRFunction
    order : iterable of str
        The function's blocks, each after its dominators.

    Attributes
    ----------
    switched : dict of str to list of (Scalar, str)
        For each block that ends in a ``switch`` a comparison and a target for each of its cases.
    """

    def __init__(self, function: IRFunction, order: Iterable[str]) -> None:
        super().__init__()
        reached = dict.fromkeys(order)
        self.switched: dict[str, list[tuple[Scalar, str]]] = {}
        for parameter in function.parameters:
            made = Scalar("parameter", parameter.type, word=parameter.text)
            self._name(parameter.text, parameter.type, [made])
        phis: list[IRInstruction] = []
        for label in reached:
            for i in function.blocks[label]:
                if i.result:
                    self._name(i.result, i.type, self._made(i))
                if i.opcode == "phi":
                    phis.append(i)
                elif i.opcode == "switch":
                    self.switched[label] = self._cases(i)
        for phi in phis:
            incoming = {b: self.components(o) for o, b in zip(phi.operands, phi.targets, strict=True) if b in reached}
            for part, value in enumerate(self._known[phi.result]):
                value.operands = tuple(each[part] for each in incoming.values())
                value.labels = list(incoming)

    def made_by(self, made: IRInstruction) -> list[Scalar]:
        """Return the components of an instruction's value."""
        return self._known[made.result]

    def _name(self, name: str, kind: IRType, made: list[Scalar]) -> None:
        self._known[name] = made
        if len(made) == 1:
            made[0].name = made[0].name or name
            if kind.kind == "pointer":
                self.pointers.setdefault(made[0], name)

    def _cases(self, made: IRInstruction) -> list[tuple[Scalar, str]]:
        kind = made.operands[0].type
        chosen = self.of(made.operands[0])
        return [
            (Scalar("icmp", BIT, (chosen, self.constant(kind, case)), made, word="=="), target)
            for case, target in zip(made.cases, made.targets[1:], strict=True)
        ]

    def _made(self, i: IRInstruction) -> list[Scalar]:
        form = FORMS.get(i.opcode)
        return (form(self, i) if form else None) or opaque(i)
