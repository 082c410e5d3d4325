"""Leave out one of the things that keep answers right, to see whether the fuzzer misses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from metalnb.engine.cpu import form_ladder, spirv_forms
from metalnb.engine.cpu.compiler_process import options_for
from metalnb.engine.cpu.spirv import pass_table
from metalnb.engine.cpu.spirv.divergence import Divergence
from metalnb.engine.cpu.spirv.hiding import opaque
from metalnb.engine.cpu.spirv_forms import Form

__all__ = ["CURES", "leave_out"]

_MEETING = "  $simd_barrier(0);\n"
# Options of the device's compiler: all, loops as written, branches as written in kernels with barriers
# too, what moves even steps out of the loop over SIMD-groups, and what makes two loops of one.
_OPTIONS: dict[str, Callable[..., str]] = {
    "options": lambda **_: "",
    "loops": lambda **known: options_for(**{**known, "lanes_leave": False}),
    "branches": lambda **known: options_for(**{**known, "barrier": False}),
    "steps": lambda **known: options_for(**known).replace(",sycl-kernel-loop-strided-code-motion", ""),
    "unswitched": lambda **known: options_for(**known).replace(",simple-loop-unswitch", ""),
}
_OTHERS = ("meet", "form", "changed", "joined", "zeros", "early", "turns")
CURES = (*(p.name for p in pass_table.PASSES), *_OTHERS, *_OPTIONS)


def leave_out(cures: str) -> None:
    """Compile in this process from now on without some of `CURES`, which are named with commas between them.

    These are the passes; the meeting of the SIMD-groups; today's form; of the pass divergent_updates the doubt that
    what a loop starts from differs by its data, what is brought to where ways meet, and that each way has a zero of its
    own there; that vectors are taken apart before threads' ways are looked at; the zeros of counters where loops are
    compiled as written; and `_OPTIONS`.
    """
    for cure in cures.split(","):
        _leave_out(cure)


def _leave_out(cure: str) -> None:
    if cure == "meet":
        written = form_ladder.opencl

        def without_meeting(*args: Any, **named: Any) -> str:
            text = written(*args, **named)
            if text.count(_MEETING) != 1:
                message = "the entry point does not meet as it did: change fuzz/cures.py with it"
                raise AssertionError(message)
            return text.replace(_MEETING, "")

        form_ladder.opencl = without_meeting
    elif cure == "form":  # all of clang's -O2, believed: as it was once
        form_ladder._forms = lambda *_: (Form("believed", ("-O2",)),)
        spirv_forms.odd_width = lambda _: 0
    elif cure == "changed":
        Divergence._changed = lambda _: set()
    elif cure == "joined":
        Divergence.joined = lambda *_: []
    elif cure == "zeros":
        opaque._ZEROS = 1
    elif cure == "early":
        late = next(p for p in pass_table.PASSES if p.name == "by_element")
        others = [p for p in pass_table.PASSES if p is not late]
        behind = 1 + next(n for n, p in enumerate(others) if p.name == "divergent_exits")
        pass_table.PASSES = (*others[:behind], late, *others[behind:])
    elif cure == "turns":
        form_ladder.guarded_as_written = lambda code: code
    elif cure in _OPTIONS:
        form_ladder.options_for = _OPTIONS[cure]
    else:
        pass_table.PASSES = tuple(p for p in pass_table.PASSES if p.name != cure)
