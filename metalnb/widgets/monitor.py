"""`monitor`: every dispatch as it happens, of cells and of the library's arrays."""

from __future__ import annotations

import datetime as dt
import functools
import math
import threading
import time
from collections import deque
from typing import Any, Self

from metalnb import engine as engines
from metalnb.engine.base import Grid, Observation
from metalnb.engine.observation import observe
from metalnb.errors import ArgumentError
from metalnb.msl.lower import Unit
from metalnb.timing import traffic
from metalnb.timing.limits import Limits, limits

from .monitor_page import monitor_html, monitor_text
from .quick import trimmed
from .seen import Kind, Row, Seen
from .show import Live
from .worker import spawn

__all__ = ["Monitor", "monitor"]

_EVERY = 0.25  # seconds between two looks at what was noted
_BUDGET = 0.008  # seconds of a look while cells run: the interpreter is theirs
_CHUNK = 64  # dispatches between two looks at the clock
_WAITING = 10_000  # dispatches under way that are waited for; what nobody waits for has no time


def monitor(*, engine: str | None = None, keep: int = 100_000) -> Monitor:
    """Look on at every dispatch: its kernel, grid, time, bandwidth and share of the limit.

    It begins at once, and shows what it sees while cells run. Dispatches of kernels in cells, of the library's
    operations on arrays, and of the other widgets are seen; what `measure` times by the device's clock is not. A
    library operation counts the whole blocks of memory that its arrays lie in.

    A dispatch costs less than two microseconds more while it is on, and nothing when it is off.

    Parameters
    ----------
    engine : str, optional
        One of `engines`; by default the one in use.
    keep : int, optional
        How many dispatches are kept for `export`; the oldest go first.

    Returns
    -------
    Monitor
        Also a context manager: ``with mnb.monitor() as seen: …`` stops at the end of the block.

    Raises
    ------
    ArgumentError
        When ``keep`` is not a whole number of at least 1.
    EngineUnavailable

    Examples
    --------
    >>> m = mnb.monitor(); m                 # doctest: +SKIP
    >>> pandas.DataFrame(m.export())         # doctest: +SKIP
    """
    if type(keep) is not int or keep < 1:
        raise ArgumentError(f"monitor: keep is a number of dispatches, at least 1; got {keep!r}.")
    return Monitor(engines.named(engine), limits(engine=engine), keep).start()


