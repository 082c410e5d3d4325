"""Hide what the branches of a loop depend on: the runtime gives up vectorising where it takes such a condition out.

``do { switch (i % 5) { case 0: q += simd_broadcast_first(i); … } } while (i == 0 && ++z < 7);`` goes on under a condition
that differs between threads and that the loop does not change. The runtime takes it out of the loop, which then stands
there twice, and is not vectorised; a SIMD function in it needs that. A condition to which each iteration adds what a
volatile variable holds, false, stays where it is.

Source: SPIR-V specification 1.4, 3.37.8 (OpVariable, OpLoad), 3.26 (memory operands), 3.37.15 (OpLogicalOr).
"""

from __future__ import annotations

from .loops import natural_loops
from .module import Instruction, Module
from .opcodes import Spv

__all__ = ["held_conditions"]

_FUNCTION, _VOLATILE = 7, 1


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
