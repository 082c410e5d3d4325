"""Stage NumPy's memory for a device that cannot access it: lend, copy in, bind and copy back.

The engines of all such devices share this module. It takes the arguments of a launch, and returns their bindings to
device memory, and the results to copy back when the dispatch is done.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from metalnb.errors import LaunchError

from .base import Bytes, Engine

__all__ = ["BufferBinding", "DeviceMemory", "Result", "Staging", "binding_of", "copy_to_host"]

Span = tuple[int, int]


class DeviceMemory(np.ndarray[Any, np.dtype[np.uint8]]):
    """Device memory that the host cannot access, for `Engine.alloc`, behind a window of host bytes of its size.

    The window costs only address space until something is copied into it. View it through ``np.frombuffer``.

    Attributes
    ----------
    handle : object
        The engine's handle of the memory. Dropping the last reference to it must free the memory.
    """

    handle: Any

    def __new__(cls, nbytes: int, handle: Any) -> Self:
        """Make the window on some device memory."""
        window = super().__new__(cls, nbytes, np.uint8)
        window.handle = handle
        return window


@dataclass(frozen=True, slots=True)
class BufferBinding:
    """The device memory of an argument: memory from the engine's ``alloc``, and an offset in bytes."""

    memory: Any
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """A result to copy back: the caller's memory, and its counterpart on the device.

    Attributes
    ----------
    target : Bytes
    memory : object
    in_place : bool
        True if the device works on the caller's memory in place: nothing is copied, but reads of it must wait.
    """

    target: Bytes
    memory: Any
    in_place: bool = False


def binding_of(view: Any) -> BufferBinding | None:
    """Return the binding of a view of device memory that the host cannot access; None for other memory."""
    owner = view
    while type(owner) is not DeviceMemory:
        if not isinstance(owner, (np.ndarray, memoryview)):
            return None
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return BufferBinding(owner, _span(_bytes(view))[0] - _span(np.asarray(owner))[0])


