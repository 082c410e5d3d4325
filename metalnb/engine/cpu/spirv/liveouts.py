"""Carry values out of loops with several exits as what they are: one for each thread.

The CPU runtime's vectoriser turns a loop with several exits into one with a single exit. There it takes a value that is
the same for all threads *inside* the loop (a counter) for the same *behind* it, where each thread has the value of the
iteration in which it left: ``for (n = 0; n < limit; ++n) if (|z| > 2) { out = n; break; }`` gave all 32 threads of a
SIMD-group one n. So what such a loop carries from iteration to iteration, and lets out, starts from a sum with a zero
that the vectoriser cannot tell to be the same for all threads; all that is computed from it is then each thread's own.

Source: SPIR-V specification 1.4, 2.3 (physical layout), 2.4 (logical layout), 3.21 (built-in variables).
"""

from __future__ import annotations

import array
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .module import HEADER, TYPES, Instruction, instructions, operands, result_types, words_of

__all__ = ["divergent_liveouts"]

_ENTRY_POINT, _DECORATE, _VARIABLE, _FUNCTION, _FUNCTION_END, _LABEL, _PHI = 15, 71, 59, 54, 56, 248, 245
_BOOL, _INT, _FLOAT, _VECTOR, _POINTER = 20, 21, 22, 23, 32
_LOAD, _SHIFT_RIGHT, _CONVERT, _ADD, _BITCAST, _CONSTRUCT, _NOT_EQUAL, _OR, _ELEMENT = (
    61, 194, 113, 128, 124, 80, 171, 166, 70,
)  # fmt: skip
_BRANCH, _CONDITIONAL, _SWITCH = 249, 250, 251
_LANE, _LANE_NAME = 41, "__spirv_BuiltInSubgroupLocalInvocationId"
_INPUT = 1

class _Block(NamedTuple):
    label: int
    body: list[Instruction]
    next: tuple[int, ...]


def divergent_liveouts(code: bytes) -> bytes:
    """Rewrite a SPIR-V module; one without such a loop, or not understood, is given back as it is."""
    words = words_of(code)
    return code if words is None else _Rewriter(words).run()


