"""metalcompute's objects (its API v0.2): devices, kernels, functions, buffers and runs."""

from __future__ import annotations

import atexit
import operator
import os
import struct
import sys
import weakref
from typing import Any, ClassVar, NamedTuple

from .codes import Code, error_of
from .library import Library, PipelineFunction, engine
from .memory import Buffer

__all__ = ["Device", "device_engine", "get_devices"]


class metalcompute_device(NamedTuple):  # noqa: N801  (metalcompute.c, define_device_info_type)
    """The record that `get_devices` returns for one device."""

    deviceName: str  # noqa: N815
    recommendedWorkingSetSize: int  # noqa: N815
    maxTransferRate: int  # noqa: N815
    hasUnifiedMemory: bool  # noqa: N815


def get_devices(*_: Any) -> tuple[metalcompute_device, ...]:
    """Return a record for each device. Metal's transfer rate is 0 for a built-in one."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return (metalcompute_device(engine().caps.device, memory, 0, hasUnifiedMemory=True),)


def device_engine(args: tuple[Any, ...], label: str) -> Any:
    """Return the engine for a device index: there is only device 0, which a negative index also selects.

    Raises
    ------
    error
        If there is no such device.
    SystemError
        If the argument is not one integer: metalcompute.c continues after PyArg_ParseTuple has failed.
    """
    try:
        index = _index(*args)
    except TypeError as reason:
        raise SystemError(f"{label} returned a result with an exception set") from reason
    if index >= 1:
        raise error_of(Code.CANNOT_CREATE_DEVICE)
    return engine()


def _index(index: Any = -1, /) -> int:
    return operator.index(index)


class Device:
    """A Metal device: makes buffers, compiles and runs kernels.

    Parameters
    ----------
    index : int, optional
        An index into `get_devices`; the system chooses the device by default or if it is negative. Positional only:
        metalcompute.c, Device_init, reads no keywords.
    """

    def __init__(self, *args: Any, **_: Any) -> None:
        self._name = device_engine(args, "<class 'metalcompute.Device'>").caps.device

    def __str__(self) -> str:
        return f"metalcompute.Device({self._name})"

    def kernel(self, program: str, /) -> Kernel:
        """Compile a program.

        Raises
        ------
        error
            If the program does not compile; the message is the compiler's.
        """
        return Kernel(program)

    def buffer(self, contents: Any, /) -> Buffer:
        """Make a buffer: a number of zero bytes, or a copy of a Python buffer."""
        return Buffer.holding(contents)


class Kernel:
    """A compiled program, with one or more functions."""

    def __init__(self, program: str) -> None:
        if not isinstance(program, str):
            raise TypeError(f"argument 2 must be str, not {type(program).__name__}")
        self._library = Library(program)

    def __str__(self) -> str:
        return "metalcompute.Kernel"

    def function(self, name: str, /) -> Function:
        """Find a kernel function by name.

        Raises
        ------
        error
            If the program has no function of that name.
        """
        if not isinstance(name, str):
            raise TypeError(f"argument 2 must be str, not {type(name).__name__}")
        function = self._library.function(name)
        if function is None:
            raise error_of(Code.FUNCTION_NOT_FOUND)
        return Function(function)


class Function:
    """A kernel function: call it with the count of threads, then the buffers."""

    def __init__(self, function: PipelineFunction) -> None:
        self._function = function

    def __str__(self) -> str:
        return "metalcompute.Function"

    def __call__(self, *args: Any, **_: Any) -> Run:
        # metalcompute.c, Run_init: the number of arguments is checked first, then the count, then each buffer.
        if len(args) < 2:
            raise error_of(Code.BUFFER_NOT_FOUND)
        count = _count(args[0])
        buffers = [a if type(a) is Buffer else Buffer.holding(a) for a in args[1:]]
        return Run(self._function, count, buffers)


def _count(first: Any) -> int:
    """Read the thread count: any number, truncated (metalcompute.c: PyNumber_Check, PyNumber_Long)."""
    a_number = any(hasattr(first, word) for word in ("__index__", "__int__", "__float__", "__complex__"))
    if type(first) is Buffer or not a_number:
        raise error_of(Code.COUNT_NOT_GIVEN)
    try:
        count = int(first)
        _INT64.pack(count)
    except (TypeError, ValueError, OverflowError, struct.error) as reason:
        # metalcompute.c continues, and CPython finds the error at the end
        raise SystemError("<class 'metalcompute.Run'> returned a result with an exception set") from reason
    return count


_INT64 = struct.Struct("q")


class Run:
    """A run in flight.

    Destroying it blocks until it is done, then releases the function and the buffers (metalcompute.c, Run_dealloc).
    """

    _alive: ClassVar[weakref.WeakSet[Run]] = weakref.WeakSet()

    def __init__(self, function: PipelineFunction, count: int, buffers: list[Buffer]) -> None:
        self._held = (function, buffers)
        self._ticket = function.dispatch(count, buffers)
        self._alive.add(self)

    def __str__(self) -> str:
        return "metalcompute.Run"

    def __del__(self) -> None:
        ticket = self.__dict__.pop("_ticket", None)
        if ticket is not None and not sys.is_finalizing():  # during finalization, modules cannot be imported
            ticket.wait()

    @classmethod
    def finish(cls) -> None:
        """Wait for running dispatches when the interpreter exits, while it still can."""
        for run in list(cls._alive):
            run.__del__()


atexit.register(Run.finish)
