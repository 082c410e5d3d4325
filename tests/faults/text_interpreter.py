"""An interpreter of LLVM IR for one thread, to compare the proofs with actual values.

Integers are taken modulo 2^bits, whatever a flag promises. Floating-point numbers are not computed: values that depend
on one are random. Reads beyond an end return 0, and writes there do nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from metalnb.engine.llvm.instructions import IRFunction, IRInstruction, IRModule, Operand
from metalnb.engine.llvm.llvm_types import IRType, split_list, split_type

__all__ = ["Interpreter", "Pointer", "TooLong", "Unknown"]


class TooLong(Exception):
    """Raised when a thread runs for too long."""


class Unknown(Exception):
    """Raised when the text contains something that is not interpreted."""


class Pointer(NamedTuple):
    """A position in one of the memories."""

    root: str
    at: int


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def _shift(by: Callable[[int, int], int]) -> Callable[[int, int, int], int]:
    return lambda a, b, bits: by(a, b) if b < bits else 0


def _divided(a: int, b: int, bits: int, *, rest: bool) -> int:
    a, b = signed(a, bits), signed(b, bits)
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return a - quotient * b if rest else quotient


BINARY: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda a, b, _: a + b, "sub": lambda a, b, _: a - b, "mul": lambda a, b, _: a * b,
    "udiv": lambda a, b, _: a // b, "urem": lambda a, b, _: a % b, "and": lambda a, b, _: a & b,
    "or": lambda a, b, _: a | b, "xor": lambda a, b, _: a ^ b, "shl": _shift(lambda a, b: a << b),
    "lshr": _shift(lambda a, b: a >> b), "ashr": lambda a, b, bits: signed(a, bits) >> min(b, bits - 1),
    "sdiv": lambda a, b, bits: _divided(a, b, bits, rest=False),
    "srem": lambda a, b, bits: _divided(a, b, bits, rest=True),
    "umin": lambda a, b, _: min(a, b), "umax": lambda a, b, _: max(a, b),
    "smin": lambda a, b, bits: min(signed(a, bits), signed(b, bits)),
    "smax": lambda a, b, bits: max(signed(a, bits), signed(b, bits)),
    "abs": lambda a, _, bits: abs(signed(a, bits)), "usub": lambda a, b, _: max(a - b, 0),
    "uadd": lambda a, b, bits: min(a + b, (1 << bits) - 1), "ctpop": lambda a, _, __: a.bit_count(),
}  # fmt: skip
COMPARED: dict[str, Callable[[int, int], bool]] = {
    "eq": int.__eq__, "ne": int.__ne__, "lt": int.__lt__, "le": int.__le__, "gt": int.__gt__, "ge": int.__ge__,
}  # fmt: skip


@dataclass
class Interpreter:
    """Runs a function; ``memory`` is keyed by the names of roots, which for arguments are their numbers.

    ``seen`` receives each instruction before it runs, with the known values.
    """

    module: IRModule
    function: IRFunction
    memory: dict[str, bytearray]
    stands: Mapping[str, int]
    region: bytes
    rng: random.Random
    seen: Callable[[IRInstruction, Mapping[str, Any]], None] = lambda _, __: None
    most: int = 3000
    values: dict[str, Any] = field(default_factory=dict)

    def run(self) -> None:
        """Run one thread."""
        given, region = (p.text for p in self.function.parameters)
        self.memory["region"] = bytearray(self.region)
        self.values = {given: Pointer("given", 0), region: Pointer("region", 0)}
        label, before, left = self.function.entry, "", self.most
        while label:
            block = self.function.blocks[label]
            phis = [i for i in block if i.opcode == "phi"]
            taken = {i.result: self._value(i.operands[i.targets.index(before)]) for i in phis}
            self.values.update(taken)
            for made in block[len(phis) :]:
                self.seen(made, self.values)
                left -= 1
                if left < 0:
                    raise TooLong
                if made.is_terminator:
                    label, before = self._next(made), label
                else:
                    found = self._made(made)
                    if made.result:
                        self.values[made.result] = found

    def _next(self, made: IRInstruction) -> str:
        if made.opcode == "br":
            return made.targets[0 if not made.operands or self._value(made.operands[0]) else 1]
        if made.opcode == "switch":
            value, bits = self._value(made.operands[0]), made.operands[0].type.bits
            cases = [int(case) % (1 << bits) for case in made.cases]
            return made.targets[1 + cases.index(value) if value in cases else 0]
        return ""

    # ---- Values: integers, pointers, None for a floating-point number, and lists of these.

    def _value(self, operand: Operand) -> Any:
        if operand.text in self.values:
            return self.values[operand.text]
        return self._constant(operand.type, operand.text)

    def _constant(self, ir_type: IRType, text: str) -> Any:
        if ir_type.kind == "vector":
            if text.startswith("<"):
                return [self._constant(*split_type(part)) for part in split_list(text[1:-1])]
            inside = split_type(text[7:-1])[1] if text.startswith("splat (") else text
            return [self._constant(ir_type.element, inside)] * ir_type.count
        if ir_type.kind == "integer":
            if text in {"undef", "poison"}:
                return self.rng.getrandbits(ir_type.bits)
            words = {"true": 1, "false": 0, "zeroinitializer": 0}
            return words[text] if text in words else int(text) % (1 << ir_type.bits)
        if ir_type.kind == "pointer":
            return Pointer(text, 0)
        return None

    def _each(self, made: IRInstruction, of: Callable[..., Any]) -> Any:
        arguments = [self._value(o) for o in made.operands]
        if made.type.kind != "vector":
            return of(*arguments)
        lists = [g if isinstance(g, list) else [g] * made.type.count for g in arguments]
        return [of(*each) for each in zip(*lists, strict=True)]

    def _drawn(self, ir_type: IRType) -> Any:
        if ir_type.kind == "vector":
            return [self._drawn(ir_type.element) for _ in range(ir_type.count)]
        return self.rng.getrandbits(ir_type.bits) if ir_type.kind == "integer" else None

    def _made(self, i: IRInstruction) -> Any:  # noqa: PLR0911  (one per case)
        bits = i.type.element.bits
        if i.type.element.kind == "integer" and i.opcode in BINARY:
            return self._each(i, lambda a, b: BINARY[i.opcode](a, b, bits) % (1 << bits))
        if i.opcode == "icmp":
            return self._each(i, lambda a, b: self._compare(i.word, a, b, i.operands[0].type.element.bits))
        if i.opcode == "select":
            return self._each(i, lambda flag, a, b: a if flag else b)
        if i.opcode in {"freeze", "inttoptr", "ptrtoint", "addrspacecast"}:
            return self._value(i.operands[0])
        if i.opcode in {"zext", "sext", "trunc"}:
            given = i.operands[0].type.element.bits
            return self._each(i, lambda a: (signed(a, given) if i.opcode == "sext" else a) % (1 << bits))
        if i.opcode == "bitcast":
            return self._cast(i)
        if i.opcode == "getelementptr":
            return self._pointed(i)
        if i.opcode in {"load", "store", "atomicrmw", "cmpxchg"}:
            return self._accessed(i)
        if i.opcode == "alloca":
            self.memory[i.result] = bytearray(self.rng.randbytes(self.module.layout.size(i.element or i.type)))
            return Pointer(i.result, 0)
        if i.opcode in {"extractelement", "insertelement", "shufflevector"}:
            return self._elements(i)
        return self._called(i) if i.opcode == "call" else self._drawn(i.type)

    def _compare(self, word: str, a: Any, b: Any, bits: int) -> int:
        if isinstance(a, Pointer) or isinstance(b, Pointer):
            return int((a == b) == (word == "eq"))
        if word[0] == "s":
            a, b = signed(a, bits), signed(b, bits)
        return int(COMPARED[word.lstrip("us") if len(word) == 3 else word](a, b))

    def _cast(self, i: IRInstruction) -> Any:
        given, ir_type = i.operands[0].type, i.type
        if given.kind == "vector" and given.element.kind == ir_type.kind == "integer":
            parts = self._value(i.operands[0])
            return sum(part << n * given.element.bits for n, part in enumerate(parts))
        same = given.components == ir_type.components and given.element.kind == ir_type.element.kind
        return self._value(i.operands[0]) if same else self._drawn(ir_type)

    def _elements(self, i: IRInstruction) -> Any:
        first = list(self._value(i.operands[0]))
        if i.opcode == "extractelement":
            return first[self._value(i.operands[1])]
        if i.opcode == "insertelement":
            first[self._value(i.operands[2])] = self._value(i.operands[1])
            return first
        both = [*first, *self._value(i.operands[1])]
        return [both[place % len(both)] for place in self._value(i.operands[2])]

    def _pointed(self, i: IRInstruction) -> Pointer:
        start, kind, layout = self._value(i.operands[0]), i.element, self.module.layout
        at = start.at
        for n, operand in enumerate(i.operands[1:]):
            assert kind is not None
            index = signed(self._value(operand), operand.type.bits)
            if n and layout.resolve(kind).kind == "struct":
                more, kind = layout.field(kind, index)
                at += more
            else:
                kind = layout.resolve(kind).element if n else kind
                at += index * layout.size(kind)
        return Pointer(start.root, signed(at % (1 << 64), 64))

    # ---- Memory.

    def _parts(self, ir_type: IRType) -> Iterator[tuple[int, IRType]]:
        size = -(-ir_type.element.bits // 8)
        for n in range(ir_type.components):
            yield n * size, ir_type.element

    def read(self, pointer: Pointer, ir_type: IRType) -> Any:
        """Return the contents of memory."""
        if pointer.root == "given":
            return Pointer(str(pointer.at // 8), 0)
        memory, found = self.memory[pointer.root], []
        for at, part in self._parts(ir_type):
            first, size = pointer.at + at, -(-part.bits // 8)
            inside = 0 <= first <= len(memory) - size
            number = int.from_bytes(memory[first : first + size], "little") if inside else 0
            found.append(number % (1 << part.bits) if part.kind == "integer" else None)
        return found if ir_type.kind == "vector" else found[0]

    def write(self, pointer: Pointer, ir_type: IRType, value: Any) -> None:
        """Write to memory."""
        memory, values = self.memory[pointer.root], value if isinstance(value, list) else [value]
        for (at, part), one in zip(self._parts(ir_type), values, strict=True):
            first, size = pointer.at + at, -(-part.bits // 8)
            if 0 <= first <= len(memory) - size:
                number = one if isinstance(one, int) else self.rng.getrandbits(8 * size)
                memory[first : first + size] = (number % (1 << 8 * size)).to_bytes(size, "little")

    def _accessed(self, i: IRInstruction) -> Any:
        pointer = self._value(i.pointer)
        if i.type.is_aggregate or any(o.type.is_aggregate for o in i.operands):
            raise Unknown(i.text)
        if i.opcode == "load":
            return self.read(pointer, i.type)
        if i.opcode == "store":
            return self.write(pointer, i.operands[0].type, self._value(i.operands[0]))
        kind = i.operands[1].type
        before = self.read(pointer, kind)
        self.write(pointer, kind, self._drawn(kind))
        return before if i.opcode == "atomicrmw" else None

    def _called(self, i: IRInstruction) -> Any:
        name = i.word
        if name == "metalnb_storage":
            return Pointer(i.operands[0].text, 0)
        if name.startswith("metalnb_"):
            return self.stands.get(name.removeprefix("metalnb_"), None) if name != "metalnb_barrier" else None
        op = name.split(".")[1] if name.startswith("llvm.") else ""
        if op in BINARY and i.type.element.kind == "integer" and "overflow" not in name:
            bits = i.type.element.bits
            return self._each(i, lambda a, b=0: BINARY[op](a, b, bits) % (1 << bits))
        if op in {"memcpy", "memmove", "memset"}:
            return self._copied(i, op)
        return self._drawn(i.type)

    def _copied(self, i: IRInstruction, op: str) -> None:
        to, source, count = (self._value(o) for o in i.operands[:3])
        for n in range(count):
            byte = source & 255 if op == "memset" else self.read(Pointer(source.root, source.at + n), _BYTE)
            self.write(Pointer(to.root, to.at + n), _BYTE, byte)


_BYTE = split_type("i8")[0]
