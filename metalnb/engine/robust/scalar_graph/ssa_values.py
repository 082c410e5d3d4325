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
from .scalar_forms import FORMS, opaque_components

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
    switch_cases : dict of str to list of (Scalar, str)
        For each block that ends in a ``switch``, a comparison and a target for each of its cases.
    """

    def __init__(self, function: IRFunction, order: Iterable[str]) -> None:
        super().__init__()
        reachable = dict.fromkeys(order)
        self.switch_cases: dict[str, list[tuple[Scalar, str]]] = {}
        for parameter in function.parameters:
            scalar = Scalar("parameter", parameter.type, word=parameter.text)
            self._register(parameter.text, parameter.type, [scalar])
        phis: list[IRInstruction] = []
        for label in reachable:
            for i in function.blocks[label]:
                if i.result:
                    self._register(i.result, i.type, self._evaluate(i))
                if i.opcode == "phi":
                    phis.append(i)
                elif i.opcode == "switch":
                    self.switch_cases[label] = self._cases(i)
        for phi in phis:
            incoming = {b: self.components(o) for o, b in zip(phi.operands, phi.targets, strict=True) if b in reachable}
            for part, value in enumerate(self._components[phi.result]):
                value.operands = tuple(components[part] for components in incoming.values())
                value.labels = list(incoming)

    def results_of(self, inst: IRInstruction) -> list[Scalar]:
        """Return the components of an instruction's value."""
        return self._components[inst.result]

    def _register(self, name: str, ir_type: IRType, scalars: list[Scalar]) -> None:
        self._components[name] = scalars
        if len(scalars) == 1:
            scalars[0].name = scalars[0].name or name
            if ir_type.kind == "pointer":
                self.pointers.setdefault(scalars[0], name)

    def _cases(self, inst: IRInstruction) -> list[tuple[Scalar, str]]:
        ir_type = inst.operands[0].type
        selector = self.of(inst.operands[0])
        return [
            (Scalar("icmp", BIT, (selector, self.constant(ir_type, case)), inst), target)
            for case, target in zip(inst.cases, inst.targets[1:], strict=True)
        ]

    def _evaluate(self, i: IRInstruction) -> list[Scalar]:
        form = FORMS.get(i.opcode)
        return (form(self, i) if form else None) or opaque_components(i)
