"""A pool of an engine's memory: blocks are reused instead of being allocated for each array."""

from __future__ import annotations

import contextlib
import functools
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from metalnb import engine as engines
from metalnb.display.memory_table import memory_table
from metalnb.engine.process_locks import new_reentrant_lock
from metalnb.errors import KernelFault

if TYPE_CHECKING:
    from metalnb.engine.base import Engine, Ticket

__all__ = [
    "Block", "DeviceBlock", "Lease", "MemoryInfo", "Pool", "allocate", "borrow", "memory_info", "pool_of",
    "round_size",
]  # fmt: skip

_NEVER: Any = object()  # in place of the fetched ticket while `host` is out of date
_SMALLEST_BLOCK = 256
_MAX_FREE_BYTES = 1 << 30  # keep at most this many bytes of free blocks for later arrays


class MemoryInfo(NamedTuple):
    """The memory of an engine that arrays use, in bytes.

    Attributes
    ----------
    engine : str
    used : int
        The bytes in blocks of live arrays.
    cached : int
        The bytes in free blocks, which are kept for later arrays; `clear_cache` returns them to the system.
    peak : int
        The maximum of the bytes in use so far.
    """

    engine: str
    used: int
    cached: int
    peak: int

    def __repr__(self) -> str:
        return memory_table(*self).text()

    def _repr_html_(self) -> str:
        return memory_table(*self).html()


class Block:
    """A piece of memory that the engine can access, and the last dispatch that uses it.

    Attributes
    ----------
    engine : Engine
    memory : object
        The engine's own memory, or borrowed memory; it supports the buffer protocol.
    host : numpy.ndarray
        The same bytes; access them only after `settle`.
    bound : object
        The launch argument for this memory, from `Engine.bind`.
    viewers : int
        The number of other users (NumPy, DLPack) that may read the memory at any moment; while there is one, each
        dispatch on the memory waits.
    lent : bool
        Whether another library on the same device may write to the memory, in order with the engine's dispatches.
    ticket : Ticket or None
        The last dispatch that uses the memory. An engine runs dispatches in order, so all earlier ones finish first.
    """

    __slots__ = ("__weakref__", "_pool", "bound", "engine", "host", "lent", "memory", "ticket", "viewers")

    def __init__(
        self, engine: Engine, memory: Any, host: Any, pool: Pool | None, ticket: Ticket | None = None,
        bound: Any = None,
    ) -> None:  # fmt: skip
        self.engine = engine
        self.memory = memory
        self.host = host
        self.bound = host if bound is None else bound
        self.viewers = 0
        self.lent = False
        self.ticket = ticket
        self._pool = pool

    @property
    def shared(self) -> bool:
        """Whether NumPy or another library may read or write it at any moment."""
        return self.viewers > 0

    def settle(self) -> None:
        """Wait until the last dispatch that uses it is done.

        Raises
        ------
        KernelFault
        """
        if self.ticket is not None:
            self.ticket.wait()  # keep the ticket: another thread may be about to wait for it, too

    def flush(self) -> None:
        """Copy what was written to `host` to the device. Call this after writing and before the next dispatch."""

    def __del__(self) -> None:
        if self._pool is not None:
            self._pool.take_back(self)


