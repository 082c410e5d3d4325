"""Put a check before each access of a module: a read beyond the end gives 0, a write or an atomic does not happen.

A check is a branch around the access. For the device's vectoriser that is a mask, so that consecutive reads stay
consecutive; an index that is clamped, as WebGPU's compilers do, would make a gather of each read.

The kernel gets one argument more, the table of ``watch_table.py``: how long each buffer is, and words for each checked
access where its last faults are recorded, one for each lane of a SIMD-group. That is one plain store of consecutive
words under a mask; a single word for all lanes took more time than the rest of the check. An atomic that keeps the
first fault was tried: it doubled the time of a copy, and in a loop the device's compiler gave up on vectorising.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from ..spirv.hiding.opaque import built_in_variable
from ..spirv.module import BasicBlock, Body, Instruction, Module
from ..spirv.opcodes import Spv
from .proofs.pointers import Access, PointerPlace, Roots, TypeSizes
from .watch_table import ELEMENTS, GRID, LANES, SIZES, THREADS, WRONG

__all__ = ["check", "first_slot", "take_table", "unit_of"]

_GLOBAL, _FUNCTION, _GENERIC, _INPUT = 5, 7, 8, 1
_POINTER = int(Spv.TYPE_POINTER)
_GLOBAL_ID = (28, b"__spirv_BuiltInGlobalInvocationId")
_LANE_ID = (41, b"__spirv_BuiltInSubgroupLocalInvocationId")
_ALIGNED = (2, 8)  # operands of a load or store of the table
_SUB_GROUP = range(Spv.GROUP_NON_UNIFORM_ELECT, Spv.GROUP_NON_UNIFORM_LOGICAL_OR + 1)


class _Condition(NamedTuple):
    access: Access
    holds: int
    element: int  # where it would be, in units of `unit_of`


def first_slot(arguments: int) -> int:
    """Return where in the table the words of the faults begin, `LANES` for each access."""
    return SIZES + 2 * arguments


def unit_of(place: PointerPlace) -> tuple[int, int]:
    """Return the bytes of a fault's unit, and where its unit 0 is: a single index counts by itself."""
    if len(place.terms) == 1 and place.fixed >= 0 and place.terms[0][1] > 0:
        return place.terms[0][1], place.fixed
    common = math.gcd(place.fixed, *(step for _, step in place.terms)) or 1
    return common & -common, 0  # a power of two


def take_table(module: Module) -> dict[int, int]:
    """Give each function the table as its last parameter; return the parameters by function."""
    pointer = module.declare(Spv.TYPE_POINTER, _GLOBAL, module.integer(64))
    made = {}
    for function in module.functions:
        if function.blocks:
            start = function.head[0]
            _, result, *params = module.key(start.words[4])
            start.words[4] = module.declare(Spv.TYPE_FUNCTION, result, *params, pointer)
            param = Instruction(Spv.FUNCTION_PARAMETER, [0, pointer, module.fresh()])
            module.definitions[param.result] = param
            function.head.append(param)
            made[function.name] = param.result
    for function in module.functions:
        for i in function:
            if i.op == Spv.FUNCTION_CALL and i.words[3] in made:
                i.words.append(made[function.name])
    return made


def check(
    module: Module, layout: TypeSizes, roots: Roots, params: Mapping[int, int], found: Collection[Access],
    tables: Mapping[int, int], *, wide: bool = True,
) -> None:  # fmt: skip
    """Check these accesses.

    Parameters
    ----------
    params : mapping of int to int
        The number of each of the entry point's arguments.
    tables : mapping of int to int
        From `take_table`.
    wide : bool
        Whether a buffer may have 2^31 bytes or more.
    """
    slots = {a.number: first_slot(len(params)) + LANES * n for n, a in enumerate(sorted(found, key=lambda a: a.number))}
    for function in module.functions:
        mine = [a for a in found if a.function is function]
        if mine:
            _Checks(module, layout, roots, params, function, tables[function.name], slots, wide=wide).run(mine)


