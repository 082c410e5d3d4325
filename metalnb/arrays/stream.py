"""Dispatches in flight: each engine runs them in the order of their start; reading waits for them."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from metalnb import engine as engines
from metalnb.engine.process_locks import new_lock
from metalnb.errors import KernelFault

from .memory_pool import pool_of

if TYPE_CHECKING:
    from metalnb.engine.base import Engine, Grid, Ticket

    from .memory_pool import Block

__all__ = ["clear_cache", "start", "synchronize"]

_MAX_IN_FLIGHT = 64  # most dispatches in flight: the memory that they use cannot be freed before they are done

_in_flight: defaultdict[str, deque[Ticket]] = defaultdict(deque)
_lock = new_lock()  # so that a block has the ticket of the last dispatch started


def start(
    engine: Engine,
    binary: Any,
    arguments: Sequence[Any],
    grid: Grid,
    threadgroup: Grid,
    blocks: Iterable[Block],
) -> Ticket:
    """Start a dispatch that uses some arrays' blocks; wait only if another library may be reading one of them.

    Parameters
    ----------
    engine, binary, arguments, grid, threadgroup
        As for `Engine.launch`.
    blocks : iterable of Block

    Raises
    ------
    KernelFault
        If this dispatch, or one before it that is waited for now, failed.
    """
    is_viewed = False
    with _lock:
        ticket = engine.launch(binary, arguments, grid, threadgroup)
        for block in blocks:
            block.ticket = ticket
            if block.viewers > 0:  # read after the ticket is set: a new viewer counts itself, then waits for it
                is_viewed = True
        if ticket.done:
            return ticket  # and with it everything that was started before
        oldest = None
        if not is_viewed:
            queue = _in_flight[engine.name]
            if queue and queue[-1].counted:
                queue[-1] = ticket  # waiting for it also waits for that one
            else:
                queue.append(ticket)
                oldest = queue.popleft() if len(queue) > _MAX_IN_FLIGHT else None
    if is_viewed:
        ticket.wait()
    elif oldest is not None and not getattr(oldest, "has_raised", False):
        oldest.wait()
    return ticket


def synchronize(engine: str | None = None) -> None:
    """Wait until all dispatches on arrays are done.

    Parameters
    ----------
    engine : str, optional
        By default the one in use.

    Raises
    ------
    KernelFault
        If one of them failed: the first fault, when all are done.
    """
    name = engines.named(engine).name
    with _lock:
        tickets = list(_in_flight.pop(name, ()))
    first_fault: KernelFault | None = None
    for ticket in tickets:
        if not getattr(ticket, "has_raised", False):
            try:
                ticket.wait()
            except KernelFault as fault:
                first_fault = first_fault or fault
    if first_fault is not None:
        raise first_fault


def clear_cache(engine: str | None = None) -> None:
    """Free the memory kept from deleted arrays.

    Parameters
    ----------
    engine : str, optional
        By default the one in use.
    """
    synchronize(engine)
    pool_of(engines.named(engine)).clear()
