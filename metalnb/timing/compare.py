"""`compare`: which of two kernels is faster, and how sure that is."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from metalnb.call.kernel import Dispatch, Kernel
from metalnb.rendering import Rendered

from .measure import job_of, name_of
from .other_processes import OtherProcesses
from .progress import progress
from .sampling import PATIENCE, Job, count_for, lasting, restored

__all__ = ["Comparison", "compare", "median_interval"]

_CONFIDENCE = 0.95
# Closer than this counts as equal, however narrow the interval. The placement of code and data in memory alone makes a
# program a few percent faster or slower (Mytkowicz, Diwan, Hauswirth and Sweeney, "Producing wrong data without doing
# anything obviously wrong!", 2009), and that is not a property of the kernel.
_MARGIN = 0.03
_LEAST, _MOST = 15, 41  # rounds
_TOTAL = 0.6  # seconds for all of them, where the kernels are short enough
_LASTS = 0.1  # seconds that a batch of the slower kernel may take to have as many runs as the other's


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Rendered):
    """Two kernels, timed alternately.

    Attributes
    ----------
    names : tuple of 2 str
    engine, device, clock : str
    first, second : tuple of float
        Seconds of one dispatch, one value per round. The two of a round were taken right after each other.
    confidence : float
        Of the interval: the probability that such an interval contains the true ratio.
    margin : float
        How far from 1 the whole interval must lie before one kernel is called faster.
    others : float
        The part of all processors' time that other programs used meanwhile; 0 when unknown.
    unclocked : str
        What has no clock of the device's, though the other one has: then both were timed by the wall clock.
    """

    names: tuple[str, str]
    engine: str
    device: str
    clock: str
    first: tuple[float, ...]
    second: tuple[float, ...]
    confidence: float = _CONFIDENCE
    margin: float = _MARGIN
    others: float = 0.0
    unclocked: str = ""

    @property
    def ratios(self) -> tuple[float, ...]:
        """The second's time divided by the first's, for each round."""
        return tuple(b / a for a, b in zip(self.first, self.second, strict=True))

    @property
    def ratio(self) -> float:
        """The median of `ratios`: how many times as fast the first is as the second."""
        return float(np.median(self.ratios))

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval of `ratio` (see `median_interval`)."""
        return median_interval(self.ratios, self.confidence)

    @property
    def winner(self) -> str | None:
        """The faster one's name; None while the interval overlaps the margin around 1."""
        place = self.place
        return None if place is None else self.names[place]

    @property
    def place(self) -> int | None:
        """0 when the first is the faster one, 1 for the second, None when neither is."""
        low, high = self.interval
        if low > 1 + self.margin:
            return 0
        return 1 if high < 1 / (1 + self.margin) else None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values that `json.dumps` accepts."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a record from what `to_json` returned.

        Raises
        ------
        KeyError, TypeError
            When it is something else.
        """
        return cls(**{**data, **{name: tuple(data[name]) for name in ("names", "first", "second")}})


def compare(
    a: Kernel | Dispatch | Callable[..., Any], b: Kernel | Dispatch | Callable[..., Any], /,
    *args: Any, names: tuple[str, str] | None = None, **launch: Any,
) -> Comparison:  # fmt: skip
    """Time two kernels alternately and say which is faster, or that no difference can be seen.

    The kernels alternate batch by batch, and which one goes first changes each round, so that a drift of the machine's
    speed affects both alike. Only the ratio of a round's two times counts. A winner is named when the 95 % confidence
    interval of the median ratio lies more than 3 % away from 1. Arrays that a kernel writes are restored before each
    batch and at the end. Of a kernel and a function both are timed by the wall clock, for a function has no other.

    Parameters
    ----------
    a, b : Kernel, Dispatch or callable
        A dispatch from ``prepare`` keeps its own arguments: ``compare(f.prepare(x), g.prepare(x, y))``.
    *args, **launch
        As for a call; both kernels get the same ones.
    names : tuple of 2 str, optional
        Their names in the record; by default the kernels' own.

    Returns
    -------
    Comparison

    Raises
    ------
    ArgumentError, LaunchError
        As for the calls.
    KernelFault
        When one failed.
    """
    shown = names or (name_of(a), name_of(b))
    jobs = [job_of("compare", kernel, args, launch) for kernel in (a, b)]
    unclocked = ""
    if jobs[0].clock != jobs[1].clock:
        unclocked = shown[jobs[1].clock == "wall"]
        jobs = [job_of("compare", kernel, args, launch, wall=True) for kernel in (a, b)]
    engines = [job.engine for job in jobs]
    if engines[0] is not engines[1]:
        shown = (f"{shown[0]} on {engines[0].name}", f"{shown[1]} on {engines[1].name}")
    shown = _distinct(*shown)
    load = OtherProcesses()
    with restored(jobs[0]), restored(jobs[1]):
        times = _rounds(jobs)
    first, second = map(tuple, times)
    both = " and ".join(dict.fromkeys(engine.name for engine in engines))
    device = " and ".join(dict.fromkeys(engine.caps.device for engine in engines))
    return Comparison(shown, both, device, jobs[0].clock, first, second, others=load.share(), unclocked=unclocked)


def _distinct(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a != b else (f"{a} (first)", f"{b} (second)")


def _rounds(jobs: Sequence[Job]) -> list[list[float]]:
    """Run both in every round, in the order A B, then B A.

    Everything that either wrote is restored before each run: one may read what the other writes.
    """
    times: list[list[float]] = [[], []]
    with progress("comparing", PATIENCE) as told:
        counts = _counts(jobs, told)
        start, end = time.perf_counter(), max(_TOTAL, 1e-9)
        while len(times[0]) < _MOST and (len(times[0]) < _LEAST or time.perf_counter() - start < _TOTAL):
            told(min(1, max(len(times[0]) / _MOST, min(len(times[0]) / _LEAST, (time.perf_counter() - start) / end))))
            order = (0, 1) if len(times[0]) % 2 == 0 else (1, 0)
            for i in order:
                times[i].append(jobs[i].run(counts[i]))
                _restore(jobs)
    return times


def _counts(jobs: Sequence[Job], told: Callable[[float], None] = lambda _: None) -> list[int]:
    """Return the runs in a batch of each: as many for one as for the other, unless it is much slower.

    A kernel that runs more often in a row finds more in the caches: it would seem the faster of two equal ones.
    """
    counts = []
    for job in jobs:
        counts.append(count_for(job, told)[0])
        _restore(jobs)
    most = max(counts)
    for i, job in enumerate(jobs):
        while counts[i] < most:
            more = min(most, 4 * counts[i])
            lasted = lasting(job, more)
            _restore(jobs)
            if lasted > _LASTS:
                break
            counts[i] = more
    return counts


def _restore(jobs: Sequence[Job]) -> None:
    for job in jobs:
        job.restore()


def median_interval(values: Sequence[float], confidence: float = _CONFIDENCE) -> tuple[float, float]:
    """Return a confidence interval of the median, from order statistics.

    It assumes only that the values are independent. Then the number of them below the true median is binomial with
    p = 1/2, and the interval between the k-th smallest and the k-th largest contains the median with probability
    1 - 2 P(Bin(n, 1/2) < k). The largest k that keeps ``confidence`` is used.

    Source: H. A. David and H. N. Nagaraja, Order Statistics, 3rd edition (2003), section 7.1.

    Parameters
    ----------
    values : sequence of float
    confidence : float

    Returns
    -------
    (low, high)
        Minus and plus infinity when there are too few values for any interval.
    """
    ordered = sorted(values)
    n = len(ordered)
    below, k = 0.0, 0
    while k < n // 2:
        below += math.comb(n, k) / 2**n
        if 1 - 2 * below < confidence:
            break
        k += 1
    return (ordered[k - 1], ordered[n - k]) if k else (-math.inf, math.inf)
