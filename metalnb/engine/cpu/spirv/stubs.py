"""Drop the functions that no entry point reaches.

clang emits every kernel twice, the second time as an exported function for other kernels to call. None does, and the
device would compile it all the same.

Source: SPIR-V specification 1.4, 2.4 (logical layout), 3.37.3 (OpName, OpDecorate), 3.37.9 (OpFunctionCall).
"""

from __future__ import annotations

from .module import Body, Module
from .opcodes import Spv

__all__ = ["without_stubs"]

_TOLD = {Spv.NAME, Spv.DECORATE, Spv.DECORATE_ID, Spv.EXECUTION_MODE, Spv.EXECUTION_MODE_ID}


def without_stubs(module: Module) -> None:
    """Drop functions, with their names and decorations; a module without an entry point keeps all."""
    functions = {function.name: function for function in module.functions}
    ahead = [name for i in module.preamble if i.op not in _TOLD for name in module.used(i) if name in functions]
    reached: set[int] = set()
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead += [used for i in functions[name] for used in module.used(i) if used in functions]
    if not reached or len(reached) == len(functions):
        return
    gone = {made for name, function in functions.items() if name not in reached for made in _made(function)}
    module.functions = [function for function in module.functions if function.name in reached]
    module.preamble = [i for i in module.preamble if i.op not in _TOLD or i.words[1] not in gone]
    for made in gone:
        module.definitions.pop(made, None)


def _made(function: Body) -> set[int]:
    """Return the ids that a function makes, its own among them."""
    return {i.result for part in (function.head, function) for i in part if i.result}
