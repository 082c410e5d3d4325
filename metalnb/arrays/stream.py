"""Dispatches under way: each engine runs them in the order they were started in, and reading waits for them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from metalnb import engine as engines

from .memory_pool import Block, pool_of

if TYPE_CHECKING:
    from metalnb.engine.base import Engine, Grid, Ticket

__all__ = ["clear_cache", "start", "synchronize"]

_MOST = 64  # dispatches under way at once: what they hold cannot be freed before they end

_under_way: dict[str, deque[Ticket]] = {}
_lock = threading.Lock()  # a block's ticket is to be that of the dispatch which was started last


def start(
    engine: Engine,
    binary: Any,
    arguments: Sequence[Any],
    grid: Grid,
    threadgroup: Grid,
    blocks: Sequence[Block],
) -> Ticket:
    """Start a dispatch that touches `blocks`. It is waited for only when another library may look at one of them.

    Raises
    ------
    KernelFault
        When this dispatch, or one before it that is waited for now, failed.
    """
    seen = False
    with _lock:
        ticket = engine.launch(binary, arguments, grid, threadgroup)
        for block in blocks:
            block.ticket = ticket
            # Read after the ticket is set: who begins to look at the block counts itself first, then waits for it.
            seen = seen or block.viewers > 0
        oldest = None if seen else _queued(engine.name, ticket)
    if seen:
        ticket.wait()
    elif oldest is not None:
        oldest.wait()
    return ticket


def _queued(name: str, ticket: Ticket) -> Ticket | None:
    """Note a dispatch; give the one to wait for when too many are under way."""
    queue = _under_way.get(name)
    if queue is None:
        queue = _under_way[name] = deque()
    queue.append(ticket)
    return queue.popleft() if len(queue) > _MOST else None


def synchronize(engine: str | None = None) -> None:
    """Wait until all dispatches on arrays are done.

    Parameters
    ----------
    engine : str, optional
        By default the one in use.

    Raises
    ------
    KernelFault
        When one of them failed.
    """
    name = engines.named(engine).name
    with _lock:
        tickets = list(_under_way.pop(name, ()))
    for ticket in tickets:
        ticket.wait()


def clear_cache(engine: str | None = None) -> None:
    """Give the memory of arrays that are gone back to the system.

    Parameters
    ----------
    engine : str, optional
        By default the one in use.
    """
    synchronize(engine)
    pool_of(engines.named(engine)).clear()
