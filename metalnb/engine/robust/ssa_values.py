"""A function's values as a graph of scalars: vectors by their components, copies by what they copy.

Pointers and 64-bit integers are one kind here: what converts between them is a copy. The flags by which LLVM may take
a value for poison (``nsw``, ``inbounds``, …) are left out: every operation is what it is modulo two to the number of
its bits. A value that is undefined is a value of its own wherever it is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ..llvm.instructions import IRFunction, IRInstruction, Operand
from ..llvm.llvm_types import IRType, parts_of, split_type, type_of

__all__ = ["Scalar", "Values"]

_BINARY = frozenset({
    "add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor",
})  # fmt: skip
_RELATIONS = {
    "eq": "==", "ne": "!=", "ult": "u<", "ule": "u<=", "ugt": "u>", "uge": "u>=",
    "slt": "s<", "sle": "s<=", "sgt": "s>", "sge": "s>=",
}  # fmt: skip
_INTRINSICS = {
    f"llvm.{name}": name.replace(".", "_")
    for name in ("umin", "umax", "smin", "smax", "abs", "usub.sat", "uadd.sat", "ctpop", "ctlz", "cttz")
}
_REDUCED = {"llvm.vector.reduce.or": "or", "llvm.vector.reduce.and": "and"}
_OVERFLOW = {f"llvm.{sign}{op}.with.overflow": op for sign in "us" for op in ("add", "sub", "mul")}
_WITHIN = re.compile(r'getelementptr [a-z ]*\(i8, ptr (@(?:"[^"]*"|[-\w.$]+)), i64 (-?\d+)\)$')
_COPIES = frozenset({"llvm.expect", "llvm.ssa.copy", "llvm.launder.invariant.group"})


class Scalar:
    """A scalar.

    Attributes
    ----------
    op : str
        LLVM's opcode, the name of an intrinsic (``umin``), ``constant``, ``global``, ``parameter``, or ``unknown``.
    bits : int
        64 for what is no integer.
    integer : bool
    operands : tuple of Scalar
        Of ``call`` none.
    word : str
        What an ``icmp`` says of its operands (``u<``); of ``global`` and ``parameter`` the name.
    labels : list of str
        The blocks that the operands of a ``phi`` come from, each once.
    number : int
        A constant, as a signed integer.
    part : int
        Which component of its instruction it is; of a load, counted in its own size.
    made : IRInstruction or None
    block : str
        An empty string for what no block makes.
    name : str
        LLVM's; an empty string for a component.
    """

    __slots__ = (
        "bits", "block", "integer", "labels", "made", "name", "number", "op", "operands", "part", "word",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913  (a record)
        self, op: str, kind: IRType, operands: Iterable[Scalar] = (), made: IRInstruction | None = None, *,
        word: str = "", number: int = 0, part: int = 0,
    ) -> None:  # fmt: skip
        self.op = op
        self.integer = kind.kind == "integer"
        self.bits = kind.bits if self.integer else 64
        self.operands = tuple(operands)
        self.word, self.number, self.part = word, number, part
        self.labels: list[str] = []
        self.made = made
        self.block = made.block if made else ""
        self.name = ""

    def __repr__(self) -> str:
        return self.name or (str(self.number) if self.op == "constant" else f"{self.op}.{self.part}")

    @property
    def is_constant(self) -> bool:
        """Whether it is a number that the text has."""
        return self.op == "constant"


class ScalarGraph:
    """The values of a function.

    Parameters
    ----------
    function : IRFunction
    order : iterable of str
        Its blocks, each after those that dominate it.

    Attributes
    ----------
    pointers : dict of Scalar to str
        A name of LLVM's for each that is somewhere of the type of a pointer.
    switched : dict of str to list of (Scalar, str)
        For each block that ends in a ``switch`` a comparison and a target for each of its cases.
    """

    def __init__(self, function: IRFunction, order: Iterable[str]) -> None:
        reached = dict.fromkeys(order)
        self._known: dict[str, list[Scalar]] = {}
        self._parts: dict[tuple[str, int, int], Scalar] = {}  # of what is loaded
        self._constants: dict[tuple[str, str], Scalar] = {}
        self.pointers: dict[Scalar, str] = {}
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

    def named(self, name: str) -> Scalar:
        """Return the value of a name; of a vector the first component."""
        return self.of(Operand(_POINTER, name))

    def of(self, operand: Operand) -> Scalar:
        """Return an operand's value."""
        return self.components(operand)[0]

    def components(self, operand: Operand) -> list[Scalar]:
        """Return an operand's components; of a scalar it alone."""
        known = self._known.get(operand.text)
        if known is not None:
            return known
        kind = operand.type
        if kind.kind != "vector":
            return [self._constant(kind, operand.text)]
        return [self._constant(kind.element, text) for text in _texts(operand)]

    def made_by(self, made: IRInstruction) -> list[Scalar]:
        """Return the components of an instruction's value."""
        return self._known[made.result]

    def _name(self, name: str, kind: IRType, made: list[Scalar]) -> None:
        self._known[name] = made
        if len(made) == 1:
            made[0].name = made[0].name or name
            if kind.kind == "pointer":
                self.pointers.setdefault(made[0], name)

    def _constant(self, kind: IRType, text: str) -> Scalar:
        known = self._constants.get((kind.text, text))
        if known is not None:
            return known
        if text.startswith("@"):
            made = Scalar("global", kind, word=text)
            made.name = self.pointers[made] = text
        elif found := _WITHIN.match(text):
            first, at = self._constant(kind, found[1]), self._constant(_WORD, found[2])
            made = Scalar("add", kind, (first, at))
        else:
            number, bits = _number(text), kind.bits or 64
            if number is None:
                return Scalar("unknown", kind)
            number &= (1 << bits) - 1
            made = Scalar("constant", kind, number=number - (number >> bits - 1 << bits))
        self._constants[kind.text, text] = made
        return made

    def _cases(self, made: IRInstruction) -> list[tuple[Scalar, str]]:
        kind = made.operands[0].type
        chosen = self.of(made.operands[0])
        return [
            (Scalar("icmp", _BIT, (chosen, self._constant(kind, case)), made, word="=="), target)
            for case, target in zip(made.cases, made.targets[1:], strict=True)
        ]

    # ---- What an instruction makes, component by component.

    def _made(self, i: IRInstruction) -> list[Scalar]:
        form = _FORMS.get(i.opcode)
        found = form(self, i) if form else None
        return found or self._opaque(i)

    def _opaque(self, i: IRInstruction) -> list[Scalar]:
        """Return components of which nothing is known but what makes them."""
        kind = i.type.element if i.type.kind == "vector" else i.type
        return [Scalar(i.opcode, kind, (), i, part=part) for part in range(i.type.components)]

    def _each(self, i: IRInstruction, op: str = "", word: str = "") -> list[Scalar]:
        """Return what is made of each component of all operands; a scalar goes with every component."""
        kind, parts = i.type.element, i.type.components
        given = [self.components(operand) for operand in i.operands]
        given = [each if len(each) == parts else each * parts for each in given]
        return [Scalar(op or i.opcode, kind, [g[part] for g in given], i, word=word, part=part) for part in range(parts)]

    def _truncated(self, i: IRInstruction) -> list[Scalar]:
        value, at = self.of(i.operands[0]), 0
        if value.op == "lshr" and value.operands[1].is_constant:
            value, at = value.operands[0], value.operands[1].number
        part = self._part(value, at, i.type) if i.type.kind == "integer" else None
        if part is None and not at and value.op == "zext" and value.operands[0].bits == i.type.bits:
            part = value.operands[0]
        return self._each(i) if part is None else [part]

    def _halved(self, i: IRInstruction) -> list[Scalar]:
        """Return, of the upper or the lower half of what was loaded, a load of that half."""
        value, by = (self.components(operand)[0] for operand in i.operands)
        half = (1 << value.bits // 2) - 1
        wanted = value.bits // 2 if i.opcode == "lshr" else half
        if i.type.kind == "integer" and by.is_constant and by.number == wanted:
            kind = type_of(f"i{value.bits // 2}")
            part = self._part(value, wanted if i.opcode == "lshr" else 0, kind)
            if part is not None:
                return [Scalar("zext", i.type, (part,), i)]
        return self._each(i)

    def _part(self, value: Scalar, at: int, kind: IRType) -> Scalar | None:
        """Return a load of some bits of what was loaded, counted from the lowest; None where they are no such part."""
        bits = kind.bits
        if value.op != "load" or value.made is None or not bits or bits % 8 or value.bits % bits or at % bits or at >= value.bits:
            return None
        part = value.part * (value.bits // bits) + at // bits
        key = value.made.result, part, bits
        return self._parts.setdefault(key, Scalar("load", kind, (), value.made, part=part))

    def _compared(self, i: IRInstruction) -> list[Scalar]:
        return self._each(i, word=_RELATIONS[i.word])

    def _copied(self, i: IRInstruction) -> list[Scalar] | None:
        return self.components(i.operands[0])

    def _converted(self, i: IRInstruction) -> list[Scalar] | None:
        """Return what a pointer or an integer of 64 bits is as the other."""
        return self.components(i.operands[0]) if i.operands[0].type.bits == i.type.bits == 64 else None

    def _cast(self, i: IRInstruction) -> list[Scalar] | None:
        given = i.operands[0].type
        if given.components == i.type.components and {given.element.kind, i.type.element.kind} == {"integer"}:
            return self.components(i.operands[0])
        if given.kind == "vector" and given.element.kind == i.type.kind == "integer":
            return [Scalar("pack", i.type, self.components(i.operands[0]), i)]
        return None

    def _extracted(self, i: IRInstruction) -> list[Scalar] | None:
        whole, place = self.components(i.operands[0]), self.of(i.operands[1])
        return [whole[place.number]] if place.is_constant and 0 <= place.number < len(whole) else None

    def _inserted(self, i: IRInstruction) -> list[Scalar] | None:
        whole, place = list(self.components(i.operands[0])), self.of(i.operands[2])
        if not place.is_constant or not 0 <= place.number < len(whole):
            return None
        whole[place.number] = self.of(i.operands[1])
        return whole

    def _shuffled(self, i: IRInstruction) -> list[Scalar]:
        both = [*self.components(i.operands[0]), *self.components(i.operands[1])]
        places = self.components(i.operands[2])
        return [both[p.number] if p.is_constant else Scalar("unknown", i.type.element) for p in places]

    def _field(self, i: IRInstruction) -> list[Scalar] | None:
        """Return the result of an operation that also tells of an overflow."""
        made = self.of(i.operands[0]).made
        op = _OVERFLOW.get(made.word.rpartition(".")[0]) if made is not None and made.opcode == "call" else None
        if made is None or op is None or i.indices != (0,):
            return None
        return [Scalar(op, i.type, [self.of(o) for o in made.operands], i)]

    def _called(self, i: IRInstruction) -> list[Scalar] | None:
        name = i.word.rpartition(".")[0]
        if name in _COPIES:
            return self._copied(i)
        if name in _INTRINSICS:
            return self._each(i, _INTRINSICS[name])
        if name in _REDUCED:
            first, *rest = self.components(i.operands[0])
            for each in rest:
                first = Scalar(_REDUCED[name], i.type, (first, each), i)
            return [first]
        return None

    def _pointed(self, i: IRInstruction) -> list[Scalar] | None:
        if i.type.kind == "vector":
            return None
        return [Scalar("getelementptr", i.type, [self.of(o) for o in i.operands], i)]


def _texts(operand: Operand) -> list[str]:
    """Return the components of a constant vector."""
    text, count = operand.text, operand.type.count
    if text.startswith("splat ("):
        return [split_type(text[7:-1])[1]] * count
    if text.startswith("<"):
        return [split_type(part)[1] for part in parts_of(text[1:-1])]
    return [text] * count


def _number(text: str) -> int | None:
    if text in {"true", "false"}:
        return int(text == "true")
    if text in {"null", "zeroinitializer"}:
        return 0
    return int(text) if text.lstrip("-").isdigit() else None


_POINTER, _BIT, _WORD = IRType("ptr", "pointer", 64), IRType("i1", "integer", 1), IRType("i64", "integer", 64)
_Form = Callable[[ScalarGraph, IRInstruction], list[Scalar] | None]
_FORMS: dict[str, _Form] = {
    **dict.fromkeys((*_BINARY, "select", "zext", "sext"), ScalarGraph._each),
    "trunc": ScalarGraph._truncated, "lshr": ScalarGraph._halved, "and": ScalarGraph._halved,
    "icmp": ScalarGraph._compared, "freeze": ScalarGraph._copied, "bitcast": ScalarGraph._cast, "addrspacecast": ScalarGraph._copied,
    "inttoptr": ScalarGraph._converted, "ptrtoint": ScalarGraph._converted, "extractelement": ScalarGraph._extracted,
    "insertelement": ScalarGraph._inserted, "shufflevector": ScalarGraph._shuffled, "extractvalue": ScalarGraph._field,
    "call": ScalarGraph._called, "getelementptr": ScalarGraph._pointed,
}  # fmt: skip
