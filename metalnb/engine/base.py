"""The seam between metalnb and whatever runs a kernel. Below it: no NumPy rules, no arrays, no display.

An engine is a room in this folder that implements `Engine`, with the text, headers and passes of its target inside,
and a row of ``REGISTRY`` in ``engine_choice.py``. ``tests/engines/test_engine_conformance.py`` says what each engine
must do.
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
    """What an engine can do.

    Attributes
    ----------
    device : str
        The device's own name.
    versions : dict
        Names and versions of the software underneath.
    threadgroup_memory : int
        Bytes of memory that a threadgroup has: Metal's 32 KiB on every engine, so that a cell which runs here runs
        there.
    clock : {"device", "wall"}
        "device" when the device's own clock can time a dispatch: the engine is then a `Clocked` one.
    msl : tuple of int
        The highest version of the language that it accepts.
    shared : bool
        Whether the host and the device share memory. Where they do not, see `Engine.alloc`.
    offsets : bool
        Whether an argument may start in the middle of memory from `Engine.alloc`. Required where ``shared`` is False.
    precise : bool
        Whether kernels can be compiled with ``math="precise"``.
    serial : bool
        Whether each thread has a core of its own, so that one thread working step by step is faster than the lanes of
        a SIMD-group taking turns.
    processors : int
        The number of threadgroups of any size that run at once, at least: a GPU's processors; 0 when unknown.
    stops : bool
        Whether a checked kernel can be stopped: the ``timeout`` of a call.
    nominal : tuple of 2 float or None
        The device's B/s to memory and its FLOP/s, as its own driver has them.
    last_cache : int
        Bytes of the device's last-level cache; 0 when unknown.
    pointers : bool
        Whether a struct may hold pointers (MSL 2.13, argument buffers): the engine then is an `Addressing` one.
    prints : bool
        Whether what a kernel logs (MSL 6.17) is shown.
    matrices : frozenset of str
        The element types, Metal's words, whose SIMD-group matrices hardware of its own multiplies.
    copies : bool
        Whether copies from device to threadgroup memory are asynchronous: threads compute meanwhile.
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
    """A kernel compiled for a device.

    Attributes
    ----------
    unit : Unit
        What it was compiled from.
    threadgroup_bytes : int
        Threadgroup memory that the kernel itself declares.
    threads : int, optional
        The most threads of a threadgroup that it runs with; without it, 1024.
    facts : callable, optional
        Returns further lines of the kernel's card, each as a label and a text.
    """

    unit: Unit
    threadgroup_bytes: int


class Ticket(Protocol):
    """A dispatch in flight. It keeps the memory in use alive: destroying it may block until the dispatch is done.

    Attributes
    ----------
    done : bool, optional
        True for a dispatch that had ended when `Engine.launch` returned; otherwise it may still be running.
    counted : bool, optional
        True for one that need not be kept: the engine bounds how many are in flight, frees memory in their order, and
        waiting for a later one waits for this one.
    elapsed : callable
        Returns the seconds that the dispatch took: None while it runs, NaN when it failed. It is the device's time, or
        without a device clock the time from the launch to the end of the wait (see `Stopwatch`). It holds neither the
        ticket nor any memory.
    """

    @property
    def elapsed(self) -> Callable[[], float | None]:
        """What tells the time that it took."""
        ...

    def wait(self) -> None:
        """Block until the dispatch is done. May be called again, from any thread.

        Raises
        ------
        KernelFault
            When the kernel failed.
        """
        ...


class Observation(NamedTuple):
    """A dispatch that was started. It keeps none of its arrays alive.

    Attributes
    ----------
    started : float
        By `time.perf_counter`.
    binary : Binary
    grid, threadgroup : tuple of 3 int
        Threads, x first.
    sizes : list of int
        Bytes of each argument; 0 where it is not an array.
    elapsed : callable
        That of the dispatch's `Ticket`.
    """

    started: float
    binary: Binary
    grid: Grid
    threadgroup: Grid
    sizes: list[int]
    elapsed: Callable[[], float | None]


Observer = Callable[[Observation], Any]