class Monitor(Live):
    """What was seen of an engine's dispatches.

    Attributes
    ----------
    rows : dict of str to Row
        For each kernel, in the order in which they first ran.
    total : int
        Dispatches seen.
    failed : int
        Those of them that failed.
    lost : bool
        Whether there were more than ``keep`` before they could be counted.
    """

    def __init__(self, engine: engines.Engine, found: Limits, keep: int) -> None:
        super().__init__()
        self._engine = engine
        self._limits = found
        self._noted: deque[Observation] = deque(maxlen=max(keep, _WAITING))
        self._running: deque[Observation] = deque(maxlen=_WAITING)
        self._kinds: dict[tuple[Any, ...], Kind] = {}
        self._held: list[Any] = []
        self._lock = threading.Lock()
        self._seen: deque[Seen] = deque(maxlen=keep)
        self._end: Any = None
        self._stopped = threading.Event()
        self._epoch = time.time() - time.perf_counter()
        self.clear()

    # --- on and off ------------------------------------------------------------------------------------------------

    @property
    def on(self) -> bool:
        """Whether it is looking on."""
        return self._end is not None

    def start(self) -> Self:
        """Begin to look on; go on after `stop`."""
        with self._lock:
            if self._end is None:
                self._stopped = threading.Event()
                self._end = observe(self._engine, self._noted.append)
                spawn(functools.partial(self._follow, self._stopped), self._stopped.set)
        self._draw()
        return self

    def stop(self) -> Self:
        """Look on no longer; what was seen stays."""
        with self._lock:
            end, self._end = self._end, None
        if end is not None:
            end()
            self._stopped.set()
            self._look()
            self._draw()
            self._retake()
        return self

    def _replaced(self) -> None:
        self.stop()

    def clear(self) -> Self:
        """Forget what was seen."""
        with self._lock:
            self._noted.clear()
            self._running.clear()
            self._seen.clear()
            self.rows: dict[str, Row] = {}
            self.total = self.failed = 0
            self.lost = False
        self._draw()
        return self

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __len__(self) -> int:
        self._look()
        return len(self._seen)

    # --- what was seen ---------------------------------------------------------------------------------------------

    @property
    def seen(self) -> list[Seen]:
        """Every dispatch that is over, the oldest first."""
        self._look()
        with self._lock:
            return list(self._seen)

    def export(self) -> list[dict[str, Any]]:
        """Give a dictionary for each dispatch, the oldest first: what `pandas.DataFrame` takes.

        Returns
        -------
        list of dict
            started (ISO 8601, local time), kernel, engine, grid, threadgroup, seconds, bytes, bandwidth (B/s), limit
            (B/s), share (of the limit).
        """
        name = self._engine.name
        return [
            {
                "started": dt.datetime.fromtimestamp(s.started).astimezone().isoformat(timespec="microseconds"),
                "kernel": s.kind.kernel, "engine": name, "grid": s.kind.grid, "threadgroup": s.kind.threadgroup,
                "seconds": s.seconds, "bytes": s.kind.bytes, "bandwidth": s.bandwidth, "limit": s.kind.limit,
                "share": s.share,
            }
            for s in self.seen
        ]  # fmt: skip

    def _look(self, budget: float = math.inf) -> bool:
        """Take in what was noted and is over, for at most ``budget`` seconds; tell whether there was any."""
        with self._lock:
            before = self.total
            end = time.perf_counter() + budget
            self.lost = self.lost or len(self._noted) == self._noted.maxlen
            for _ in range(len(self._running)):
                self._take(self._running.popleft())
            while self._noted and time.perf_counter() < end:
                for _ in range(min(_CHUNK, len(self._noted))):
                    self._take(self._noted.popleft())
            return self.total != before

    def _take(self, launch: Observation) -> None:
        started, binary, grid, threadgroup, sizes, elapsed = launch
        seconds = elapsed()
        if seconds is None:
            self._running.append(launch)
            return
        self.total += 1
        if math.isnan(seconds):
            self.failed += 1
            return
        key = (id(binary), grid, threadgroup, *sizes)
        kind = self._kinds.get(key) or self._kinds.setdefault(key, self._kind(binary, grid, threadgroup, sizes))
        seen = Seen(self._epoch + started, kind, seconds)
        row = self.rows.get(kind.kernel) or self.rows.setdefault(kind.kernel, Row())
        row.count += 1
        row.seconds += seconds
        row.tail.append(seen)
        self._seen.append(seen)

    def _kind(self, binary: Any, grid: Grid, threadgroup: Grid, sizes: list[int]) -> Kind:
        unit = binary.unit
        signature = unit.signature
        counted = traffic.of_sizes(zip(signature.params, sizes, strict=True))
        limit = self._limits.ceiling(counted)[1] if counted.bytes else None
        self._held.append(binary)  # its id is in use as long as it is a key
        return Kind(_name(unit), trimmed(grid), trimmed(threadgroup), counted.bytes, limit)

    def _follow(self, stopped: threading.Event) -> None:
        left = 0
        while not stopped.wait(_EVERY):
            busy = len(self._noted) != left
            if self._look(_BUDGET if busy else math.inf):
                self._draw()
            left = len(self._noted)

    # --- showing ---------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """Give what was seen in characters."""
        self._look()
        return monitor_text(self)

    def html(self) -> str:
        """Give what was seen as HTML."""
        self._look()
        return monitor_html(self)

    def _make(self) -> Any:
        from .monitor_controls import MonitorControls

        self._controls = MonitorControls(self)
        return self._controls.box

    def _draw(self) -> None:
        if self._made is not None:
            self._controls.draw()


def _name(unit: Unit) -> str:
    """Name a kernel: one of the library's, by its operation too."""
    kernel, cell = unit.signature.name, unit.cell.name
    return f"{cell} {kernel}" if cell.isidentifier() and cell not in {"cell", kernel} else kernel
