"""Compile a kernel one thread at a time: as a loop over threads, or as fibers if its threads converge."""

from __future__ import annotations

import re

from ...clang.driver import DUMP, BackendError
from ...clang.long_kernels import limit_inlining
from ...robust.rewriting.check_insertion import CheckedModule
from ...unit import Unit
from .. import toolchain
from ..cpu_checks.thread_checks import ThreadChecks, find_thread_checks
from ..entry_texts import fiber_text, loop_text
from ..ir_build import compile_ir, compile_object, write_ir
from ..iteration_ends import mark_unit

__all__ = ["compile_checked_object", "compile_thread_object", "find_checks"]

# Functions that exist only in the runtime for fibers.
_CONVERGENCE_CALLS = (b"metalnb_converge", b"metalnb_barrier", b"metalnb_lane", b"metalnb_storage", b"metalnb_print")
_HINT = re.compile("barrier|simd|quad|threadgroup")
_ATTRIBUTE = re.compile(r'\$attribute\("[^"]*"\)')  # a thread's position, available in both forms
# No function here depends on which threads call it. clang assumes otherwise for OpenCL's functions (`convergent`), and
# would then not vectorize the loop.
_INDEPENDENT = ("-fno-convergent-functions",)
_PRINTED = ("-mllvm", "-print-before=loop-vectorize", "-mllvm", "-filter-print-funcs=metalnb_threads")


def compile_thread_object(unit: Unit) -> tuple[bytes, bool]:
    """Compile a unit's object file; return it, and True if it is for fibers.

    Raises
    ------
    CompileError
    """
    if any(p.space == "threadgroup" for p in unit.signature.params):
        return _compile_fibers(unit), True
    if any(_HINT.search(_ATTRIBUTE.sub("", text)) for text in unit.texts.values()) and _may_converge(unit):
        code = _compile_fibers(unit)  # a guess; if it is wrong, the kernel is compiled again
        if any(name in code for name in _CONVERGENCE_CALLS):
            return code, True
    code = _compile_loop(unit)
    return (_compile_fibers(unit), True) if any(name in code for name in _CONVERGENCE_CALLS) else (code, False)


def _may_converge(unit: Unit) -> bool:
    """Return whether a kernel's threads may converge, from the cached output of the first compilation step."""
    marked = mark_unit(unit)
    text = write_ir(marked, fiber_text(marked), _FIBERS)
    return any(name in text for name in _CONVERGENCE_CALLS)


_FRAME = 192 << 10  # bytes of a fiber's stack of 256 KiB for its own variables (runtime/fibers.c)
_FIBERS = (*toolchain.ORDERED, f"-Wframe-larger-than={_FRAME}")


def _compile_fibers(unit: Unit) -> bytes:
    marked = mark_unit(unit)
    return compile_object(marked, fiber_text(marked), _FIBERS, _check_stack)


def _check_stack(output: str) -> str:
    match = re.search(r"stack frame size \((\d+)\)", output)
    return f"a thread's own variables take {match[1]} bytes; engine 'cpu' has {_FRAME} for them" if match else ""


def _compile_loop(unit: Unit) -> bytes:
    try:
        text = loop_text(unit, independent=True)
        return compile_object(unit, text, (*_INDEPENDENT, *_PRINTED), _check_arrays)
    except BackendError:
        return compile_object(unit, loop_text(unit, independent=False), _INDEPENDENT)


def _check_arrays(output: str) -> str:
    """Return why threads are not independent (a thread array stayed in memory), or an empty string."""
    _, _, code = output.partition(DUMP)
    return "a thread's own array is in memory" if " alloca " in code else ""


def find_checks(unit: Unit) -> ThreadChecks | None:
    """Return the checks of a unit, for fibers; None if its text cannot be analyzed.

    Raises
    ------
    CompileError
    """
    return find_thread_checks(unit, _FIBERS)


def compile_checked_object(unit: Unit, checks: ThreadChecks, kernel: CheckedModule) -> bytes:
    """Compile a unit's object file with the given checks, for fibers.

    Raises
    ------
    CompileError
    """
    return compile_ir(limit_inlining(checks.text(kernel)), _FIBERS, unit, _check_stack)
