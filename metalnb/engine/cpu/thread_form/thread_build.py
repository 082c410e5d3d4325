"""Compile a kernel one thread at a time: as a loop over threads, or as fibers if its threads converge."""

from __future__ import annotations

import re

from ...clang.driver import DUMP, Refused
from ...clang.long_text import with_functions
from ...robust.rewriting.checks import CheckedModule
from ...unit import Unit
from .. import toolchain
from ..cpu_checks.thread_checks import ThreadChecks, thread_checks
from ..entry_texts import fiber_text, loop_text
from ..ir_build import assembled, compiled, texts, written

__all__ = ["checked_object", "checks_of", "thread_object"]

# Functions that exist only in the runtime for fibers.
_CONVERGES = (b"metalnb_converge", b"metalnb_barrier", b"metalnb_lane", b"metalnb_storage", b"metalnb_print")
_HINT = re.compile("barrier|simd|quad|threadgroup")
_ATTRIBUTE = re.compile(r'\$attribute\("[^"]*"\)')  # a thread's position, available in both forms
# No function here depends on which threads call it. clang assumes otherwise for OpenCL's functions (`convergent`), and
# would then not vectorise the loop.
_APART = ("-fno-convergent-functions",)
_PRINTED = ("-mllvm", "-print-before=loop-vectorize", "-mllvm", "-filter-print-funcs=metalnb_threads")


def thread_object(unit: Unit) -> tuple[bytes, bool]:
    """Compile a unit's object file; return it, and True if it is for fibers.

    Raises
    ------
    CompileError
    """
    if any(p.space == "threadgroup" for p in unit.signature.params):
        return _fibers(unit), True
    if any(_HINT.search(_ATTRIBUTE.sub("", text)) for text in texts(unit)) and _may_converge(unit):
        code = _fibers(unit)  # a guess; if it is wrong, the kernel is compiled again
        if any(name in code for name in _CONVERGES):
            return code, True
    code = _loop(unit)
    return (_fibers(unit), True) if any(name in code for name in _CONVERGES) else (code, False)


def _may_converge(unit: Unit) -> bool:
    """Inspect the cached output of the first of two steps."""
    text = written(unit, fiber_text(unit), _FIBERS)
    return any(name in text for name in _CONVERGES)


_FRAME = 192 << 10  # bytes of a fiber's stack of 256 KiB for its own variables (runtime/fibers.c)
_FIBERS = (*toolchain.ORDERED, f"-Wframe-larger-than={_FRAME}")


def _fibers(unit: Unit) -> bytes:
    return compiled(unit, fiber_text(unit), _FIBERS, _stack)


def _stack(printed: str) -> str:
    found = re.search(r"stack frame size \((\d+)\)", printed)
    return f"a thread's own variables take {found[1]} bytes; engine 'cpu' has {_FRAME} for them" if found else ""


def _loop(unit: Unit) -> bytes:
    try:
        text = loop_text(unit, independent=True)
        return compiled(unit, text, (*_APART, *_PRINTED), _own_memory)
    except Refused:
        return compiled(unit, loop_text(unit, independent=False), _APART)


def _own_memory(printed: str) -> str:
    """Return why threads are not independent (a thread array stayed in memory), or an empty string."""
    _, _, code = printed.partition(DUMP)
    return "a thread's own array is in memory" if " alloca " in code else ""


def checks_of(unit: Unit) -> ThreadChecks | None:
    """Return the checks of a unit, for fibers; None if its text cannot be analysed.

    Raises
    ------
    CompileError
    """
    return thread_checks(unit, _FIBERS)


def checked_object(unit: Unit, checks: ThreadChecks, made: CheckedModule) -> bytes:
    """Compile a unit's object file with some checks, for fibers.

    Raises
    ------
    CompileError
    """
    return assembled(with_functions(checks.text(made)), _FIBERS, unit, _stack)
