"""Scalars, the proofs' form of a function's values, and the lookup of operands."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...llvm.instructions import IRInstruction, Operand
from ...llvm.llvm_types import IRType, split_list, split_type
from .relations import EQUAL, Relation

__all__ = ["BIT", "Operands", "Scalar"]

BIT = IRType("i1", "integer", 1)
_POINTER = IRType("ptr", "pointer", 64)
_EXPRESSION = re.compile(r"(?:getelementptr|addrspacecast)\b[a-z ]*\((.*)\)$")


class Scalar:
    """A scalar.

    Attributes
    ----------
    op : str
        LLVM's opcode, the name of an intrinsic (``umin``), ``constant``, ``global``, ``parameter``, or ``unknown``.
    bits : int
        64 for anything but an integer.
    integer : bool
    operands : tuple of Scalar
        Empty for ``call``.
    word : str
        The name of a ``global`` or ``parameter``.
    relation : Relation
        The relation of an ``icmp``.
    labels : list of str
        The blocks that the operands of a ``phi`` come from, each once.
    number : int
        The value of a constant, as a signed integer.
    part : int
        Which component of its instruction it is; for a load, in units of its own size.
    inst : IRInstruction or None
    block : str
        An empty string if no block defines it.
    name : str
        LLVM's name; an empty string for a component of a vector.
    """

    __slots__ = (
        "bits", "block", "inst", "integer", "labels", "name", "number", "op", "operands", "part", "relation", "word",
    )  # fmt: skip

    def __init__(
        self, op: str, ir_type: IRType, operands: Iterable[Scalar] = (), inst: IRInstruction | None = None, *,
        word: str = "", number: int = 0, part: int = 0, relation: Relation = EQUAL,
    ) -> None:  # fmt: skip
        self.op = op
        self.integer = ir_type.kind == "integer"
        self.bits = ir_type.bits if self.integer else 64
        self.operands = tuple(operands)
        self.word, self.number, self.part, self.relation = word, number, part, relation
        self.labels: list[str] = []
        self.inst = inst
        self.block = inst.block if inst else ""
        self.name = ""

    def __repr__(self) -> str:
        return self.name or (str(self.number) if self.op == "constant" else f"{self.op}.{self.part}")

    @property
    def is_constant(self) -> bool:
        """Whether it is a number in the text."""
        return self.op == "constant"


class Operands:
    """The scalars of names and constants.

    Attributes
    ----------
    pointers : dict of Scalar to str
        An LLVM name for each scalar that is used as a pointer anywhere.
    """

    def __init__(self) -> None:
        self._components: dict[str, list[Scalar]] = {}
        self._parts: dict[tuple[str, int, int], Scalar] = {}  # keyed by value, part number, and bits of a part
        self._constants: dict[tuple[str, str], Scalar] = {}
        self.pointers: dict[Scalar, str] = {}

    def by_name(self, name: str) -> Scalar:
        """Return the value of a name; for a vector, its first component."""
        return self.of(Operand(_POINTER, name))

    def of(self, operand: Operand) -> Scalar:
        """Return an operand's value."""
        return self.components(operand)[0]

    def components(self, operand: Operand) -> list[Scalar]:
        """Return an operand's components; a scalar has one, itself."""
        cached = self._components.get(operand.text)
        if cached is not None:
            return cached
        ir_type = operand.type
        if ir_type.kind != "vector":
            return [self.constant(ir_type, operand.text)]
        return [self.constant(ir_type.element, text) for text in _component_texts(operand)]

    def constant(self, ir_type: IRType, text: str) -> Scalar:
        """Return the scalar of a constant; an undefined one gets a new scalar each time."""
        cached = self._constants.get((ir_type.text, text))
        if cached is not None:
            return cached
        if text.startswith("@"):
            scalar = Scalar("global", ir_type, word=text)
            scalar.name = self.pointers[scalar] = text
        elif expression := _EXPRESSION.match(text):
            scalar = self._expression(ir_type, split_list(expression[1]))
        else:
            number, bits = _number(text), ir_type.bits or 64
            if number is None:
                return Scalar("unknown", ir_type)
            number &= (1 << bits) - 1
            scalar = Scalar("constant", ir_type, number=number - (number >> bits - 1 << bits))
        self._constants[ir_type.text, text] = scalar
        return scalar

    def _expression(self, ir_type: IRType, parts: list[str]) -> Scalar:
        """Return the value of a constant expression: a pointer cast to another address space, or at an offset."""
        if len(parts) == 1:
            return self.constant(*split_type(parts[0].rpartition(" to ")[0]))
        if len(parts) == 3 and parts[0] == "i8":
            return Scalar("add", ir_type, (self.constant(*split_type(parts[1])), self.constant(*split_type(parts[2]))))
        return Scalar("unknown", ir_type)

    def loaded_part(self, value: Scalar, first_bit: int, ir_type: IRType) -> Scalar | None:
        """Return a load of some bits of a loaded value, counted from the lowest; None if no load yields them."""
        bits = ir_type.bits
        if value.op != "load" or value.inst is None or not bits or bits % 8 or value.bits % bits:
            return None
        if first_bit % bits or not 0 <= first_bit < value.bits:
            return None
        number = value.part * (value.bits // bits) + first_bit // bits
        key = value.inst.result, number, bits
        return self._parts.setdefault(key, Scalar("load", ir_type, (), value.inst, part=number))


def _component_texts(operand: Operand) -> list[str]:
    """Return the components of a constant vector."""
    text, count = operand.text, operand.type.count
    if text.startswith("splat ("):
        return [split_type(text[7:-1])[1]] * count
    if text.startswith("<"):
        return [split_type(part)[1] for part in split_list(text[1:-1])]
    return ["undef" if " " in text else text] * count  # the components of an expression are unknown


def _number(text: str) -> int | None:
    if text in {"true", "false"}:
        return int(text == "true")
    if text in {"null", "zeroinitializer"}:
        return 0
    return int(text) if text.lstrip("-").isdigit() else None
