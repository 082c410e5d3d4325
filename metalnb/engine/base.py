"""The interface between metalnb and its engines, below which there are no NumPy semantics, arrays or display.

An engine is a package in this folder that implements `Engine` and contains its target's texts, headers and passes;
``REGISTRY`` in ``engine_choice.py`` has a row for it. ``tests/engines/test_engine_conformance.py`` specifies what each
engine must do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from metalnb.engine.unit import Unit
from metalnb.errors import CompileError, EngineUnavailable

__all__ = [
    "Addressing", "Binary", "Bytes", "Caps", "Clocked", "Engine", "Grid", "Observation", "Observer", "Pointed",
    "SharedMemory", "Ticket", "compiled", "refuse_device",
]  # fmt: skip

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Grid = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Caps:
    """The capabilities of an engine.

    Attributes
    ----------
    device : str
        The device's own name.
    versions : dict
        Names and versions of the software underneath.
    threadgroup_memory : int
        Bytes of threadgroup memory: Metal's 32 KiB on every engine, so that cells stay portable.
    clock : {"device", "wall"}
        "device" if the device's clock can time a dispatch; the engine then implements `Clocked`.
    msl : tuple of int
        The newest version of the language that it accepts.
    shared : bool
        Whether the host and the device share memory. Where they do not, see `Engine.alloc`.
    offsets : bool
        Whether an argument may start in the middle of memory from `Engine.alloc`. Required where ``shared`` is False.
    precise : bool
        Whether kernels can be compiled with ``math="precise"``.
    serial : bool
        Whether each thread has its own core, so that one thread working sequentially is faster than the lanes of a
        SIMD-group in lockstep.
    processors : int
        The number of threadgroups of any size that can always run at once, a GPU's processors; 0 if unknown.
    stops : bool
        Whether a checked kernel can be stopped, by a call's ``timeout``.
    nominal : tuple of 2 float or None
        The device's memory bandwidth in B/s and its FLOP/s, as reported by its driver.
    last_cache : int
        Bytes of the device's last-level cache; 0 if unknown.
    pointers : bool
        Whether a struct may hold pointers (MSL 2.13, argument buffers); the engine then implements `Addressing`.
    prints : bool
        Whether kernels' log messages (MSL 6.17) are shown.
    matrices : frozenset of str
        The element types, in Metal's names, whose SIMD-group matrices are multiplied by dedicated hardware.
    copies : bool
        Whether copies from device to threadgroup memory are asynchronous, so that threads compute meanwhile.
    """

    device: str
    versions: dict[str, str]
    threadgroup_memory: int = 32768
    clock: str = "wall"
    msl: tuple[int, int] = (3, 2)
    shared: bool = True
    offsets: bool = True
    precise: bool = True
    serial: bool = False
    processors: int = 0
    stops: bool = False
    nominal: tuple[float, float] | None = None
    last_cache: int = 0
    pointers: bool = False
    prints: bool = False
    matrices: frozenset[str] = frozenset()
    copies: bool = False


class Binary(Protocol):
    """A kernel compiled for a device; an engine's own class derives from this one.

    Attributes
    ----------
    unit : Unit
        The unit that it was compiled from.
    threadgroup_bytes : int
        Threadgroup memory that the kernel declares.
    threads : int
        The largest threadgroup that it can run with.
    """

    __slots__ = ()

    unit: Unit
    threadgroup_bytes: int
    threads: int = 1024

    def facts(self) -> Sequence[tuple[str, str]]:
        """Return further lines of the kernel's card, each as a label and a text."""
        return ()


class Ticket(Protocol):
    """A dispatch in flight. It keeps the memory in use alive, and destroying it may block until the dispatch is done.

    Attributes
    ----------
    done : bool
        True for a dispatch that had ended when `Engine.launch` returned; otherwise it may still be running.
    counted : bool
        True if the ticket need not be kept: the engine limits the dispatches in flight and frees memory in their order,
        and waiting for a later one waits for this one.
    elapsed : callable
        Returns the dispatch's duration in seconds: None while it runs, NaN if it failed. The device's clock measures
        it; without one, it is the time from the launch to the end of the wait (see `Stopwatch`). The callable keeps
        neither the ticket nor any memory alive.

    Where a fault does not end the engine, a ticket also has ``has_raised``, whether a wait has raised its fault, and
    ``has_passed``, whether the dispatch is known to have ended without a fault: waiting for an array computed from its
    results raises a fault that no wait has raised yet.
    """

    done: bool
    counted: bool

    @property
    def elapsed(self) -> Callable[[], float | None]:
        """The callable that returns the dispatch's time."""
        ...

    def wait(self) -> None:
        """Block until the dispatch is done. May be called again, from any thread.

        Raises
        ------
        KernelFault
            If the kernel failed.
        """
        ...


class Observation(NamedTuple):
    """A started dispatch, as observers see it. It keeps none of its arrays alive.

    Attributes
    ----------
    started : float
        The start time, by `time.perf_counter`.
    binary : Binary
    grid, threadgroup : tuple of 3 int
        Threads, x first.
    sizes : list of int
        Bytes of each argument; 0 if it is not an array.
    elapsed : callable
        The `elapsed` of the dispatch's `Ticket`.
    """

    started: float
    binary: Binary
    grid: Grid
    threadgroup: Grid
    sizes: list[int]
    elapsed: Callable[[], float | None]


Observer = Callable[[Observation], Any]


