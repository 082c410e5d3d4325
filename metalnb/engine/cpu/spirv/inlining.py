"""Let the device's compiler make functions in which lanes meet part of their callers before all else.

It does not know that a call of such a function depends on which threads make it: of ``if (c) y = f(x); else y = f(z);``
it makes one call, at which all lanes meet. Of what such a function is made, it knows. Functions that only take a lane's
value stay as they are: whoever else is at that call changes nothing there.

Source: SPIR-V specification 1.4, 3.24 (function control), 3.37.9 (OpFunction, OpFunctionCall).
"""

from __future__ import annotations

from collections import Counter

from .module import Module
from .opcodes import GROUP_OPERATIONS, Spv

__all__ = ["meeting_inline"]

_INLINE, _DONT_INLINE = 1, 2
_OF_ANY_LANES = {Spv.GROUP_BROADCAST, Spv.GROUP_NON_UNIFORM_BROADCAST}
_OF_THOSE_THERE = GROUP_OPERATIONS - _OF_ANY_LANES


def meeting_inline(module: Module) -> None:
    """Ask that functions with SIMD functions of all lanes that are there become part of both places that call them."""
    meeting = {f.name for f in module.functions if any(i.op in _OF_THOSE_THERE for i in f)}
    calls = [(f.name, i.words[3]) for f in module.functions for i in f if i.op == Spv.FUNCTION_CALL]
    count = -1
    while count != len(meeting):
        count = len(meeting)
        meeting |= {caller for caller, called in calls if called in meeting}
    times = Counter(called for _, called in calls)
    for function in module.functions:
        if function.name in meeting and times[function.name] > 1:
            control = function.head[0].words[3]
            function.head[0].words[3] = control & ~_DONT_INLINE | _INLINE