class _Rewriter:
    """Collects what is inserted and replaced in one module."""

    def __init__(self, words: array.array[int]) -> None:
        self.words = words
        self.all = list(instructions(words))
        self.bound = words[3]
        self.types: dict[int, tuple[int, ...]] = {}  # id -> opcode and operands
        self.found: dict[tuple[int, ...], int] = {}  # the other way round
        self.type_of = result_types(words)
        self.lane = 0
        for at, opcode, length in self.all:
            if opcode in TYPES:
                key = (opcode, *words[at + 2 : at + length])
                self.types[words[at + 1]] = key
                self.found.setdefault(key, words[at + 1])
            elif opcode == _DECORATE and length == 4 and words[at + 2] == 11 and words[at + 3] == _LANE:
                self.lane = words[at + 1]
        self.declared = array.array("I")  # new types, constants and the lane's variable
        self.decorated = array.array("I")
        self.after: dict[int, array.array[int]] = {}  # offset of an instruction -> words behind it
        self.patched: dict[int, int] = {}  # offset of a word -> new word
        self.zeros: dict[int, int] = {}  # type -> its zero, in the function at hand
        self.sums: dict[int, int] = {}  # value -> its sum with the zero, in the function at hand

    def run(self) -> bytes:
        """Rewrite every function that needs it."""
        for function in _functions(self.words, self.all, self._step):
            self.zeros, self.sums = {}, {}
            blocks = {b.label: b for b in function}
            for head, body in _loops(function, blocks):
                self._loop(function, blocks, body, head)
        if not self.after:
            return self.words.tobytes()
        return self._written()

    def _loop(self, function: list[_Block], blocks: dict[int, _Block], body: set[int], head: int) -> None:
        leaving = {label for label in body if any(n not in body for n in blocks[label].next)}
        if len(leaving) < 2:
            return
        inside = {self.words[i.at + 2]: i for label in body for i in blocks[label].body if self._makes(i)}
        used = {
            self.words[at]
            for block in function if block.label not in body
            for i in block.body for at in operands(i)
        }  # fmt: skip
        carried = {self.words[i.at + 2] for i in blocks[head].body if i.opcode == _PHI}
        for phi in self._sources(sorted(used & inside.keys()), inside, carried):
            self._diverge(function, inside[phi], body)

    def _makes(self, i: Instruction) -> bool:
        """Tell whether an instruction makes a value."""
        return i.length > 2 and self.type_of.get(self.words[i.at + 2]) == self.words[i.at + 1]

    def _sources(self, values: list[int], inside: dict[int, Instruction], carried: set[int]) -> set[int]:
        """Give the phis at the loop's head that values are computed from."""
        found: set[int] = set()
        seen = set(values)
        ahead = list(values)
        while ahead:
            value = ahead.pop()
            if value in carried:
                found.add(value)  # what is computed from it is then different for each thread, too
                continue
            for at in operands(inside[value]):
                operand = self.words[at]
                if operand in inside and operand not in seen:
                    seen.add(operand)
                    ahead.append(operand)
        return found

    def _diverge(self, function: list[_Block], phi: Instruction, body: set[int]) -> None:
        """Let a phi start from a sum with the zero."""
        kind = self.words[phi.at + 1]
        for at in range(phi.at + 3, phi.at + phi.length, 2):
            if self.words[at + 1] in body or at in self.patched:
                continue
            made = self._sum(function, self.words[at], kind)
            if made:
                self.patched[at] = made

    def _step(self, selector: int) -> int:
        """Give the words of a case of a switch: its literal, and its label."""
        return 3 if self.types.get(self.type_of.get(selector, 0), ())[:2] == (_INT, 64) else 2

    # Values ----------------------------------------------------------------------------------

    def _id(self) -> int:
        self.bound += 1
        return self.bound - 1

    def _declare(self, *key: int) -> int:
        """Give a type, declared if it is new."""
        if key not in self.found:
            self.found[key] = made = self._id()
            self.types[made] = key
            self.declared.extend(((len(key) + 1) << 16 | key[0], made, *key[1:]))
        return self.found[key]

    def _emit(self, behind: Instruction, opcode: int, kind: int, *operands: int) -> int:
        made = self._id()
        text = self.after.setdefault(behind.at, array.array("I"))
        text.extend(((len(operands) + 3) << 16 | opcode, kind, made, *operands))
        return made

    def _sum(self, function: list[_Block], value: int, kind: int) -> int:
        """Add the zero to a value, where it is made; 0 when its type cannot be added to."""
        if value in self.sums:
            return self.sums[value]
        opcode = self.types.get(kind, (0,))[0]
        whole = self._declare(_INT, 32, 0) if opcode == _POINTER else kind if opcode == _BOOL else self._integer(kind)
        if not whole:
            return 0
        zero = self._zero(function, whole)
        behind = self._definition(function, value)
        if opcode == _BOOL:
            made = self._emit(behind, _OR, kind, value, zero)
        elif opcode == _POINTER:
            made = self._emit(behind, _ELEMENT, kind, value, zero)
        elif whole == kind:
            made = self._emit(behind, _ADD, kind, value, zero)
        else:
            bits = self._emit(behind, _BITCAST, whole, value)
            made = self._emit(behind, _BITCAST, kind, self._emit(behind, _ADD, whole, bits, zero))
        self.sums[value] = made
        return made

    def _definition(self, function: list[_Block], value: int) -> Instruction:
        """Give the instruction behind which a value is known: the function's start for a constant or a parameter."""
        for block in function:
            for i in block.body:
                if self._makes(i) and self.words[i.at + 2] == value:
                    phis = [p for p in block.body if p.opcode == _PHI]
                    return phis[-1] if i.opcode == _PHI else i
        return _start(function)

    def _integer(self, kind: int) -> int:
        """Give the integer type of the same shape; 0 when there is none."""
        opcode, *rest = self.types.get(kind, (0,))
        if opcode == _INT:
            return kind
        if opcode == _FLOAT:
            return self._declare(_INT, rest[0], 0)
        if opcode == _VECTOR:
            inner = self._integer(rest[0])
            return self._declare(_VECTOR, inner, rest[1]) if inner else 0
        return 0

    def _zero(self, function: list[_Block], kind: int) -> int:
        """Give a zero of a type, made at the function's start from the thread's place in its SIMD-group."""
        if kind in self.zeros:
            return self.zeros[kind]
        start = _start(function)
        short = self._declare(_INT, 32, 0)
        opcode, *rest = self.types[kind]
        if kind == short:
            five = self._constant(short, 5)
            lane = self._emit(start, _LOAD, short, self._lane_variable(short))
            made = self._emit(start, _SHIFT_RIGHT, short, lane, five)
        elif opcode == _INT:
            made = self._emit(start, _CONVERT, kind, self._zero(function, short))
        elif opcode == _VECTOR:
            part = self._zero(function, rest[0])
            made = self._emit(start, _CONSTRUCT, kind, *[part] * rest[1])
        else:  # bool
            made = self._emit(start, _NOT_EQUAL, kind, self._zero(function, short), self._constant(short, 0))
        self.zeros[kind] = made
        return made

    def _constant(self, kind: int, value: int) -> int:
        key = (-1, kind, value)
        if key not in self.found:
            self.found[key] = made = self._id()
            self.declared.extend((4 << 16 | 43, kind, made, value))
        return self.found[key]

    def _lane_variable(self, short: int) -> int:
        if not self.lane:
            pointer = self._declare(_POINTER, _INPUT, short)
            self.lane = made = self._id()
            self.declared.extend((4 << 16 | _VARIABLE, pointer, made, _INPUT))
            name = _LANE_NAME.encode() + b"\0" * (4 - len(_LANE_NAME) % 4)
            letters = array.array("I", name)
            self.decorated.extend((3 << 16 | _DECORATE, made, 22))  # Constant
            self.decorated.extend(((4 + len(letters)) << 16 | _DECORATE, made, 41, *letters, 1))  # imported
            self.decorated.extend((4 << 16 | _DECORATE, made, 11, _LANE))
        return self.lane

    def _written(self) -> bytes:
        """Give the module with everything in its place."""
        words, out = self.words, array.array("I", self.words[:HEADER])
        out[3] = self.bound
        new_lane = bool(self.decorated)
        typed = functions = False
        for at, opcode, length in self.all:
            if opcode in TYPES and not typed:
                out.extend(self.decorated)
                typed = True
            if opcode == _FUNCTION and not functions:
                out.extend(self.declared)
                functions = True
            start = len(out)
            out.extend(self.patched.get(i, words[i]) for i in range(at, at + length))
            if opcode == _ENTRY_POINT and new_lane:
                out[start] = (length + 1) << 16 | opcode
                out.append(self.lane)
            out.extend(self.after.get(at, ()))
        return out.tobytes()


