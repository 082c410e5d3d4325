"""Hide from the device's compiler that an address in a thread's own memory is one of two that it knows.

Of ``w[lid > 0 ? 1 : 0] = 1`` it makes a choice between two addresses, and then takes a load through another index for
one that cannot meet this store: the load had the value from before. An exclusive or with the opaque zero makes of the
index a number that it knows nothing about (of a sum it made a choice again, for elements of one byte). A pointer that
is one of two gets the same as a number. Threadgroup and device memory do not have the fault.

It misses other stores as well, in kernels that have a pointer ``q = w + (i & 3)`` and much else: a load of ``q[1]`` or
``w[2]`` had the value from before ``q[n & 3]`` was stored. So an array that is written at a place which is not known is
read and written at no known place either: constant indices and counters of short loops get the zero. Such an array is
in memory in any case.

And it reads a thread's array ahead of the guard of the index. An index that is the same for all threads makes one load
of a whole SIMD-group's elements, which is done for threads that the branch leaves out too, as if all of a thread's own
memory could be read at any place. But of ``if (n < 8 && x[i] > 3) v = w[n]`` with a large ``n`` it may be far outside,
and ends the process; so may a load whose address was computed in a branch that no thread took. An exclusive or with a
zero of each thread's own makes it a gather, under the mask of the branch. The counters of short loops stay as they are:
when the loop is unrolled they are constants, and the array is none. Not so where loops are compiled as written: there
the last turn, in which no thread is left, reads ``w[j - 1]`` for a ``j`` of 0. Whether they are is known when all else
has been done to a module (`lanes_leave`), so such a one comes here once more.

Source: SPIR-V specification 1.4, 3.37.8 (OpAccessChain …), 3.37.15 (OpSelect).
"""

from __future__ import annotations

from ..module import Body, Instruction, Module, parsed
from ..opcodes import Spv
from .opaque import opaque_zero

__all__ = ["guarded_as_written", "guarded_indices", "opaque_known_indices", "opaque_selected_indices"]

_ACCESS = {Spv.ACCESS_CHAIN, Spv.IN_BOUNDS_ACCESS_CHAIN, Spv.PTR_ACCESS_CHAIN, Spv.IN_BOUNDS_PTR_ACCESS_CHAIN}
_CASTS = {Spv.BITCAST, Spv.COPY_OBJECT, Spv.PTR_CAST_TO_GENERIC, Spv.GENERIC_CAST_TO_PTR}
_CONSTANTS = {Spv.CONSTANT, Spv.CONSTANT_NULL, Spv.UNDEF}
_OWN = {7, 8}  # storage classes: a function's own memory, and what may be that
_CHOICES = {Spv.SELECT, Spv.EXT_INST, Spv.FUNCTION_CALL, Spv.CONVERT_F_TO_S, Spv.CONVERT_F_TO_U}  # or may become one
_THROUGH = {
    Spv.U_CONVERT, Spv.S_CONVERT, Spv.COPY_OBJECT, Spv.BITCAST, Spv.S_NEGATE, Spv.NOT, Spv.I_ADD, Spv.I_SUB, Spv.I_MUL,
    Spv.U_DIV, Spv.S_DIV, Spv.U_MOD, Spv.S_REM, Spv.S_MOD, Spv.BITWISE_OR, Spv.BITWISE_XOR, Spv.BITWISE_AND,
    Spv.SHIFT_LEFT_LOGICAL, Spv.SHIFT_RIGHT_LOGICAL, Spv.SHIFT_RIGHT_ARITHMETIC, Spv.COMPOSITE_EXTRACT,
}  # fmt: skip
_COMPARISONS = range(Spv.I_EQUAL, Spv.S_LESS_THAN_EQUAL + 1)
_SHORT = 64  # steps of a loop that may be unrolled; so far beside an array is still the thread's own memory


