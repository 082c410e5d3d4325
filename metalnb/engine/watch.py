"""Look on at an engine's dispatches: those of cells and those of the library's arrays all pass `Engine.launch`.

While somebody looks on, the engine's own ``launch`` is covered by one that notes each dispatch and calls it. When
nobody does, nothing is there: a dispatch costs what it always did. What is noted is as little as can be, since the
dispatch waits for it; `seconds` is for later.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .base import Engine, Grid, Ticket

__all__ = ["Launch", "seconds", "watch"]

# When it was started (`time.perf_counter`), what was compiled, the grid and the threadgroup, the bytes of each argument
# (0 where it is no array; the arrays are not kept), and what `seconds` asks for the time.
Launch = tuple[float, Any, "Grid", "Grid", list[int], Any]

_lock = threading.Lock()


def watch(engine: Engine, see: Callable[[Launch], Any]) -> Callable[[], None]:
    """Call ``see`` for every dispatch from now on, in the thread that starts it and right after it was started.

    Parameters
    ----------
    engine : Engine
    see : callable
        Takes a `Launch`. Must be fast and must not raise.

    Returns
    -------
    callable
        Ends it; calling it again does nothing.
    """
    with _lock:
        cover = _cover(engine)
        if cover is None:
            cover = _Cover(engine)
            vars(engine)["launch"] = cover.launch
        cover.onlookers = (*cover.onlookers, see)

    def end() -> None:
        with _lock:
            cover.onlookers = tuple(s for s in cover.onlookers if s is not see)
            if not cover.onlookers and _cover(engine) is cover:
                del vars(engine)["launch"]

    return end


def seconds(launch: Launch) -> float | None:
    """Tell how long a dispatch took: None while it runs, NaN when it failed.

    It is the device's time, or without a device clock the time from its launch to the end of the wait for it.
    """
    found: float | None = launch[-1]()
    return found


def _cover(engine: Engine) -> _Cover | None:
    owner = getattr(vars(engine).get("launch"), "__self__", None)
    return owner if isinstance(owner, _Cover) else None


class _Cover:
    """What stands in the place of an engine's ``launch`` while there are onlookers."""

    def __init__(self, engine: Engine) -> None:
        self.onlookers: tuple[Callable[[Launch], Any], ...] = ()
        self._launch: Callable[..., Any] = engine.launch
        self._clocked = engine.caps.clock == "device"

    def launch(self, binary: Any, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> Ticket:
        started = time.perf_counter()
        ticket = self._launch(binary, arguments, grid, threadgroup)
        if not self._clocked:
            ticket = _Timed(ticket, started)
        sizes = [getattr(a, "nbytes", 0) for a in arguments]
        launch = started, binary, grid, threadgroup, sizes, ticket.elapsed
        for see in self.onlookers:
            see(launch)
        return ticket  # type: ignore[no-any-return]


class _Timed:
    """A ticket that notes when it was waited for."""

    __slots__ = ("_started", "_ticket", "elapsed")

    def __init__(self, ticket: Ticket, started: float) -> None:
        self._ticket: Ticket | None = ticket
        self._started = started
        self.elapsed = _Stop()

    def wait(self) -> float | None:
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            try:
                ticket.wait()
            finally:
                self.elapsed.seconds = time.perf_counter() - self._started
        return None


class _Stop:
    """The time of a ticket; it does not keep the ticket."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds: float | None = None

    def __call__(self) -> float | None:
        return self.seconds