def copy_to_host(engine: Engine, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a host copy of a contiguous array in any memory, after waiting for the dispatches on it."""
    binding = binding_of(array)
    if binding is None:
        return array.copy()
    copy = np.empty(array.shape, array.dtype)
    engine.copy_out(binding.memory, binding.offset, _bytes(copy))
    return copy


class Pending(Protocol):
    """A dispatch whose results may not have been copied back yet."""

    @property
    def results(self) -> Sequence[Result]:
        """The results still to be copied back."""
        ...

    def wait(self) -> None:
        """Wait for the dispatch, and copy its results back."""
        ...


class Staging:
    """Binds each argument to device memory.

    The engine's own memory is bound where it is. All other memory is copied in; arguments with the same memory share
    one copy, as they do on a device that shares the process's memory.

    Parameters
    ----------
    engine : Engine
    lend : callable, optional
        Takes the caller's bytes; returns the engine's handle for them in place, or None to have them copied.
    """

    def __init__(self, engine: Engine, lend: Callable[[Bytes], Any] = lambda _: None) -> None:
        self._engine = engine
        self._lend = lend
        self._own_type = type(engine.alloc(16))
        self._pending: weakref.WeakSet[Any] = weakref.WeakSet()

    def bind(self, kernel: str, arguments: Sequence[tuple[bool, Any]]) -> tuple[list[BufferBinding], list[Result]]:
        """Return the binding of each argument, and the results to copy back.

        Parameters
        ----------
        kernel : str
            The kernel's name.
        arguments : sequence of (bool, argument)
            Whether the kernel writes to the argument, and the argument.

        Raises
        ------
        LaunchError
            If an argument that is written partly overlaps another.
        """
        bindings: list[BufferBinding] = []
        results: list[Result] = []
        copies: dict[Span, BufferBinding] = {}
        lent_spans: set[Span] = set()
        written_spans: set[Span] = set()
        bound_spans: set[Span] = set()
        for writable, argument in arguments:
            binding = self.engine_binding(argument)
            if binding is not None:
                bindings.append(binding)
                if not self._engine.caps.offsets:  # a copied argument may be part of it
                    span = _span(_bytes(argument))
                    bound_spans.add(span)
                    written_spans |= {span} if writable else set()
                continue
            view = _bytes(argument)
            span = _span(view)
            if span not in copies:
                memory = self._lend(view)
                if memory is None:
                    copies[span] = self._copy(view)
                else:
                    self.settle(view, except_memory=memory)
                    copies[span] = BufferBinding(memory)
                    lent_spans.add(span)
                    results.append(Result(view, memory, in_place=True))
            bindings.append(copies[span])
            if writable and span not in written_spans:
                written_spans.add(span)
                if span not in lent_spans:
                    results.append(Result(view, copies[span].memory))
        self._check_overlap(kernel, written_spans, lent_spans | bound_spans, {*copies, *bound_spans})
        return bindings, results

    def read_bytes(self, argument: Any) -> bytes:
        """Return the bytes of the caller's memory after the earlier dispatches."""
        if isinstance(argument, np.ndarray):
            self.settle(_bytes(argument))
        return bytes(_bytes(argument))

    def settle(self, view: Bytes, *, except_memory: Any = None) -> None:
        """Wait for the dispatches whose results go to any of these bytes, except those that bind ``except_memory``."""
        span = _span(view)
        for pending in list(self._pending):
            if any(_overlap(span, _span(r.target)) and r.memory is not except_memory for r in pending.results):
                pending.wait()

    def expect(self, pending: Pending) -> None:
        """Remember a dispatch until its results are copied back: reading them must wait for it."""
        if pending.results:
            self._pending.add(pending)

    def fetch(self, results: Sequence[Result]) -> None:
        """Copy results back; the dispatch is done."""
        for result in results:
            if not result.in_place:
                self._engine.copy_out(result.memory, 0, result.target)

    def _copy(self, view: Bytes) -> BufferBinding:
        self.settle(view)
        memory = self._engine.alloc(max(view.size, 1))
        self._engine.copy_in(memory, 0, view)
        return BufferBinding(memory)

    def copies(self, array: np.ndarray[Any, Any]) -> bool:
        """Return whether a launch copies an array, since the device does not work on its memory."""
        return self.engine_binding(array) is None and self._lend(_bytes(array)) is None

    def engine_binding(self, argument: Any) -> BufferBinding | None:
        """Return the binding of a view of the engine's memory; None for other memory, or if it must be copied."""
        owner = argument
        while type(owner) is not self._own_type and isinstance(owner, (np.ndarray, memoryview)):
            owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
        if type(owner) is not self._own_type:
            return None
        offset = _span(_bytes(argument))[0] - _span(np.frombuffer(owner, np.uint8))[0]
        return None if offset and not self._engine.caps.offsets else BufferBinding(owner, offset)

    def _check_overlap(self, kernel: str, written_spans: set[Span], in_place: set[Span], spans: set[Span]) -> None:
        for span in written_spans:
            others = (other for other in spans if other != span and not {span, other} <= in_place)
            if any(_overlap(span, other) for other in others):
                message = f"{kernel}: an argument that it writes overlaps another in part"
                raise LaunchError(f"{message}; engine '{self._engine.name}' copies each. Pass a copy of one of them.")


def _span(view: Bytes) -> Span:
    """Return the addresses of the first byte and of the one after the last."""
    start = int(view.__array_interface__["data"][0])
    return start, start + view.size


def _overlap(a: Span, b: Span) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def _bytes(argument: Any) -> Bytes:
    """Return an argument's bytes as a NumPy view, because not every dtype has the buffer protocol."""
    if isinstance(argument, np.ndarray):
        return np.asarray(argument).reshape(-1).view(np.uint8)
    return np.frombuffer(argument, np.uint8)