class _Checks:
    """The checks of one function."""

    def __init__(
        self, module: Module, layout: TypeSizes, roots: Roots, params: Mapping[int, int], function: Body, table: int,
        slots: Mapping[int, int], *, wide: bool,
    ) -> None:  # fmt: skip
        self._slots, self._wide = slots, wide
        self._module, self._layout, self._roots = module, layout, roots
        self._params, self._function, self._table = params, function, table
        self._word = module.integer(64)
        self._bool = module.declare(Spv.TYPE_BOOL)
        self._pointer = module.declare(Spv.TYPE_POINTER, _GLOBAL, self._word)
        self._counts: dict[tuple[int, ...], int] = {}
        self._cut_limits: dict[int, int] = {}
        self._read: dict[int, int] = {}
        self._own = {i for i in function.blocks[0].instructions if i.op == Spv.VARIABLE}
        self._merged: set[Instruction] = set()
        self._thread = self._position()
        self._lane = self._place_of_lane()

    def run(self, found: list[Access]) -> None:
        """Check these accesses."""
        conditions: dict[Instruction, list[_Condition]] = {}
        for access in found:
            condition = self._condition(access)
            if condition:
                conditions.setdefault(access.instruction, []).append(condition)
        self._module.settle()
        blocks: list[BasicBlock] = []
        renamed: dict[int, int] = {}
        for block in self._function.blocks:
            blocks += self._cut(block, conditions)
            renamed[block.label] = blocks[-1].label
        for block in blocks:
            for i in block.instructions:
                if i.op == Spv.PHI and i not in self._merged:
                    i.words[4::2] = [renamed.get(label, label) for label in i.words[4::2]]
        self._function.blocks = blocks

    def _place_of_lane(self) -> int:
        """Return which of an access's words is the lane's.

        To ask for the lane is a sub-group operation: where there is no other, the device would make vector code under
        a mask of what it runs as scalar code, for one thread in a threadgroup above all.
        """
        if not any(i.op in _SUB_GROUP for function in self._module.functions for i in function):
            return self._constant(0)
        short = self._module.integer(32)
        lane = self._start(Spv.LOAD, short, built_in_variable(self._module, short, *_LANE_ID))
        return self._start(Spv.U_CONVERT, self._word, lane)

    def _position(self) -> int:
        """Return what a fault's word says of its thread: made once, at the function's start."""
        three = self._module.declare(Spv.TYPE_VECTOR, self._word, 3)
        ids = self._start(Spv.LOAD, three, built_in_variable(self._module, three, *_GLOBAL_ID), *_ALIGNED)
        x, y, z = (self._start(Spv.COMPOSITE_EXTRACT, self._word, ids, axis) for axis in range(3))
        width, height = self._entry_of_table(GRID), self._entry_of_table(GRID + 1)
        for upper, size, lower in ((z, height, y), (0, width, x)):
            y = self._start(Spv.I_MUL, self._word, upper or y, size)
            y = self._start(Spv.I_ADD, self._word, y, lower)
        y = self._start(Spv.BITWISE_AND, self._word, y, self._constant(THREADS - 1))
        y = self._start(Spv.I_MUL, self._word, y, self._constant(ELEMENTS))
        return self._start(Spv.BITWISE_OR, self._word, y, self._constant(WRONG))

    # Conditions --------------------------------------------------------------------------------

    def _condition(self, access: Access) -> _Condition | None:
        """Return on which condition an access is right; None where there is nothing to check."""
        module, at = self._module, access.instruction
        place = self._roots.place(access.pointer)
        root = module.definitions[place.root]
        if root.op == Spv.VARIABLE:
            if root.words[3] == _INPUT:
                return None
            size = self._layout.size(module.key(root.type)[2])
            return self._within(access, place, lambda need, step: self._constant(max((size - need) // step + 1, 0)))
        buffer = self._roots.exact(place.root)
        if buffer:
            number = self._params[buffer]
            return self._within(access, place, lambda need, step: self._count(number, need, step))
        sources = self._sources(place.root, module.key(module.type_of(access.pointer))[1])
        if any(not self._known_here(source) for source in sources):
            return None
        address = module.before(at, Spv.CONVERT_PTR_TO_U, self._word, access.pointer)
        holds = module.declare(Spv.CONSTANT_FALSE, self._bool)
        for source in sorted(sources):
            held = self._holds(at, address, source, access.size)
            holds = module.before(at, Spv.LOGICAL_OR, self._bool, holds, held)
        return _Condition(access, holds, address)

    def _sources(self, root: int, storage: int) -> set[int]:
        """Return the parameters and variables that a pointer may come from: any of its storage, when nothing tells."""
        found = self._roots.sources(root)
        if 0 not in found:
            return found
        made = self._module.definitions
        inside = {i.result for f in self._module.functions for i in f if i.op == Spv.VARIABLE}
        every = {*self._params, *inside, *(i.result for i in self._module.preamble if i.op == Spv.VARIABLE)}
        spaces = {v: self._module.key(made[v].type)[1] for v in every if self._module.key(made[v].type)[0] == _POINTER}
        return {v for v, space in spaces.items() if space != _INPUT and storage in {space, _GENERIC}}

    def _known_here(self, source: int) -> bool:
        """Say whether a source's address can be taken here: not a thread's array of another function's.

        clang leaves a function in place that is large and called several times. What it does with the pointers to such
        arrays that it is given is not checked.
        """
        made = self._module.definitions[source]
        return source in self._params or made.words[3] != _FUNCTION or made in self._own

    def _holds(self, at: Instruction, address: int, source: int, size: int) -> int:
        """Return whether an address is in a buffer or a variable."""
        module = self._module
        if source in self._params:
            number = self._params[source]
            base = self._entry_of_table(SIZES + 2 * number)
            limit = self._count(number, size, 1)
        else:
            made = module.definitions[source]
            base = module.before(at, Spv.CONVERT_PTR_TO_U, self._word, source)
            limit = self._constant(max(self._layout.size(module.key(made.type)[2]) - size + 1, 0))
        offset = module.before(at, Spv.I_SUB, self._word, address, base)
        return module.before(at, Spv.U_LESS_THAN, self._bool, offset, limit)

    def _within(self, access: Access, place: PointerPlace, count: Callable[[int, int], int]) -> _Condition:
        """Compare the index with how many there are, or the offset in bytes with the last that is right."""
        module, at = self._module, access.instruction
        if len(place.terms) == 1 and place.fixed >= 0 and place.terms[0][1] > 0:
            ((index, step),) = place.terms
            behind, rest = self._whole_steps(place)
            long, limit = self._long(at, index), count(rest + access.size, step)
            short = 0 if self._wide else self._short(index)
            if short:  # half of the work in vector code; a buffer has less than 2^31 elements here
                element, limit, kind = short, self._cut_short(limit), module.integer(32)
            else:
                element, kind = long, self._word
            if behind:
                element = module.before(at, Spv.I_ADD, kind, element, self._constant(behind, kind))
            return _Condition(access, module.before(at, Spv.U_LESS_THAN, self._bool, element, limit), long)
        offset = self._offset(at, place)
        holds = module.before(at, Spv.U_LESS_THAN, self._bool, offset, count(access.size, 1))
        shift = self._constant(unit_of(place)[0].bit_length() - 1)
        return _Condition(access, holds, module.before(at, Spv.SHIFT_RIGHT_ARITHMETIC, self._word, offset, shift))

    def _whole_steps(self, place: PointerPlace) -> tuple[int, int]:
        """Return by how many steps a single index is short of the element, and the bytes that are left of the rest.

        An index below 0 may be right where bytes are added to it. One that cannot be below 0 is compared as it is: in
        32 bits it and its steps might go around.
        """
        ((index, step),) = place.terms
        if self._module.definitions[index].op == Spv.U_CONVERT:
            return 0, place.fixed
        return divmod(place.fixed, step)

    def _short(self, index: int) -> int:
        """Return the integer of 32 bits that an index is made of; 0 for none."""
        made = self._module.definitions[index]
        if made.op in {Spv.U_CONVERT, Spv.S_CONVERT}:
            index = made.words[3]
        return index if self._module.type_of(index) == self._module.integer(32) else 0

    def _cut_short(self, limit: int) -> int:
        if limit not in self._cut_limits:
            self._cut_limits[limit] = self._start(Spv.U_CONVERT, self._module.integer(32), limit)
        return self._cut_limits[limit]

    def _long(self, at: Instruction, index: int) -> int:
        if self._module.type_of(index) == self._word:
            return index
        return self._module.before(at, Spv.S_CONVERT, self._word, index)

    def _offset(self, at: Instruction, place: PointerPlace) -> int:
        module, total = self._module, 0
        for index, step in place.terms:
            part = self._long(at, index)
            if step != 1:
                part = module.before(at, Spv.I_MUL, self._word, part, self._constant(step))
            total = module.before(at, Spv.I_ADD, self._word, total, part) if total else part
        if place.fixed and total:
            total = module.before(at, Spv.I_ADD, self._word, total, self._constant(place.fixed))
        return total or self._constant(place.fixed)

    def _count(self, number: int, need: int, step: int) -> int:
        """Return how many indexes are right in a buffer: ``need`` bytes for the first one, and ``step`` for each."""
        key = number, need, step
        if key not in self._counts:
            size, first = self._entry_of_table(SIZES + 2 * number + 1), self._constant(need)
            rest = self._start(Spv.I_SUB, self._word, size, first)
            steps = rest if step == 1 else self._start(Spv.U_DIV, self._word, rest, self._constant(step))
            steps = self._start(Spv.I_ADD, self._word, steps, self._constant(1))
            fits = self._start(Spv.U_GREATER_THAN_EQUAL, self._bool, size, first)
            self._counts[key] = self._start(Spv.SELECT, self._word, fits, steps, self._constant(0))
        return self._counts[key]

    def _entry_of_table(self, place: int) -> int:
        if place not in self._read:
            where = self._start(Spv.IN_BOUNDS_PTR_ACCESS_CHAIN, self._pointer, self._table, self._constant(place))
            self._read[place] = self._start(Spv.LOAD, self._word, where, *_ALIGNED)
        return self._read[place]

    def _start(self, op: Spv, kind: int, *operands: int) -> int:
        self._function.start = self._module.behind(self._function.start, op, kind, *operands)
        return self._function.start.result

    def _constant(self, value: int, kind: int = 0) -> int:
        words = (value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF)
        if kind and kind != self._word:
            return self._module.declare(Spv.CONSTANT, kind, words[0])
        return self._module.declare(Spv.CONSTANT, self._word, *words)

    # Cutting blocks ----------------------------------------------------------------------------

    def _cut(self, block: BasicBlock, conditions: dict[Instruction, list[_Condition]]) -> Iterator[BasicBlock]:
        """Yield a block in pieces: what is before an access, the access, what records that it is wrong, the rest."""
        module = self._module
        current: list[Instruction] = []
        for i in block.instructions:
            if i not in conditions:
                current.append(i)
                continue
            behind = module.fresh()
            zero_from = []
            for condition in conditions[i]:
                wrong, inside = module.fresh(), module.fresh()
                current.append(Instruction(Spv.BRANCH_CONDITIONAL, [0, condition.holds, inside, wrong]))
                yield BasicBlock(current)
                yield self._recorded(wrong, behind, condition)
                zero_from.append(wrong)
                current = [_label(inside)]
            yield BasicBlock([*current, i, _branch(behind)])
            current = [_label(behind)]
            if i.result:
                value, made = i.result, module.fresh()
                i.words[2] = made
                zero = module.declare(Spv.CONSTANT_NULL, i.type)
                pairs = [part for wrong in zero_from for part in (zero, wrong)]
                merged = Instruction(Spv.PHI, [0, i.type, value, made, inside, *pairs])
                self._merged.add(merged)
                current.append(merged)
        yield BasicBlock(current)

    def _recorded(self, wrong: int, behind: int, condition: _Condition) -> BasicBlock:
        """Return the block that records a fault: in one word of the access's and the lane's, where no two can mix."""
        block = [_label(wrong)]

        def add(op: Spv, kind: int, *operands: int) -> int:
            block.append(Instruction(op, [0, kind, self._module.fresh(), *operands]))
            return block[-1].result

        first = self._constant(self._slots[condition.access.number])
        where = add(Spv.IN_BOUNDS_PTR_ACCESS_CHAIN, self._pointer, self._table, first)
        where = add(Spv.IN_BOUNDS_PTR_ACCESS_CHAIN, self._pointer, where, self._lane)
        element = add(Spv.BITWISE_AND, self._word, condition.element, self._constant(ELEMENTS - 1))
        word = add(Spv.BITWISE_OR, self._word, element, self._thread)
        block += [Instruction(Spv.STORE, [0, where, word, *_ALIGNED]), _branch(behind)]
        return BasicBlock(block)


def _label(result: int) -> Instruction:
    return Instruction(Spv.LABEL, [0, result])


def _branch(target: int) -> Instruction:
    return Instruction(Spv.BRANCH, [0, target])