class Engine(Protocol):
    """Runs kernels on one device. All methods may be called from any thread.

    Attributes
    ----------
    name : str
        The registry's name; from the second device on, followed by an index, as in ``"cuda:1"``.
    caps : Caps
    observers : tuple of callable
        Called by `launch` for each dispatch; `Observable` does so. Add one with `observation.observe`.
    """

    observers: tuple[Observer, ...]

    @property
    def name(self) -> str:
        """The engine's name."""
        ...

    @property
    def caps(self) -> Caps:
        """The engine's capabilities."""
        ...

    def text(self, unit: Unit) -> str:
        """Return the text that the target's compiler receives for a kernel, for display."""
        ...

    def expect(self) -> None:
        """Prepare to compile, as a new cell is being parsed. Must return immediately and not raise."""
        ...

    def compile(self, unit: Unit) -> Binary:
        """Compile one kernel.

        Raises
        ------
        CompileError
            If the target's compiler refuses it.
        """
        ...

    def alloc(self, nbytes: int) -> Any:
        """Allocate memory on the device.

        Returns
        -------
        object with the buffer protocol
            With ``caps.shared``, the host and the device see the same bytes. Otherwise they are a window on the host
            (see `staging.DeviceMemory`): the copies below transfer bytes between window and device, and an argument
            inside the window refers to the device memory at the same offset.

        Raises
        ------
        MemoryError
        """
        ...

    def bind(self, memory: Any) -> Any:
        """Return a faster form of an argument for `launch`: an array of bytes from `alloc`, or a constant record.

        Use it for memory that is passed many times. The form has the memory's ``nbytes`` and keeps the memory alive.
        """
        ...

    def copy_in(self, memory: Any, offset: int, data: Bytes) -> None:
        """Copy host bytes to device memory at a byte offset.

        Here and below, the caller has waited for dispatches that use the memory, and the copy is complete on return.
        """
        ...

    def copy_out(self, memory: Any, offset: int, into: Bytes) -> None:
        """Copy device memory at a byte offset to the host."""
        ...

    def copy_within(self, target: Any, offset: int, source: Any, start: int, nbytes: int) -> None:
        """Copy ``nbytes`` of device memory from ``source`` at ``start`` to ``target`` at ``offset``; may overlap."""
        ...

    def launch(self, binary: Any, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> Ticket:
        """Start a dispatch of exactly ``grid`` threads (not threadgroups), ordered after all earlier ones.

        Parameters
        ----------
        binary
            A kernel from `compile`.
        arguments : sequence
            In the order of the signature's params: for a buffer, a C-contiguous object with the buffer protocol or the
            result of `bind`; for threadgroup memory, a number of bytes; None for a parameter that a function constant
            removes.
        grid, threadgroup : tuple of 3 int
            Threads, x first; all at least 1. A threadgroup may be larger than the grid.
        """
        ...


class Clocked(Engine, Protocol):
    """An engine whose device has a clock."""

    def timed(
        self, binary: Any, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, count: int,
    ) -> list[float]:  # fmt: skip
        """Run a dispatch ``count`` times back to back; parameters as for `launch`. Observers are not called.

        All launches are prepared before the first one starts, so that preparation takes no processor time from the
        kernel.

        Returns
        -------
        list of float
            The time of each run in seconds, from the start of its first thread to the end of its last.

        Raises
        ------
        KernelFault
            If the kernel failed.
        """
        ...


class Addressing(Engine, Protocol):
    """An engine whose kernels follow pointers that a struct holds.

    An argument that holds addresses is a `Pointed`; the memory at those addresses stays alive as long as the dispatch.
    """

    def address(self, memory: Any) -> int:
        """Return the device address at which a view of memory from `alloc` starts."""
        ...


class Pointed(bytearray):
    """A struct's bytes, with addresses among them.

    Attributes
    ----------
    memories : tuple
        Views of the memory at those addresses.
    """

    def __init__(self, data: bytes, memories: tuple[Any, ...]) -> None:
        super().__init__(data)
        self.memories = memories


class SharedMemory:
    """The copy methods of an engine that shares the host's memory."""

    def copy_in(self, memory: Any, offset: int, data: Bytes) -> None:
        """Copy bytes into an engine's memory."""
        np.frombuffer(memory, np.uint8)[offset : offset + data.size] = data

    def copy_out(self, memory: Any, offset: int, into: Bytes) -> None:
        """Copy bytes out of an engine's memory."""
        into[:] = np.frombuffer(memory, np.uint8)[offset : offset + into.size]

    def copy_within(self, target: Any, offset: int, source: Any, start: int, nbytes: int) -> None:
        """Copy bytes between two blocks of an engine's memory, or within one."""
        self.copy_in(target, offset, np.frombuffer(source, np.uint8)[start : start + nbytes])


def compiled(engine: Engine, unit: Unit) -> Binary:
    """Compile a kernel from the parts of its cell that it needs, or from the entire cell if a declaration is missing.

    Raises
    ------
    CompileError
    """
    try:
        return engine.compile(unit)
    except CompileError as error:
        about = f"'{unit.signature.name}': "  # compiling the entire cell would not fix an error in the kernel itself
        complete_unit = replace(unit, whole=True)
        if error.message.startswith(about) or unit.texts == complete_unit.texts:
            raise
    return engine.compile(complete_unit)  # outside the handler, so that only this error is shown


def refuse_device(engine: str, device: int, count: int) -> NoReturn:
    """Refuse a device index that the engine does not have.

    Raises
    ------
    EngineUnavailable
    """
    has = "1 device" if count == 1 else f"{count} devices"
    names = ", ".join(f"'{engine}:{i}'" for i in range(count))
    message = f"engine '{engine}' has no device {device}: this machine has {has}, {names}"
    raise EngineUnavailable(message)