class DeviceBlock(Block):
    """A block that the host cannot access: `host` is a copy, which `settle` updates and `flush` writes back."""

    __slots__ = ("_fetched_ticket",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.bound = self.memory
        self._fetched_ticket = self.ticket

    def settle(self) -> None:
        """Wait until no dispatch uses it, and make its results visible."""
        ticket = self.ticket  # another thread may start the next dispatch while the results are copied
        super().settle()
        if self.lent or self._fetched_ticket is not ticket:
            self.engine.copy_out(self.memory, 0, self.host)
            self._fetched_ticket = ticket

    def flush(self) -> None:
        """Copy writes to `host` to the device."""
        self.engine.copy_in(self.memory, 0, self.host)

    def receive(self, data: np.ndarray[Any, Any]) -> None:
        """Copy the bytes of a contiguous array to the device without `host`, which is updated when it is next read."""
        super().settle()
        self.engine.copy_in(self.memory, 0, data.reshape(-1).view(np.uint8))
        self._fetched_ticket = _NEVER


class Lease:
    """Keeps a block's memory alive for another library: NumPy holds it as the base of its array."""

    __slots__ = ("__array_interface__", "_block")

    _lock = new_reentrant_lock()  # re-entrant: the garbage collector may run `__del__` inside `__init__`

    def __init__(self, block: Block, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface
        self._block = block
        with self._lock:
            block.viewers += 1

    def __del__(self) -> None:
        with self._lock:
            self._block.viewers -= 1


_Piece = tuple[Any, Any, Any, Any]  # memory, host, ticket and bound of a block


class _FormerUse:
    """The last dispatch on memory that a new array reuses: the array waits for it but does not raise its fault."""

    __slots__ = ("_ticket",)

    done = counted = True  # the array that now owns the memory ignores the fault

    def __init__(self, ticket: Any) -> None:
        self._ticket = getattr(ticket, "own", ticket)  # do not wait for the dispatches that it depends on

    def wait(self) -> None:
        ticket = self._ticket
        was_raised = getattr(ticket, "has_raised", True)
        with contextlib.suppress(KernelFault):
            ticket.wait()
        if not was_raised:
            ticket.has_raised = False  # other arrays may hold its results


class Pool:
    """The free blocks of one engine, by size."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.used = self.peak = self._allocated = 0
        self._free: defaultdict[int, list[_Piece]] = defaultdict(list)
        self._lock = new_reentrant_lock()  # re-entrant: the garbage collector may run `take_back` inside `give`
        self._kind: type[Block] = Block

    @property
    def cached(self) -> int:
        """Bytes in free blocks."""
        return self._allocated - self.used

    def give(self, nbytes: int) -> Block:
        """Return a block of at least `nbytes`, uninitialized.

        Raises
        ------
        MemoryError
            If there is not enough memory, even after returning the free blocks to the system.
        """
        return self.take(round_size(nbytes))

    def take(self, size: int) -> Block:
        """Return a block of a size returned by `round_size`."""
        with self._lock:
            free_blocks = self._free[size]
            if free_blocks:
                memory, host, ticket, bound_memory = free_blocks.pop()
            else:
                memory, host, ticket, bound_memory = self._fresh(size)
                self._allocated += size
            in_use = self.used = self.used + size
            if in_use > self.peak:  # noqa: PLR1730  (a call of max costs as much as all of this)
                self.peak = in_use
        return self._kind(self.engine, memory, host, self, ticket, bound_memory)

    def _fresh(self, size: int) -> _Piece:
        try:
            memory = self.engine.alloc(size)
        except MemoryError:
            self.clear()
            memory = self.engine.alloc(size)
        if not self.engine.caps.shared:  # read at the first block, since it opens the device
            self._kind = DeviceBlock
        host = np.frombuffer(memory, np.uint8)
        return memory, host, None, self.engine.bind(host)

    def take_back(self, block: Block) -> None:
        """Keep a block that no array uses. Dispatches that still use it do no harm, since dispatches run in order."""
        size = block.host.size
        ticket: Any = block.ticket
        if ticket is not None and type(ticket) is not _FormerUse and not ticket.done:
            ticket = _FormerUse(ticket)
        with self._lock:
            in_use = self.used = self.used - size
            if self._allocated - in_use > _MAX_FREE_BYTES:
                self._allocated -= size
            else:
                self._free[size].append((block.memory, block.host, ticket, block.bound))

    def clear(self) -> None:
        """Free the unused blocks."""
        with self._lock:
            self._free.clear()
            self._allocated = self.used


_pools: dict[Engine, Pool] = {}


@functools.lru_cache(4096)
def round_size(nbytes: int) -> int:
    """Round a size up to a quarter of its power of two, so that similar sizes share blocks."""
    if nbytes <= _SMALLEST_BLOCK:
        return _SMALLEST_BLOCK
    step = max(1 << ((nbytes - 1).bit_length() - 3), 64)
    return -(-nbytes // step) * step


def pool_of(engine: Engine) -> Pool:
    """Return the pool of an engine's free blocks."""
    pool = _pools.get(engine)
    if pool is None:
        pool = _pools.setdefault(engine, Pool(engine))
    return pool


def allocate(nbytes: int, engine: Engine | None = None) -> Block:
    """Return a block of at least `nbytes` on an engine, by default the one in use.

    Raises
    ------
    MemoryError
        If there is not enough memory.
    """
    return pool_of(engine or engines.current()).give(nbytes)


def borrow(data: Any, engine: Engine | None = None) -> Block:
    """Return a block over a C-contiguous NumPy array's memory."""
    host = data.reshape(-1).view(np.uint8)
    block = Block(engine or engines.current(), host, host, None)
    block.viewers = 1  # permanently: the owner of the memory may access it at any moment
    return block


def memory_info(engine: str | None = None) -> MemoryInfo:
    """Return how much of an engine's memory arrays use.

    Parameters
    ----------
    engine : str, optional
        By default the one in use.

    Returns
    -------
    MemoryInfo
        In bytes.
    """
    pool = pool_of(engines.named(engine))
    return MemoryInfo(pool.engine.name, pool.used, pool.cached, pool.peak)
