"""Let a CPU see through min and max of integers: write OpenCL's functions as a comparison and a choice.

To the vectoriser a function of OpenCL's library gives each of 32 threads a value of its own, even where all gave it
the same. A loop that ends at ``min(each, n - first)`` is then taken to end differently for each thread, and what it
loads is gathered under a mask: without this, sort and argsort take a quarter longer. clang makes these functions of
``a < b ? a : b`` too.

Source: SPIR-V specification 1.4, 3.37.15 (OpULessThan, OpSLessThan, OpSelect); OpenCL.std extended instructions, 2.4
(s_max, u_max, s_min, u_min).
"""

from __future__ import annotations

from .module import Module
from .opcodes import Spv

__all__ = ["plain_extrema"]

_S_MAX, _U_MAX, _S_MIN, _U_MIN = 156, 157, 158, 159


def plain_extrema(module: Module) -> None:
    """Write out the functions of two integers; those of vectors stay."""
    integers = {i.result for i in module.preamble if i.op == Spv.TYPE_INT}
    for function in module.functions:
        for i in function:
            if i.op != Spv.EXT_INST or not _S_MAX <= i.words[4] <= _U_MIN or i.type not in integers:
                continue
            name, one, other = i.words[4:7]
            less = Spv.S_LESS_THAN if name in {_S_MAX, _S_MIN} else Spv.U_LESS_THAN
            flag = module.before(i, less, module.declare(Spv.TYPE_BOOL), one, other)
            chosen = (one, other) if name in {_S_MIN, _U_MIN} else (other, one)
            i.op, i.words = Spv.SELECT, [*i.words[:3], flag, *chosen]
