"""metalcompute's functions (its API v0.1): one kernel, one input, one output, kept in the module."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .codes import Code, error_of
from .library import Library, PipelineFunction
from .memory import Buffer
from .objects import device_engine

__all__ = ["compile", "init", "release", "rerun", "run"]


@dataclass(slots=True)
class _State:
    """The state that metalcompute.swift keeps between calls; its readiness flags follow from this."""

    device: bool = False
    computes: bool = False
    function: PipelineFunction | None = None
    buffers: tuple[Buffer, Buffer] | None = None


_state = _State()


def init(*args: Any) -> None:
    """Open a device, by index or the default one."""
    device_engine(args, "<built-in function init>")
    _state.device = True
    _state.computes = False


def release(*_: Any) -> None:
    """Release everything."""
    _state.device = _state.computes = False
    _state.function = _state.buffers = None


def compile(program: str, function_name: str, /) -> None:
    """Compile a program and find a function in it. If that fails, the previous function remains.

    Raises
    ------
    error
        If the program does not compile (with the compiler's message), or has no such function.
    """
    for i, text in enumerate((program, function_name), 1):
        if not isinstance(text, str):
            raise TypeError(f"compile() argument {i} must be str, not {type(text).__name__}")
    if not _state.device:
        raise error_of(Code.NOT_READY_TO_COMPILE)
    function = Library(program).function(function_name)
    if function is None:
        raise error_of(Code.FAILED_TO_FIND_FUNCTION)
    _state.function = function
    _state.computes = True
    _state.buffers = None  # metalcompute.swift, mc_sw_compile: readyToRun = false


def run(contents: Any, result: Any, count: int, /) -> None:
    """Run the function on a copy of the input, and copy the output back. Both are buffers of float (f) or byte (B).

    Raises
    ------
    error
    """
    count = _int32(count)
    source = _view(contents, Code.UNSUPPORTED_INPUT_FORMAT)
    target = _view(result, Code.UNSUPPORTED_OUTPUT_FORMAT)
    if target.readonly:
        raise error_of(Code.UNSUPPORTED_OUTPUT_FORMAT)
    # metalcompute.c, mc_py_1_run: the output's format is checked last, and its error is the one reported
    for view, code in ((target, Code.UNSUPPORTED_OUTPUT_FORMAT), (source, Code.UNSUPPORTED_INPUT_FORMAT)):
        if view.format not in {"f", "B"}:
            raise error_of(code)
    if not _state.computes:
        raise error_of(Code.NOT_READY_TO_COMPUTE)
    if source.nbytes == 0:
        raise error_of(Code.FAILED_TO_MAKE_INPUT_BUFFER)
    if target.nbytes == 0:
        raise error_of(Code.FAILED_TO_MAKE_OUTPUT_BUFFER)
    _state.buffers = (Buffer.holding(source), Buffer(target.nbytes))
    _run(count)
    np.ndarray(target.nbytes, np.uint8, buffer=target)[:] = _state.buffers[1].memory[: target.nbytes]


def rerun(count: int, /) -> None:
    """Run again on the buffers of the last `run`. Its results cannot be read: metalcompute has no call for that."""
    _run(_int32(count))


def _run(count: int) -> None:
    if _state.buffers is None or _state.function is None:
        raise error_of(Code.NOT_READY_TO_RUN)
    ticket = _state.function.dispatch(count, _state.buffers)
    if ticket is not None:
        ticket.wait()


def _int32(count: int) -> int:
    count = operator.index(count)
    if not -(2**31) <= count < 2**31:  # metalcompute.c: PyArg_ParseTuple's "i"
        raise OverflowError(f"signed integer is {'greater than maximum' if count > 0 else 'less than minimum'}")
    return count


def _view(contents: Any, code: Code) -> memoryview:
    try:
        view = memoryview(contents)
    except (TypeError, ValueError):
        raise error_of(code) from None
    if not view.c_contiguous:
        raise error_of(code)
    return view
