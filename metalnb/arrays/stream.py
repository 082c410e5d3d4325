"""Dispatches in flight: each engine runs them in the order in which they were started; reading an array waits."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from metalnb import engine as engines
from metalnb.engine.process_locks import new_lock
from metalnb.errors import KernelFault

from .dependent_tickets import DependentTicket, depth_of, may_fail, may_have_failed
from .memory_pool import pool_of

if TYPE_CHECKING:
    from metalnb.engine.base import Engine, Grid, Ticket

    from .memory_pool import Block

__all__ = ["clear_cache", "start", "synchronize"]

_MAX_IN_FLIGHT = 64  # a limit, since the memory that dispatches use cannot be freed before they are done

_in_flight: defaultdict[str, deque[Ticket]] = defaultdict(deque)
_lock = new_lock()  # ensures that each block has the ticket of the last dispatch that was started on it


def start(
    engine: Engine,
    binary: Any,
    arguments: Sequence[Any],
    grid: Grid,
    threadgroup: Grid,
    blocks: Sequence[Block],
) -> Ticket:
    """Start a dispatch on some arrays' blocks; wait for it only if another library may read one of the blocks.

    Parameters
    ----------
    engine, binary, arguments, grid, threadgroup
        As for `Engine.launch`.
    blocks : sequence of Block

    Raises
    ------
    KernelFault
        If this dispatch failed, or an earlier one that this call waits for.
    """
    is_viewed = has_parents = False
    with _lock:
        result = ticket = engine.launch(binary, arguments, grid, threadgroup)
        for block in blocks:
            last = block.ticket
            if last is not None and not last.done and not last.counted:
                has_parents = True  # usually no block has one, and no call is needed
        if has_parents and (parents := _parents(engine.name, blocks)):
            result = DependentTicket(ticket, parents)
        for block in blocks:
            block.ticket = result
            if block.viewers > 0:  # read after the ticket is set: a new viewer counts itself, then waits for it
                is_viewed = True
        if ticket.done and not (is_viewed and result is not ticket):
            return result  # every dispatch that was started earlier is done, too
        oldest = None
        if not is_viewed:
            queue = _in_flight[engine.name]
            if queue and queue[-1].counted:
                queue[-1] = ticket  # waiting for the new ticket also waits for the one it replaces
            else:
                queue.append(ticket)
                oldest = queue.popleft() if len(queue) > _MAX_IN_FLIGHT else None
    if is_viewed:
        result.wait()
    elif oldest is not None and not getattr(oldest, "has_raised", False):
        oldest.wait()
    return result


def _parents(engine: str, blocks: Sequence[Block]) -> tuple[Ticket, ...]:
    """Return the last dispatches on some blocks, as far as they may have, or depend on, a fault not yet raised."""
    parents: list[Ticket] = []
    for block in blocks:
        last = block.ticket
        if type(last) is DependentTicket and not last.parents:  # it was waited for
            last = last.own
        if last is None or last.done or last.counted:  # it cannot fail, or its fault stops the engine
            continue
        if (type(last) is DependentTicket or may_fail(last)) and not any(last is parent for parent in parents):
            parents.append(last)
    if parents and max(map(depth_of, parents)) >= _MAX_IN_FLIGHT:  # dispatches no longer in flight have been waited for
        in_flight = set(map(id, _in_flight[engine]))
        return tuple(ticket for ticket in may_have_failed(parents) if id(ticket) in in_flight)
    return tuple(parents)


def synchronize(engine: str | None = None) -> None:
    """Wait until all dispatches on arrays are done.

    Parameters
    ----------
    engine : str, optional
        By default the engine in use.

    Raises
    ------
    KernelFault
        If a dispatch failed; the first fault is raised after all dispatches are done.
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