def opaque_selected_indices(module: Module) -> None:
    """Give the opaque zero to the indices and the pointers that are computed from a choice."""
    known: dict[int, bool] = {}
    own = {i.result for i in module.preamble if i.op == Spv.TYPE_POINTER and i.words[2] in _OWN}
    for function in module.functions:
        for block in function.blocks:
            for i in block.instructions:
                if i.op in _ACCESS and module.type_of(i.words[3]) in own:
                    _hide_indices(module, function, i, known)
                elif i.op in {Spv.SELECT, Spv.PHI} and i.type in own and _is_choice(module, i):
                    phis = [p for p in block.instructions if p.op == Spv.PHI]
                    _hide_pointer(module, function, i, phis[-1] if i.op == Spv.PHI else i)


def _hide_indices(module: Module, function: Body, i: Instruction, known: dict[int, bool]) -> None:
    for place in range(4, len(i.words)):
        index = i.words[place]
        if _selected(module, index, known):
            kind = module.type_of(index)
            i.words[place] = module.before(i, Spv.BITWISE_XOR, kind, index, opaque_zero(module, function, kind))


def _is_choice(module: Module, i: Instruction) -> bool:
    """Say whether a pointer is one of several: not one that a loop moves on."""
    own = [module.definitions[p] for p in i.words[3::2]] if i.op == Spv.PHI else []
    return i.op == Spv.SELECT or sum(p.op not in _ACCESS or p.words[3] != i.result for p in own) > 1


def _hide_pointer(module: Module, function: Body, i: Instruction, behind: Instruction) -> None:
    """Make the pointer of a number; it keeps its id."""
    long = module.integer(64)
    zero = opaque_zero(module, function, long)
    number = module.behind(behind, Spv.CONVERT_PTR_TO_U, long, i.result)
    hidden = module.behind(number, Spv.BITWISE_XOR, long, number.result, zero)
    pointer = module.behind(hidden, Spv.CONVERT_U_TO_PTR, i.type, hidden.result)
    chosen, made = i.result, pointer.result
    i.words[2] = number.words[3] = made
    pointer.words[2] = chosen
    module.definitions[made], module.definitions[chosen] = i, pointer


def _selected(module: Module, value: int, known: dict[int, bool]) -> bool:
    """Say whether a choice is part of what a value is computed from."""
    ahead = [value]
    while ahead:
        last = ahead[-1]
        made = module.definitions[last]
        if made.op == Spv.PHI:
            known[last] = all(module.definitions[p].op in _CONSTANTS for p in made.words[3::2])
        elif made.op not in _THROUGH:
            known[last] = made.op in _CHOICES
        parts = [] if last in known else module.used(made)
        missing = [p for p in parts if p not in known]
        if missing:
            ahead += missing
            continue
        if last not in known:
            known[last] = any(known[p] for p in parts)
        ahead.pop()
    return known[value]


def opaque_known_indices(module: Module) -> None:
    """Give the opaque zero to the known indices into arrays that are written at places that are not known."""
    own = {i.result for i in module.preamble if i.op == Spv.TYPE_POINTER and i.words[2] in _OWN}
    for function in module.functions:
        chains = [i for i in function if i.op in _ACCESS and module.type_of(i.words[3]) in own]
        if not chains:
            continue
        counters = _counters(module, function)
        known = {
            i.result: [place for place in range(4, len(i.words)) if _counted(module, i.words[place], counters)]
            for i in chains
        }
        written = {_uncast(module, i.words[1]) for i in function if i.op == Spv.STORE}
        some = [i.result for i in chains if i.result in written and len(known[i.result]) < len(i.words) - 4]
        arrays = {array for pointer in some for array in _arrays(module, pointer)}
        for i in chains:
            if not arrays.isdisjoint(_arrays(module, i.result)):
                for place in known[i.result]:
                    kind = module.type_of(i.words[place])
                    zero = opaque_zero(module, function, kind)
                    i.words[place] = module.before(i, Spv.BITWISE_XOR, kind, i.words[place], zero)


def _uncast(module: Module, pointer: int) -> int:
    made = module.definitions[pointer]
    while made.op in _CASTS:
        pointer = made.words[3]
        made = module.definitions[pointer]
    return pointer