class Engine(Protocol):
    """What runs kernels on one device. All methods may be called from any thread.

    Attributes
    ----------
    name : str
        As in the registry; for the second device and those after it with an index: ``"cuda:1"``.
    caps : Caps
    observers : tuple of callable
        What `launch` tells of each dispatch; `Observable` does it. Add one with `observation.observe`.
    """

    observers: tuple[Observer, ...]

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def caps(self) -> Caps:
        """What it can do."""
        ...

    def text(self, unit: Unit) -> str:
        """Return the text that the target's compiler is given for a kernel, for people to read."""
        ...

    def expect(self) -> None:
        """Get ready to compile: a new cell is being parsed. Must return at once, and not raise."""
        ...

    def compile(self, unit: Unit) -> Binary:
        """Compile one kernel.

        Raises
        ------
        CompileError
            When the target's compiler refuses it.
        """
        ...

    def alloc(self, nbytes: int) -> Any:
        """Allocate memory on the device.

        Returns
        -------
        object with the buffer protocol
            With ``caps.shared``, the host and the device see the same bytes. Otherwise its bytes are a window on the
            host (see `staging.DeviceMemory`): the copies below carry bytes between it and the device, and an argument
            that lies in the window stands for the device's memory at the same offset.

        Raises
        ------
        MemoryError
        """
        ...

    def bind(self, memory: Any) -> Any:
        """Return what `launch` may be given for an array of bytes from `alloc`, or of a record that stays as it is.

        It is for memory that is given many times, has the memory's ``nbytes``, and keeps the memory alive.
        """
        ...

    def copy_in(self, memory: Any, offset: int, data: Bytes) -> None:
        """Copy host bytes to device memory at a byte offset.

        Here and below: the caller has waited for dispatches that use the memory, and the copy is done on return.
        """
        ...

    def copy_out(self, memory: Any, offset: int, into: Bytes) -> None:
        """Copy device memory at a byte offset to the host."""
        ...

    def copy_within(self, target: Any, offset: int, source: Any, start: int, nbytes: int) -> None:
        """Copy ``nbytes`` of device memory, from ``source`` at ``start`` to ``target`` at ``offset``; may overlap."""
        ...

    def launch(self, binary: Any, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> Ticket:
        """Start a dispatch of ``grid`` threads (not threadgroups), exactly, after those started before it.

        Parameters
        ----------
        binary
            From `compile`.
        arguments : sequence
            In the order of the signature's params: an object with the buffer protocol, C-contiguous, for a buffer, or
            what `bind` made of one;
            a number of bytes for threadgroup memory; None for a parameter that a function constant removes.
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

        All launches are prepared before the first may start, so that preparing them takes no processor time from the
        kernel.

        Returns
        -------
        list of float
            The seconds of each, from the start of its first thread to the end of its last.

        Raises
        ------
        KernelFault
            When the kernel failed.
        """
        ...


class Addressing(Engine, Protocol):
    """An engine whose kernels follow pointers that a struct holds.

    An argument that holds addresses is a `Pointed`; what they lead to stays alive as long as the dispatch.
    """

    def address(self, memory: Any) -> int:
        """Return where on the device a view of memory from `alloc` starts."""
        ...


class Pointed(bytearray):
    """A struct's bytes, with addresses among them.

    Attributes
    ----------
    memories : tuple
        Views of the memory that they lead to.
    """

    def __init__(self, data: bytes, memories: tuple[Any, ...]) -> None:
        super().__init__(data)
        self.memories = memories


class SharedMemory:
    """The copies of an engine whose memory is the host's too."""

    def copy_in(self, memory: Any, offset: int, data: Bytes) -> None:
        """Copy bytes into an engine's memory."""
        np.frombuffer(memory, np.uint8)[offset : offset + data.size] = data

    def copy_out(self, memory: Any, offset: int, into: Bytes) -> None:
        """Copy bytes out of an engine's memory."""
        into[:] = np.frombuffer(memory, np.uint8)[offset : offset + into.size]

    def copy_within(self, target: Any, offset: int, source: Any, start: int, nbytes: int) -> None:
        """Copy bytes from one piece of an engine's memory to another, or within one."""
        self.copy_in(target, offset, np.frombuffer(source, np.uint8)[start : start + nbytes])


def compiled(engine: Engine, unit: Unit) -> Binary:
    """Compile a kernel of a part of its cell; of all of it when the compiler misses something in that part.

    Raises
    ------
    CompileError
    """
    try:
        return engine.compile(unit)
    except CompileError as error:
        about = f"'{unit.signature.name}': "  # of the kernel itself: all of the cell would be refused as well
        whole = replace(unit, whole=True)
        if error.message.startswith(about) or unit.texts == whole.texts:
            raise
        return engine.compile(whole)


def refuse_device(engine: str, device: int, count: int) -> NoReturn:
    """Refuse the index of a device that an engine does not have.

    Raises
    ------
    EngineUnavailable
    """
    has = "1 device" if count == 1 else f"{count} devices"
    names = ", ".join(f"'{engine}:{i}'" for i in range(count))
    message = f"engine '{engine}' has no device {device}: this machine has {has}, {names}"
    raise EngineUnavailable(message)
