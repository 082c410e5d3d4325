"""The ladder: a kernel is compiled in the first form that clang can write and the device's compiler takes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from metalnb.errors import CompileError
from metalnb.msl.libclang.deep_stack import time_limit
from metalnb.msl.text.bracket_tree import outline

from ..clang.driver import Refused, at_kernel
from ..clang.entry_point import ENTRY, opencl
from ..clang.loop_exits import made_with_ways_back
from ..unit import Unit
from .compiler_process import BuildFailed, options_for
from .opencl import Device
from .robust.divisions import with_divisors
from .spirv.barrier_loops import has_barrier, has_lanes
from .spirv.hiding.selected_indices import guarded_as_written
from .spirv.liveouts import lanes_leave, loops_alike
from .spirv.own_vectors import has_own_vectors
from .spirv.pass_table import rewritten
from .spirv_forms import FORMS, MEETING, OPTIMISED, Form, spirv
from .stack import Stack, stack_of

__all__ = ["Built", "Guarded", "built"]

# Bytes of a module from which on the SIMD-groups do not meet first. With a sub-group operation in it the device takes
# time that grows with the square of the length: 9 s for 2,000 lines; without, 10 s for 13,000.
_LONG = 1 << 17

# Seconds that a form's build may take as long as there are others: what takes minutes in one may take two seconds in
# the next. A module of 128 KiB took ten.
_PATIENCE, _PER_BYTE = 20.0, 1 / 2000
_HUNG = 4  # forms, before the first is given all the time that there is

# Is given the module, text and form of an attempt; returns the module with checks.
Guarded = Callable[[bytes, str, Form], bytes]


class Built(NamedTuple):
    """A kernel of the device's, and what it needs of a core's stack if that is much."""

    kernel: Any
    stack: Stack | None


class _Rung(NamedTuple):
    """One attempt."""

    form: Form
    fast: bool = True  # with the passes that only make it faster
    vectorised: bool = True
    held: bool = False  # with the conditions of loops held in place


def built(
    device: Device, unit: Unit, *, flat: bool, even: bool, wide: bool,
    guarded: Guarded | None = None,
) -> Built:  # fmt: skip
    """Compile a kernel for one way to enter it (see `Variant` of the engine).

    Parameters
    ----------
    device, unit
    flat, even, wide : bool
    guarded : callable, optional
        Puts checks into the module of each attempt.

    Raises
    ------
    CompileError
        At the kernel, when no form is taken, with all that was said about the first.
    """
    failures: list[CompileError] = []
    hung: list[_Rung] = []
    limit = time_limit()
    for rung in _attempts(_rungs(unit, opencl(unit, flat=flat, even=even, wide=wide)), hung):
        try:
            code = _module(unit, rung, flat=flat, even=even, wide=wide, guarded=guarded)
            if code is None:
                continue
            seconds = limit if rung in hung else min(limit, _PATIENCE + len(code) * _PER_BYTE)
            waits, apart = has_barrier(code), rung.vectorised and unit.signature.simd and lanes_leave(code)
            if apart:
                code = guarded_as_written(code)
            options = options_for(barrier=waits, lanes_leave=apart, loops_alike=loops_alike(code))
            program = device.build(code, vectorised=rung.vectorised, options=options, seconds=seconds)
            kernel = device.cl.Kernel(program, ENTRY)
            return Built(kernel, stack_of(kernel, device.device, waits=waits))
        except Refused as error:
            failures.append(error)
        except BuildFailed as failed:
            if _STARTED in failed.reason:
                raise CompileError([at_kernel(unit, *_NOT_CONSTANT)]) from None
            failures.append(_error(unit, failed))
            if failed.kind == "killed" or (failed.kind == "hung" and seconds == limit):
                break  # the next form would take as much
            if failed.kind == "hung":
                hung.append(rung)
        except device.cl.Error as error:  # a binary that the device does not load
            failures.append(_error(unit, BuildFailed(str(error), "refused")))
    raise failures[-1] if hung else failures[0]


def _module(
    unit: Unit, rung: _Rung, *, flat: bool, even: bool, wide: bool, guarded: Guarded | None,
) -> bytes | None:  # fmt: skip
    """Return a kernel's module in a form; None for scalar code of a kernel whose threads meet."""
    def made(cell: str) -> tuple[str, bytes]:
        text = opencl(unit, flat=flat, even=even, wide=wide, lanes=rung.vectorised, cell=cell)
        return text, spirv(unit, text, rung.form)

    text, module = made_with_ways_back(unit, made)
    if not rung.vectorised and has_lanes(module):
        return None
    if len(module) > _LONG and rung.vectorised and not unit.signature.simd:
        text = opencl(unit, flat=flat, even=even, wide=wide, meet=False)
        module = spirv(unit, text, rung.form)
    lanes = rung.vectorised and unit.math != "scalar"
    code = rewritten(module, wide=wide, fast=rung.fast, held=rung.held, lanes=lanes)
    if guarded is not None:
        code = guarded(code, text, rung.form)
    return with_divisors(code)  # at last: what is proven of a quotient is proven of what the author wrote


