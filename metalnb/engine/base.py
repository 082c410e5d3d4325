"""The seam between metalnb and whatever runs a kernel. Below it: no NumPy rules, no arrays, no display.

A new engine is one file here that speaks this protocol, one target under ``msl/target``, and one row in
``engine/__init__.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from metalnb.msl.lower import Unit

__all__ = ["Binary", "Caps", "Clocked", "Engine", "Grid", "Ticket"]

Grid = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Caps:
    """What an engine can do.

    Attributes
    ----------
    device : str
        The device's own name.
    versions : dict
        Names and versions of what the engine stands on.
    max_threads : int
        Threads in a threadgroup. Metal's 1024 on every engine, so that a cell which runs here runs there.
    threadgroup_memory : int
        Bytes of a threadgroup's memory. Metal's 32 KiB on every engine.
    clock : {"device", "wall"}
        "device" when the device's own clock can time a dispatch: the engine is a `Clocked` one.
    msl : tuple of int
        The highest version of the language that it takes.
    offsets : bool
        Whether an argument may begin in the middle of memory from `Engine.alloc`.
    precise : bool
        Whether kernels can be compiled with ``math="precise"``.
    serial : bool
        Whether every thread is a core of its own: what is done step by step is quicker in one than in the lanes of a
        SIMD-group that take turns.
    """

    device: str
    versions: dict[str, str]
    max_threads: int = 1024
    threadgroup_memory: int = 32768
    clock: str = "wall"
    msl: tuple[int, int] = (3, 1)
    offsets: bool = True
    precise: bool = True
    serial: bool = False


class Binary(Protocol):
    """A kernel compiled for a device.

    Attributes
    ----------
    threadgroup_bytes : int
        Threadgroup memory that the kernel itself declares.
    max_threads : int
        Threads in a threadgroup that this kernel can run with.
    """

    threadgroup_bytes: int
    max_threads: int


class Ticket(Protocol):
    """A dispatch under way. It keeps the memory it works on alive: letting go of it may wait."""

    def wait(self) -> float | None:
        """Wait until it is done; give the seconds that the device took, if the engine can tell.

        Raises
        ------
        KernelFault
            When the kernel failed.
        """
        ...


class Engine(Protocol):
    """What runs kernels."""

    name: str
    caps: Caps

    def text(self, unit: Unit) -> str:
        """Give the text that the target's compiler is given for a kernel, to be read."""
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
        """Give memory of ``nbytes`` that has Python's buffer protocol and that the device reaches without a copy."""
        ...

    def launch(self, binary: Any, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> Ticket:
        """Start a dispatch of ``grid`` threads (not threadgroups), exactly.

        Parameters
        ----------
        binary
            From `compile`.
        arguments : sequence
            In the order of the signature's params: an object with the buffer protocol, C-contiguous, for a buffer;
            a number of bytes for threadgroup memory; None for a parameter that a function constant removes.
        grid, threadgroup : tuple of 3 int
            Threads, x first; all at least 1, and the threadgroup not larger than the grid.
        """
        ...


class Clocked(Engine, Protocol):
    """An engine whose device has a clock."""

    def timed(
        self, binary: Any, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, count: int,
    ) -> list[float]:  # fmt: skip
        """Run a dispatch ``count`` times, each right after the one before; parameters as for `launch`.

        The launches are prepared before the first one may start, so that preparing them does not take the processor
        from the kernel.

        Returns
        -------
        list of float
            The seconds of each, from its first thread's start to its last one's end.

        Raises
        ------
        KernelFault
            When the kernel failed.
        """
        ...
