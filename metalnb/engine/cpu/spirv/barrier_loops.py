"""Keep in memory what the runtime loses of loops with barriers or SIMD functions: counters, and conditions.

The runtime's barrier pass loses the counters that do not grow evenly.

Of ``for (uint step = size / 2; step > 0; step /= 2) { …; threadgroup_barrier(…); }`` it takes ``step`` for one value
of the whole threadgroup, and lets each of its SIMD-groups halve it. So what such a loop carries from one iteration to
the next, other than a counter to which the same is added each time, lives in a variable that is volatile.

Of a loop with SIMD functions that goes on under a condition that differs between threads and that it does not change,
``do { switch (i % 5) { case 0: q += simd_broadcast_first(i); … } } while (i == 0 && ++z < 7);``, the runtime takes that
out. The loop then stands there twice, and is not vectorised, which a SIMD function needs. A condition to which each
iteration adds what a volatile variable holds, false, stays where it is.

Source: SPIR-V specification 1.4, 3.37.8 (OpVariable, OpLoad, OpStore), 3.26 (memory operands).
"""

from __future__ import annotations

from .loops import natural_loops
from .module import BasicBlock, Body, Instruction, Module, parsed
from .opcodes import GROUP_OPERATIONS, Spv

__all__ = ["counters_in_memory", "has_barrier", "has_lanes", "held_conditions"]

_FUNCTION, _VOLATILE = 7, 1
_BUILT_IN, _OF_SUBGROUPS = 11, {*range(36, 42), *range(4416, 4421)}  # a decoration, and what it may name


def has_barrier(code: bytes) -> bool:
    """Return whether a module has a threadgroup barrier; a module that is not understood counts as one that has."""
    module = parsed(code)
    return module is None or any(i.op == Spv.CONTROL_BARRIER for function in module.functions for i in function)


def has_lanes(code: bytes) -> bool:
    """Return whether a module has to do with SIMD-groups; one that is not understood counts as one that has."""
    module = parsed(code)
    if module is None or any(i.op in GROUP_OPERATIONS for function in module.functions for i in function):
        return True
    named = {i.words[3] for i in module.preamble if i.op == Spv.DECORATE and i.words[2] == _BUILT_IN}
    return not named.isdisjoint(_OF_SUBGROUPS)


def counters_in_memory(module: Module) -> None:
    """Give the uneven counters of loops with barriers a variable each."""
    for function in module.functions:
        blocks = {block.label: block for block in function.blocks}
        for head, body in natural_loops(module, function).items() if blocks else ():
            if any(i.op == Spv.CONTROL_BARRIER for label in body for i in blocks[label].instructions):
                inside = {i.result: i for label in body for i in blocks[label].instructions if i.result}
                for phi in [i for i in blocks[head].instructions if i.op == Spv.PHI]:
                    if module.key(phi.type)[0] == Spv.TYPE_INT and not _even(phi, body, inside):
                        _demote(module, function, blocks, head, phi)


def _even(phi: Instruction, body: set[int], inside: dict[int, Instruction]) -> bool:
    """Return whether each iteration adds to a counter what the loop does not change."""
    for value, label in zip(phi.words[3::2], phi.words[4::2], strict=True):
        if label in body:
            step = inside.get(value)
            if step is None or step.op not in {Spv.I_ADD, Spv.I_SUB} or phi.result not in step.words[3:]:
                return False
            if any(operand in inside for operand in step.words[3:] if operand != phi.result):
                return False
    return True


def _demote(module: Module, function: Body, blocks: dict[int, BasicBlock], head: int, phi: Instruction) -> None:
    pointer = module.declare(Spv.TYPE_POINTER, _FUNCTION, phi.type)
    variable = Instruction(Spv.VARIABLE, [0, pointer, module.fresh(), _FUNCTION])
    module.definitions[variable.result] = variable
    function.add_variable(variable)
    for value, label in zip(phi.words[3::2], phi.words[4::2], strict=True):
        block = blocks[label].instructions
        block.insert(len(block) - 1, Instruction(Spv.STORE, [0, variable.result, value, _VOLATILE]))
    instructions = blocks[head].instructions
    instructions.remove(phi)
    behind = next(n for n, i in enumerate(instructions) if n and i.op != Spv.PHI)
    load = Instruction(Spv.LOAD, [0, phi.type, phi.result, variable.result, _VOLATILE])
    module.definitions[phi.result] = load
    instructions.insert(behind, load)


def held_conditions(module: Module) -> None:
    """Let each branch in a loop depend on a volatile variable too."""
    for function in module.functions:
        inside = set().union(*natural_loops(module, function).values()) if function.blocks else set()
        branches = [
            block.instructions[-1] for block in function.blocks
            if block.label in inside and block.instructions[-1].op == Spv.BRANCH_CONDITIONAL
        ]  # fmt: skip
        if not branches:
            continue
        short = module.integer(32)
        zero = module.declare(Spv.CONSTANT, short, 0)
        pointer = module.declare(Spv.TYPE_POINTER, _FUNCTION, short)
        variable = Instruction(Spv.VARIABLE, [0, pointer, module.fresh(), _FUNCTION, zero])
        module.definitions[variable.result] = variable
        function.add_variable(variable)
        truth = module.declare(Spv.TYPE_BOOL)
        for branch in branches:
            read = module.before(branch, Spv.LOAD, short, variable.result, _VOLATILE)
            never = module.before(branch, Spv.I_NOT_EQUAL, truth, read, zero)
            branch.words[1] = module.before(branch, Spv.LOGICAL_OR, truth, branch.words[1], never)
