"""Start library kernels on arrays. Nothing here waits; reading an array waits for the dispatches on it."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array
from ...arrays.stream import start
from ...call.kernel import Kernel
from ...engine import named
from ...engine.base import Engine, Grid

__all__ = ["Launch", "dispatch", "is_aligned", "no_value"]


class Launch(NamedTuple):
    """A compiled kernel and its grid. Planned once, then started for each call.

    Attributes
    ----------
    binary : object
        The compiled kernel.
    grid, threadgroup : tuple of 3 int
        Threads, x first.
    records : tuple of numpy.ndarray
        The buffers after the arrays, which pass the plan to the kernel; after `bind_records`, as bound by the engine.
    engine : Engine, optional
        The engine of a `bind_records` launch.
    """

    binary: Any
    grid: Grid
    threadgroup: Grid
    records: tuple[Any, ...] = ()
    engine: Engine | None = None

    def bind_records(self, engine: Engine) -> Launch:
        """Return this launch with its records bound to an engine once, to be started many times."""
        return self._replace(records=tuple(map(engine.bind, self.records)), engine=engine)

    def start(self, *arguments: Any, more: tuple[Any, ...] = ()) -> None:
        """Start the kernel.

        Parameters
        ----------
        *arguments : Array or numpy.ndarray
            The first buffers; at least one must be an Array. The kernel receives an Array's entire block and finds its
            offset and strides in a record. Anyone who reads the array waits for this dispatch.
        more : tuple of buffers, optional
            The buffers after the records.
        """
        self.start_on(arguments, more)

    def start_on(self, arguments: tuple[Any, ...], more: tuple[Any, ...] = ()) -> None:
        """Start the kernel as `start` does, with the arguments as one tuple."""
        binary, grid, threadgroup, records, engine = self
        memory, blocks = [], []  # in one loop: before Python 3.12 each comprehension costs a call
        for a in arguments:
            if type(a) is Array:
                block = a.block
                blocks.append(block)
                memory.append(block.bound)
            else:
                memory.append(a)
        memory += records
        if more:
            memory += more
        start(engine or blocks[0].engine, binary, memory, grid, threadgroup, blocks)


@functools.cache
def no_value(engine: str) -> Any:
    """Return a placeholder for a number that a kernel does not use."""
    return named(engine).bind(np.zeros(4, np.uint8))


def is_aligned(x: Array, nbytes: int = 32) -> bool:
    """Return whether an array's block is aligned to `nbytes`, as vector loads require."""
    if x.engine.caps.shared:
        return int(x.block.host.__array_interface__["data"][0]) % nbytes == 0
    address = getattr(x.engine, "address", None)
    return address is not None and address(x.block.memory) % nbytes == 0


def dispatch(
    kernel: Kernel, *arguments: Any, grid: int | tuple[int, ...], threadgroup: int | tuple[int, ...] | None = None
) -> None:
    """Check a kernel's arguments as a call does, and start it.

    Parameters
    ----------
    kernel : Kernel
    *arguments : Array, numpy.ndarray or scalar
        In buffer order. An array must be contiguous; its memory is bound from its first element. bfloat16 is bound as
        ushort.
    grid, threadgroup : int or tuple of int
        Threads, x first.

    Raises
    ------
    ArgumentError, LaunchError
        As for a call of the kernel.
    """
    memory = [_memory(a) if type(a) is Array else a for a in arguments]
    prepared = kernel.prepare(*memory, grid=grid, threadgroup=threadgroup)
    if 0 not in prepared.grid:
        blocks = [a.block for a in arguments if type(a) is Array]
        start(kernel.engine, kernel.binary, prepared.arguments, prepared.grid, prepared.threadgroup, blocks)


def _memory(x: Array) -> np.ndarray[Any, Any]:
    # The name of a dtype is slow to look up.
    return x.host.view(np.uint16) if x.itemsize == 2 and x.dtype.name == "bfloat16" else x.host
