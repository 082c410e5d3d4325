"""Tickets of dispatches that use earlier results: they pass on the faults of the dispatches that computed those."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from metalnb.engine.base import Ticket

__all__ = ["DependentTicket", "depth_of", "may_fail", "may_have_failed"]


class DependentTicket:
    """A dispatch on the results of earlier ones that may have failed: waiting for it raises their faults, too.

    Parameters
    ----------
    own : Ticket
    parents : tuple of Ticket
        The last dispatches on its arrays' memory. This ticket raises each of their faults once; later dispatches on the
        same arrays do not raise it again.

    Attributes
    ----------
    depth : int
        The length of the longest chain of parents.
    """

    done = counted = False

    def __init__(self, own: Ticket, parents: tuple[Ticket, ...]) -> None:
        self.own, self.parents = own, parents
        self.depth = 1 + max(depth_of(parent) for parent in parents)

    @property
    def elapsed(self) -> Callable[[], float | None]:
        """The callable that returns the dispatch's time."""
        return self.own.elapsed

    @property
    def allocated_outputs(self) -> tuple[str, ...]:
        """The outputs that the wrapped ticket allocated; only a checked dispatch's ticket has this attribute."""
        names: tuple[str, ...] = self.own.allocated_outputs  # type: ignore[attr-defined]
        return names

    @allocated_outputs.setter
    def allocated_outputs(self, names: tuple[str, ...]) -> None:
        self.own.allocated_outputs = names  # type: ignore[attr-defined]

    def wait(self) -> None:
        """Wait for the dispatch.

        Raises
        ------
        KernelFault
            The first fault of an earlier dispatch that has not been raised yet, or this dispatch's own fault.
        """
        for ticket in may_have_failed(self.parents):
            ticket.wait()
        self.parents = ()
        self.own.wait()


def depth_of(ticket: Ticket) -> int:
    """Return the length of the longest chain of dispatches that a ticket depends on."""
    return ticket.depth if type(ticket) is DependentTicket else 0


def may_have_failed(tickets: Iterable[Ticket], seen: set[int] | None = None) -> list[Ticket]:
    """Return the engine's own tickets among these tickets and the ones they depend on, the earliest first."""
    seen = set() if seen is None else seen
    found: list[Ticket] = []
    for ticket in tickets:
        if id(ticket) in seen:
            continue
        seen.add(id(ticket))
        if type(ticket) is DependentTicket:
            found += may_have_failed((*ticket.parents, ticket.own), seen)
        elif may_fail(ticket):
            found.append(ticket)
    return found


def may_fail(ticket: Ticket) -> bool:
    """Return whether a dispatch may have a fault that has not been raised yet."""
    is_known = ticket.done or ticket.counted or getattr(ticket, "has_passed", False)
    return not is_known and not getattr(ticket, "has_raised", False)