def _attempts(rungs: Iterator[_Rung], hung: list[_Rung]) -> Iterator[_Rung]:
    """Yield rungs, up to some that hung; then once more the first of these."""
    for rung in rungs:
        if len(hung) == _HUNG:
            break
        yield rung
    yield from hung[:1]


def _rungs(unit: Unit, text: str) -> Iterator[_Rung]:
    if _mentions(unit, "nontemporal") and has_own_vectors(spirv(unit, text, OPTIMISED)):
        yield _Rung(OPTIMISED, vectorised=False)
        return
    forms = _forms(unit, text)
    for form in forms:
        yield _Rung(form)
    yield _Rung(forms[0], fast=False)
    if unit.signature.simd:
        yield from (_Rung(form, held=True) for form in forms)
    # At last without lanes side by side: for a kernel that calls no SIMD function, though its cell may name some.
    yield from (_Rung(form, vectorised=False) for form in (OPTIMISED, FORMS[0]))


def _forms(unit: Unit, text: str) -> tuple[Form, ...]:
    """Return the forms to try in turn: see `metalnb.engine.cpu.spirv_forms`."""
    if unit.math == "scalar":
        return (OPTIMISED,)
    if not _mentions(unit, "barrier"):
        return FORMS
    try:  # the cell has a barrier: has this kernel one?
        return MEETING if has_barrier(spirv(unit, text, FORMS[0])) else FORMS
    except Refused:
        return MEETING


def _mentions(unit: Unit, part: str) -> bool:
    """Return whether a word of the cell, or of what it includes, has a part: most kernels need no closer look then."""
    return any(part in word for c in (unit.cell, *unit.headers.values()) for word in _words(c.edited.original))


@functools.lru_cache(64)
def _words(source: str) -> frozenset[str]:
    return frozenset(outline(source).words)


# What clang writes for variables that are given their values when a program starts: a device has no such time.
_STARTED = "_GLOBAL__sub_I"
_NOT_CONSTANT = (
    "a variable at program scope has a value that is not known when it is compiled",
    "give it a constant expression (MSL 4.2); a long one may be beyond what clang computes: write its value",
)


def _error(unit: Unit, failed: BuildFailed) -> CompileError:
    reason, hint = failed.reason.strip(), ""
    if failed.kind == "refused":
        if any(word in reason.lower() for word in ("undefined", "unresolved")):
            hint = "a function is declared but never defined"
        reason = f"the device's compiler refused the kernel: {reason}"
    elif failed.kind == "hung":
        hint = "make the kernel smaller, or set METALNB_COMPILE_TIMEOUT to more seconds"
    else:
        hint = "the kernel may be right: write what it does in another way, or split it"
        reason = f"the device's compiler gave no code: {reason}"
    return CompileError([at_kernel(unit, reason, hint)])