def _arrays(module: Module, pointer: int) -> set[int]:
    """Return the variables and parameters that a pointer may point into."""
    found, seen, ahead = set(), {pointer}, [pointer]
    while ahead:
        made = module.definitions[ahead.pop()]
        if made.op in {Spv.VARIABLE, Spv.FUNCTION_PARAMETER}:
            found.add(made.result)
        else:
            parts = made.words[3:4] if made.op in _ACCESS else module.used(made)
            new = [part for part in parts if part not in seen and module.type_of(part)]
            seen.update(new)
            ahead += new
    return found


def guarded_as_written(code: bytes) -> bytes:
    """Return a module for which counters of short loops are indices like others: its loops are compiled as written."""
    module = parsed(code)
    if module is None:
        return code
    guarded_indices(module, counters_too=True)
    return module.written()


def guarded_indices(module: Module, *, counters_too: bool = False) -> None:
    """Give a zero of each thread's own to the indices into its memory that a branch may guard."""
    own = {i.result for i in module.preamble if i.op == Spv.TYPE_POINTER and i.words[2] in _OWN}
    for function in module.functions:
        counters = set() if counters_too else _counters(module, function)
        for block in function.blocks[1:]:  # the first has no guard
            for i in block.instructions:
                if i.op in _ACCESS and module.type_of(i.words[3]) in own:
                    for place in range(4, len(i.words)):
                        if not _counted(module, i.words[place], counters):
                            kind = module.type_of(i.words[place])
                            zero = opaque_zero(module, function, kind, each=True)
                            i.words[place] = module.before(i, Spv.BITWISE_XOR, kind, i.words[place], zero)


def _counted(module: Module, value: int, counters: set[int]) -> bool:
    """Say whether a value is computed from constants and counters alone."""
    seen, ahead = {value}, [value]
    while ahead:
        made = module.definitions[ahead.pop()]
        if made.op in _THROUGH:
            parts = [p for p in module.used(made) if p not in seen]
            seen.update(parts)
            ahead += parts
        elif made.op not in _CONSTANTS and made.result not in counters:
            return False
    return True


def _counters(module: Module, function: Body) -> set[int]:
    """Return what counts the steps of a loop from one small constant to another."""
    bounded: dict[int, set[int]] = {}  # by label, what the branches there or to there compare with a small constant
    for block in function.blocks:
        last = block.instructions[-1]
        compared = module.definitions[last.words[1]] if last.op == Spv.BRANCH_CONDITIONAL else last
        if compared.op in _COMPARISONS and any(_is_small(module, value) for value in compared.words[3:]):
            for label in (block.label, *module.targets(block)):
                bounded.setdefault(label, set()).update(compared.words[3:])
    found = set()
    for block in function.blocks:
        for phi in (i for i in block.instructions if i.op == Spv.PHI):
            steps = {p for p in phi.words[3::2] if not _is_small(module, p)}
            if all(_steps_on(module, p, phi.result) for p in steps) and (
                not steps or not bounded.get(block.label, set()).isdisjoint({phi.result, *steps})
            ):
                found.add(phi.result)
    return found


def _steps_on(module: Module, value: int, counter: int) -> bool:
    """Say whether a value is a counter and a small constant."""
    made = module.definitions[value]
    parts = made.words[3:] if made.op in {Spv.I_ADD, Spv.I_SUB} else []
    return counter in parts and any(_is_small(module, p) for p in parts)


def _is_small(module: Module, value: int) -> bool:
    """Say whether a value is an integer constant near 0."""
    made = module.definitions[value]
    op, *rest = module.key(made.type)
    if op != Spv.TYPE_INT or made.op not in {Spv.CONSTANT, Spv.CONSTANT_NULL}:
        return False
    number = sum(word << 32 * n for n, word in enumerate(made.words[3:])) % (1 << rest[0])
    return min(number, (1 << rest[0]) - number) <= _SHORT
