"""Record an engine's dispatches as they happen."""

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
from metalnb.engine.unit import Unit
from metalnb.profiling.latest_counts import known_flops
from metalnb.timing import traffic
from metalnb.timing.limits import Limits
from metalnb.timing.machine import last_cache
from metalnb.timing.sampling import OWN
from metalnb.timing.units import trim_grid

from ..background_work import spawn
from .dispatch_log import DispatchKind, DispatchRecord, KernelStats

__all__ = ["DispatchRecorder"]

_EVERY = 0.25  # seconds between updates
_BUDGET = 0.008  # most seconds per update while cells run, because cells need the interpreter
_CHUNK = 64  # dispatches between checks of the clock
_WAITING = 10_000  # most running dispatches that are tracked; one that is never waited for has no time


class DispatchRecorder:
    """Records an engine's dispatches.

    Attributes
    ----------
    rows : dict of DispatchKind to KernelStats
        The figures of each kind of dispatch, by kernel and sizes, in the order in which they first ran.
    wanted : str
        A part of kernels' names: only rows whose kernel's name contains it are shown.
    pinned : list of DispatchKind
        Rows that are shown first, however little time they took.
    total : int
        Dispatches recorded.
    failed : int
        How many of the dispatches failed.
    lost : bool
        Whether dispatches were lost because more than ``keep`` of them arrived before they could be counted.
    """

    def __init__(self, engine: engines.Engine, machine_limits: Limits, keep: int) -> None:
        self._engine = engine
        self._limits = machine_limits
        self._cache = last_cache(engine)
        self._queue: deque[Observation] = deque(maxlen=max(keep, _WAITING))
        self._running: deque[Observation] = deque(maxlen=_WAITING)
        self._kinds: dict[tuple[Any, ...], DispatchKind] = {}
        self._binaries: list[Any] = []
        self._launches: dict[DispatchKind, tuple[Unit, Grid, Grid]] = {}
        self._lock = threading.Lock()
        self._seen: deque[DispatchRecord] = deque(maxlen=keep)
        self._end: Any = None
        self._stopped = threading.Event()
        self._epoch = time.time() - time.perf_counter()
        self.wanted = ""
        self.pinned: list[DispatchKind] = []
        self.clear()

    # --- on and off ------------------------------------------------------------------------------------------------

    @property
    def on(self) -> bool:
        """Whether it is recording."""
        return self._end is not None

    def start(self) -> Self:
        """Start recording, or continue after `stop`."""
        with self._lock:
            if self._end is None:
                self._stopped = threading.Event()
                self._end = observe(self._engine, self._queue.append)
                spawn(functools.partial(self._follow, self._stopped), self._stopped.set)
        self._on_change()
        return self

    def stop(self) -> Self:
        """Stop recording; the record is kept."""
        with self._lock:
            end, self._end = self._end, None
        if end is not None:
            end()
            self._stopped.set()
            self.look()
            self._on_change()
            self._on_end()
        return self

    def _on_change(self) -> None:
        """Called when there is something new to show."""

    def _on_end(self) -> None:
        """Called when recording was stopped."""

    def clear(self) -> Self:
        """Delete the record."""
        with self._lock:
            self._queue.clear()
            self._running.clear()
            self._seen.clear()
            self.rows: dict[DispatchKind, KernelStats] = {}
            self.total = self.failed = 0
            self.lost = False
        self._on_change()
        return self

    def pin(self, kind: DispatchKind) -> None:
        """Pin a row, so that it is shown first, or unpin it."""
        if kind in self.pinned:
            self.pinned.remove(kind)
        else:
            self.pinned.append(kind)
        self._on_change()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __len__(self) -> int:
        self.look()
        return len(self._seen)

    # --- what was recorded -----------------------------------------------------------------------------------------

    @property
    def seen(self) -> list[DispatchRecord]:
        """Every finished dispatch, the oldest first."""
        self.look()
        with self._lock:
            return list(self._seen)

    def export(self) -> list[dict[str, Any]]:
        """Return a dictionary for each dispatch, the oldest first, as `pandas.DataFrame` accepts them.

        Returns
        -------
        list of dict
            started (ISO 8601, local time), kernel, engine, grid, threadgroup, seconds, bytes, bandwidth (B/s), limit
            (B/s), share (of the limit), flops (of the latest `metalnb.profile` for the grid; None without one).
        """
        name = self._engine.name
        return [
            {
                "started": dt.datetime.fromtimestamp(s.started).astimezone().isoformat(timespec="microseconds"),
                "kernel": s.kind.kernel, "engine": name, "grid": s.kind.grid, "threadgroup": s.kind.threadgroup,
                "seconds": s.seconds, "bytes": s.kind.bytes, "bandwidth": s.bandwidth, "limit": s.kind.limit,
                "share": s.share, "flops": self.flops(s.kind),
            }
            for s in self.seen
        ]  # fmt: skip

    def flops(self, kind: DispatchKind) -> int | None:
        """Return the floating-point operations of one dispatch of a kind, from the latest profile for its grid."""
        launch = self._launches.get(kind)
        return known_flops(*launch) if launch else None

    def look(self, budget: float = math.inf) -> bool:
        """Count the dispatches that have finished, for at most ``budget`` seconds; return whether there were any."""
        with self._lock:
            total = self.total
            end = time.perf_counter() + budget
            self.lost = self.lost or len(self._queue) == self._queue.maxlen
            for _ in range(len(self._running)):
                self._take(self._running.popleft())
            while self._queue and time.perf_counter() < end:
                for _ in range(min(_CHUNK, len(self._queue))):
                    self._take(self._queue.popleft())
            return self.total != total

    def _take(self, launch: Observation) -> None:
        start, binary, grid, threadgroup, sizes, elapsed = launch
        seconds = elapsed()
        if seconds is None:
            self._running.append(launch)
            return
        if binary.unit.cell.name == OWN:
            return
        self.total += 1
        if math.isnan(seconds):
            self.failed += 1
            return
        key = (id(binary), grid, threadgroup, *sizes)
        kind = self._kinds.get(key) or self._kinds.setdefault(key, self._kind(binary, grid, threadgroup, sizes))
        record = DispatchRecord(self._epoch + start, kind, seconds)
        row = self.rows.get(kind) or KernelStats()
        row.count += 1
        row.seconds += seconds
        row.tail.append(record)
        self.rows[kind] = row  # another thread may show it from now on
        self._seen.append(record)

    def _kind(self, binary: Any, grid: Grid, threadgroup: Grid, sizes: list[int]) -> DispatchKind:
        unit = binary.unit
        signature = unit.signature
        bytes_moved = traffic.sizes_traffic(zip(signature.params, sizes, strict=True))
        limit = self._limits.ceiling(bytes_moved)[1] if bytes_moved.bytes else None
        self._binaries.append(binary)  # keeps it alive, because its id is part of a key
        kind = DispatchKind(_name(unit), trim_grid(grid), trim_grid(threadgroup), bytes_moved.bytes, limit, self._cache)
        self._launches[kind] = unit, grid, threadgroup
        return kind

    def _follow(self, stop: threading.Event) -> None:
        pending = 0
        while not stop.wait(_EVERY):
            busy = len(self._queue) != pending
            if self.look(_BUDGET if busy else math.inf):
                self._on_change()
            pending = len(self._queue)


def _name(unit: Unit) -> str:
    """Return the name of a kernel; one of the library's is preceded by its operation."""
    kernel, cell = unit.signature.name, unit.cell.name
    return f"{cell} {kernel}" if cell.isidentifier() and cell not in {"cell", kernel} else kernel
