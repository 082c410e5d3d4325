"""A monitor's records of dispatches."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from metalnb.timing.bottleneck import FASTER, cache_source

__all__ = ["DispatchKind", "DispatchRecord", "KernelStats"]

_TAIL = 120  # dispatches in a kernel's small plot


@dataclass(frozen=True, slots=True)
class DispatchKind:
    """The common properties of all dispatches of one kernel on arrays of the same sizes.

    Attributes
    ----------
    kernel : str
    grid, threadgroup : tuple of int
        Threads, x first.
    bytes : int
        The bytes that each dispatch must move: every input read once, every output written once.
    limit : float or None
        B/s that the engine reaches with the same mix of reads and writes.
    cache : int or None
        Bytes of the device's last-level cache.
    """

    kernel: str
    grid: tuple[int, ...]
    threadgroup: tuple[int, ...]
    bytes: int
    limit: float | None
    cache: int | None = None


class DispatchRecord(NamedTuple):
    """A dispatch: its start (seconds since 1970), its kernel, and its duration in seconds."""

    started: float
    kind: DispatchKind
    seconds: float

    @property
    def bandwidth(self) -> float | None:
        """B/s."""
        return self.kind.bytes / self.seconds if self.kind.bytes and self.seconds > 0 else None

    @property
    def share(self) -> float | None:
        """The bandwidth as a fraction of the limit."""
        bandwidth = self.bandwidth
        return None if bandwidth is None or not self.kind.limit else bandwidth / self.kind.limit

    @property
    def excess_reason(self) -> str:
        """Why the bandwidth can be above the limit, in words; empty if it is not above."""
        share = self.share
        if share is None or share <= 1:
            return ""
        reason = cache_source(share, self.kind.bytes, self.kind.cache)
        if reason:
            return f"{reason} the caches"
        return "parts are not touched" if share > FASTER else ""


@dataclass(slots=True)
class KernelStats:
    """The totals of the dispatches of one kind, and the latest of them."""

    count: int = 0
    seconds: float = 0.0
    tail: deque[DispatchRecord] = field(default_factory=lambda: deque(maxlen=_TAIL))

    @property
    def typical(self) -> DispatchRecord:
        """The latest dispatch, with its time replaced by the median of all dispatches."""
        return self.tail[-1]._replace(seconds=median(record.seconds for record in list(self.tail)))
