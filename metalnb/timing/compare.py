"""`compare`: which of two kernels is faster, and how sure that is."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from metalnb.errors import ArgumentError
from metalnb.kernel import Dispatch, Kernel
from metalnb.rendering import Rendered

from .measure import job_of, name_of
from .other_processes import OtherProcesses
from .sampling import Job, count_for, lasting, restored

__all__ = ["Comparison", "compare", "median_interval"]

_CONFIDENCE = 0.95
# Closer than this is called equal, however narrow the interval. Where code and data happen to lie in memory alone makes
# a program some percent faster or slower (Mytkowicz, Diwan, Hauswirth and Sweeney, "Producing wrong data without doing
# anything obviously wrong!", 2009), and that is no property of the kernel.
_MARGIN = 0.03
_LEAST, _MOST = 15, 41  # rounds
_TOTAL = 0.6  # seconds that all of them last, where the kernels let that be
_LASTS = 0.1  # seconds that a batch of the slower one may last, to have as many runs as the other's


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Rendered):
    """Two kernels, timed in turn.

    Attributes
    ----------
    names : tuple of 2 str
    engine, device, clock : str
    first, second : tuple of float
        Seconds of one dispatch, a value for each round: those of a round were taken right after each other.
    confidence : float
        Of the interval: the probability that such an interval holds the true ratio.
    margin : float
        How far from 1 the whole interval must be before one is called faster.
    others : float
        The part of all processors' time that other programs took meanwhile; 0 when it is not known.
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

    @property
    def ratios(self) -> tuple[float, ...]:
        """The second's time over the first's, in each round."""
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
        """The faster one's name; None while the interval reaches into the margin about 1."""
        place = self.place
        return None if place is None else self.names[place]

    @property
    def place(self) -> int | None:
        """0 when the first is the faster one, 1 for the second, None when neither can be called so."""
        low, high = self.interval
        if low > 1 + self.margin:
            return 0
        return 1 if high < 1 / (1 + self.margin) else None

    def to_json(self) -> dict[str, Any]:
        """Give the fields as plain values that `json.dumps` takes."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` gave.

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
    """Time two kernels in turn, and tell which is faster, or that it cannot be told.

    They take turns, batch by batch, the one that begins changing each round, so that a drift of the machine's speed
    meets both alike. Of each round only the ratio of the two times counts. A winner is named when the 95 % confidence
    interval of the ratios' median is beyond 3 % from 1. Arrays that a kernel writes are put back as they were before
    each batch and at the end.

    Parameters
    ----------
    a, b : Kernel, Dispatch or callable
        What ``prepare`` gave is taken with the arguments that it has: ``compare(f.prepare(x), g.prepare(x, y))``.
    *args, **launch
        As for a call; both are given the same.
    names : tuple of 2 str, optional
        What to call them in the record; by default the kernels' own names.

    Returns
    -------
    Comparison

    Raises
    ------
    ArgumentError, LaunchError
        As for the calls; when the two are timed by different clocks.
    KernelFault
        When one failed.
    """
    jobs = [job_of("compare", kernel, args, launch) for kernel in (a, b)]
    if jobs[0].clock != jobs[1].clock:
        message = (
            f"compare: {name_of(a)} has the {jobs[0].clock} clock and {name_of(b)} the {jobs[1].clock} clock: their "
            "times say nothing of each other. Compare two kernels, or two functions."
        )
        raise ArgumentError(message)
    watch = OtherProcesses()
    with restored(jobs[0]), restored(jobs[1]):
        times = _rounds(jobs)
    caps = jobs[0].engine.caps
    told = names or _told_apart(name_of(a), name_of(b))
    first, second = map(tuple, times)
    return Comparison(told, jobs[0].engine.name, caps.device, jobs[0].clock, first, second, others=watch.share())


def _told_apart(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a != b else (f"{a} (first)", f"{b} (second)")


def _rounds(jobs: Sequence[Job]) -> list[list[float]]:
    """Run both in every round, in the order A B, then B A.

    Whatever either has written is put back before each runs: one may read what the other writes.
    """
    counts = _counts(jobs)
    times: list[list[float]] = [[], []]
    begin = time.perf_counter()
    while len(times[0]) < _MOST and (len(times[0]) < _LEAST or time.perf_counter() - begin < _TOTAL):
        order = (0, 1) if len(times[0]) % 2 == 0 else (1, 0)
        for i in order:
            times[i].append(jobs[i].run(counts[i]))
            _restore(jobs)
    return times


def _counts(jobs: Sequence[Job]) -> list[int]:
    """Give the runs in a batch of each: as many of the one as of the other, unless it is much slower.

    What runs more often in a row finds more in the caches: of two equal kernels it would seem the faster one.
    """
    counts = []
    for job in jobs:
        counts.append(count_for(job)[0])
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
    """Give a confidence interval of the median, from order statistics.

    Nothing is assumed of the distribution but that the values are independent: how many of them lie below the true
    median is binomial with p = 1/2, so that the interval between the k-th smallest and the k-th largest holds it with
    the probability 1 - 2 P(Bin(n, 1/2) < k). The largest k that keeps ``confidence`` is taken.

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