def _functions(
    words: array.array[int], every: list[Instruction], step: Callable[[int], int],
) -> Iterator[list[_Block]]:  # fmt: skip
    """Yield each function's blocks, the first one first."""
    blocks: list[_Block] = []
    body: list[Instruction] | None = None
    label = 0
    for instruction in every:
        at, opcode, _ = instruction
        if opcode == _LABEL:
            label, body = words[at + 1], [instruction]
        elif opcode == _FUNCTION_END:
            if blocks:
                yield blocks
            blocks = []
        elif body is not None:
            body.append(instruction)
            if opcode in {_BRANCH, _CONDITIONAL, _SWITCH} or 252 <= opcode <= 255:
                blocks.append(_Block(label, body, _successors(words, instruction, step)))
                body = None


def _successors(words: array.array[int], last: Instruction, step: Callable[[int], int]) -> tuple[int, ...]:
    at, opcode, length = last
    if opcode == _BRANCH:
        return (words[at + 1],)
    if opcode == _CONDITIONAL:
        return (words[at + 2], words[at + 3])
    if opcode == _SWITCH:
        each = step(words[at + 1])
        return (words[at + 2], *words[at + 2 + each : at + length : each])
    return ()


def _start(function: list[_Block]) -> Instruction:
    """Give the instruction behind which the function's own may start: its label, or the last of its variables."""
    body = function[0].body
    return next((i for i in reversed(body) if i.opcode == _VARIABLE), body[0])


def _loops(function: list[_Block], blocks: dict[int, _Block]) -> Iterator[tuple[int, set[int]]]:
    """Yield the head and the blocks of each natural loop."""
    order = _reverse_postorder(function, blocks)
    place = {label: i for i, label in enumerate(order)}
    before: dict[int, list[int]] = {label: [] for label in order}
    for label in order:
        for n in blocks[label].next:
            before[n].append(label)
    above = _dominators(order, place, before)
    bodies: dict[int, set[int]] = {}
    for label in order:
        for head in blocks[label].next:
            if not _dominates(above, head, label):
                continue
            body = bodies.setdefault(head, {head})
            ahead = [label]
            while ahead:
                block = ahead.pop()
                if block not in body:
                    body.add(block)
                    ahead += before[block]
    yield from bodies.items()


def _reverse_postorder(function: list[_Block], blocks: dict[int, _Block]) -> list[int]:
    order: list[int] = []
    seen = {function[0].label}
    ahead = [(function[0].label, iter(blocks[function[0].label].next))]
    while ahead:
        label, rest = ahead[-1]
        following = next((n for n in rest if n not in seen), None)
        if following is None:
            order.append(label)
            ahead.pop()
        else:
            seen.add(following)
            ahead.append((following, iter(blocks[following].next)))
    return order[::-1]


def _dominators(order: list[int], place: dict[int, int], before: dict[int, list[int]]) -> dict[int, int]:
    """Give each block's immediate dominator (Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm, 2001)."""
    above = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for label in order[1:]:
            known = [b for b in before[label] if b in above]
            best = known[0]
            for other in known[1:]:
                while best != other:
                    while place[best] > place[other]:
                        best = above[best]
                    while place[other] > place[best]:
                        other = above[other]  # noqa: PLW2901
            if above.get(label) != best:
                above[label] = best
                changed = True
    return above


def _dominates(above: dict[int, int], head: int, label: int) -> bool:
    while label != head:
        if above[label] == label:
            return False
        label = above[label]
    return True
