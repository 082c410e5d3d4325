"""`compare`: which of several kernels and functions is the fastest, and how certain that is."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from metalnb.call.kernel import Dispatch
from metalnb.errors import ArgumentError
from metalnb.plurals import quantity
from metalnb.rendering import Rendered

from .measure import job_of, name_of
from .other_processes import OtherProcesses
from .progress import progress
from .sampling import PATIENCE, DispatchJob, Job, count_for, restoring, time_batch

__all__ = ["Comparison", "Lead", "compare", "median_interval"]

_CONFIDENCE = 0.95
# Closer than this counts as equal, however narrow the interval. The placement of code and data in memory alone makes a
# program a few percent faster or slower (Mytkowicz, Diwan, Hauswirth and Sweeney, "Producing wrong data without doing
# anything obviously wrong!", 2009), and that is not a property of the kernel.
_MARGIN = 0.03
_MIN_ROUNDS, _MAX_ROUNDS = 15, 41
_TOTAL = 0.3  # time budget per callable (s)
_LASTS = 0.1  # the longest batch (s) worth running to match the others' counts


class Lead(NamedTuple):
    """How many times faster one is than another: the median of the rounds' ratios, and its confidence interval."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Rendered):
    """Kernels and functions, timed alternately.

    Attributes
    ----------
    names : tuple of str
    engine, device, clock : str
    seconds : tuple of tuple of float
        For each name, the time of one dispatch or call, one value per round. The times of one round were taken in
        direct succession.
    device_seconds : tuple of float or None
        If `clock` is the wall clock: for each name the median time by its device's clock; None if it has no such clock.
        This time excludes the cost of launching.
    confidence : float
        The probability that all intervals contain the true ratios.
    margin : float
        How far above 1 the entire interval must lie for one to be called faster than another.
    others : float
        The fraction of all processors' time that other programs used meanwhile; 0 if unknown.
    unclocked : str
        The name of a callable without a device clock, if others have one: then all were timed by the wall clock.
    """

    names: tuple[str, ...]
    engine: str
    device: str
    clock: str
    seconds: tuple[tuple[float, ...], ...]
    device_seconds: tuple[float | None, ...] = ()
    confidence: float = _CONFIDENCE
    margin: float = _MARGIN
    others: float = 0.0
    unclocked: str = ""

    @property
    def first(self) -> tuple[float, ...]:
        """The times of the first callable."""
        return self.seconds[0]

    @property
    def second(self) -> tuple[float, ...]:
        """The times of the second callable."""
        return self.seconds[1]

    @property
    def ratios(self) -> tuple[float, ...]:
        """The second's time divided by the first's, for each round."""
        return tuple(b / a for a, b in zip(self.first, self.second, strict=True))

    @property
    def ratio(self) -> float:
        """The median of `ratios`: how many times faster the first is than the second."""
        return float(np.median(self.ratios))

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval of `ratio` (see `median_interval`)."""
        return median_interval(self.ratios, self.confidence)

    @property
    def best(self) -> int:
        """The index of the apparently fastest callable: by the median of its time relative to its round."""
        logs = np.log(self.seconds)
        return int(np.argmin(np.median(logs - logs.mean(0), 1)))

    def lead(self, index: int) -> Lead:
        """Return how many times faster the best callable is than another.

        The intervals hold jointly with probability `confidence`, so each has a higher level of its own (Bonferroni).
        """
        ratios = (np.array(self.seconds[index]) / self.seconds[self.best]).tolist()
        sure = 1 - (1 - self.confidence) / max(1, len(self.names) - 1)
        return Lead(float(np.median(ratios)), *median_interval(ratios, sure))

    @property
    def tied(self) -> tuple[int, ...]:
        """The indices of the fastest callable and of those that are not significantly slower."""
        threshold = 1 + self.margin
        return tuple(i for i in range(len(self.names)) if i == self.best or not self.lead(i).low > threshold)

    @property
    def place(self) -> int | None:
        """The index of the fastest callable; None if the difference is not significant."""
        return self.best if len(self.tied) == 1 else None

    @property
    def winner(self) -> str | None:
        """The name of the fastest callable; None while an interval overlaps the margin around 1."""
        winner = self.place
        return None if winner is None else self.names[winner]

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values that `json.dumps` accepts."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a record from what `to_json` returned.

        Raises
        ------
        KeyError, TypeError
            If the data does not describe a comparison.
        """
        lists = {name: tuple(data[name]) for name in ("names", "device_seconds")}
        return cls(**{**data, **lists, "seconds": tuple(map(tuple, data["seconds"]))})


def compare(kernels: Any, /, *args: Any, names: Sequence[str] | None = None, **launch: Any) -> Comparison:
    """Time kernels and functions alternately and determine which is the fastest, or that no difference is detectable.

    They alternate batch by batch, and the order changes each round, so that a drift in the machine's speed affects all
    equally. Only the ratios of times within a round count. A winner is named when the 95 % confidence intervals of the
    median ratios lie more than 3 % above 1. Arrays that a kernel writes are restored before each batch and at the end.
    A function has only the wall clock, so if one is compared, all are timed by it; the time of a kernel on its device's
    clock is also shown.

    Parameters
    ----------
    kernels : Kernel, Dispatch, callable, or sequence or mapping of those
        ``compare(a, b, x)`` compares two, ``compare([a, b, c], x)`` several, and the keys of a mapping are their names.
        A dispatch from ``prepare`` keeps its own arguments: ``compare(f.prepare(x), g.prepare(x, y))``.
    *args, **launch
        As for a call; all receive the same arguments.
    names : sequence of str, optional
        Their names in the record; by default the kernels' own.

    Returns
    -------
    Comparison

    Raises
    ------
    ArgumentError, LaunchError
        As for the calls; if there are fewer than two kernels, or not one name for each.
    KernelFault
        If one fails.

    Examples
    --------
    >>> mnb.compare({"kernel": exp_of.prepare(x), "NumPy": lambda: np.exp(x)})   # doctest: +SKIP
    """
    if isinstance(kernels, Mapping):
        names = names or list(kernels)
        callables = list(kernels.values())
    elif isinstance(kernels, (list, tuple)) and not isinstance(kernels, Dispatch):
        callables = list(kernels)
    else:
        callables, args = [kernels, *args[:1]], args[1:]
    if len(callables) < 2:
        raise ArgumentError(f"compare: takes at least two kernels; got {len(callables)}.")
    if names and len(names) != len(callables):
        raise ArgumentError(f"compare: got {len(callables)} kernels but {quantity(len(names), 'name')}.")
    jobs = [job_of("compare", kernel, args, launch) for kernel in callables]
    labels = [str(name) for name in names or map(name_of, callables)]
    device_jobs: dict[int, Job] = {}
    wall_only = ""
    if len({job.clock for job in jobs}) > 1:
        wall_only = next(name for name, job in zip(labels, jobs, strict=True) if job.clock == "wall")
        device_jobs = {i: job for i, job in enumerate(jobs) if job.clock == "device"}
        jobs = [job_of("compare", kernel, args, launch, wall=True) for kernel in callables]
    load = OtherProcesses()
    with contextlib.ExitStack() as cleanup:
        for job in jobs:
            cleanup.enter_context(restoring(job))
        times, device_times = _rounds(jobs, device_jobs)
    engine_names = " and ".join(dict.fromkeys(job.engine.name for job in jobs))
    device = " and ".join(dict.fromkeys(job.engine.caps.device for job in jobs))
    seconds = tuple(map(tuple, times))
    return Comparison(
        _distinct(labels, jobs), engine_names, device, jobs[0].clock, seconds, device_times, others=load.share(),
        unclocked=wall_only,
    )  # fmt: skip


def _distinct(names: Sequence[str], jobs: Sequence[Job]) -> tuple[str, ...]:
    """Add the engines to names if there are several, then numbers to names that are still equal."""
    if len({job.engine.name for job in jobs}) > 1:
        kernels = [isinstance(job, DispatchJob) for job in jobs]
        pairs = zip(names, jobs, kernels, strict=True)
        names = [f"{n} on {j.engine.name}" if k and f"@{j.engine.name}" not in n else n for n, j, k in pairs]
    if len(names) == 2 and names[0] == names[1]:
        return f"{names[0]} (first)", f"{names[1]} (second)"
    counts = Counter(names)
    distinct: list[str] = []
    for name in names:
        numbered = (f"{name} ({i})" for i in itertools.count(1))
        distinct.append(next(n for n in numbered if n not in {*counts, *distinct}) if counts[name] > 1 else name)
    return tuple(distinct)


def _rounds(jobs: Sequence[Job], device_jobs: Mapping[int, Job]) -> tuple[list[list[float]], tuple[float | None, ...]]:
    """Run a batch of every callable in each round.

    The order is A B C, then C B A, then the same two orders rotated to start with each of the others.

    All outputs are restored before each run, since one kernel may read what another writes. If all are timed by the
    wall clock, those with a device clock are also timed by it.
    """
    times: list[list[float]] = [[] for _ in jobs]
    device_times: dict[int, list[float]] = {i: [] for i in device_jobs}
    total = _TOTAL * len(jobs)
    with progress("comparing", PATIENCE) as report:
        counts = _counts(jobs, report)
        start = time.perf_counter()
        while (count := len(times[0])) < _MAX_ROUNDS and (count < _MIN_ROUNDS or time.perf_counter() - start < total):
            report(min(1, max(count / _MAX_ROUNDS, min(count / _MIN_ROUNDS, (time.perf_counter() - start) / total))))
            for i in _order(count, len(jobs)):
                times[i].append(jobs[i].run(counts[i]))
                _restore(jobs)
                if i in device_jobs:
                    device_times[i].append(device_jobs[i].run(counts[i]))
                    _restore(jobs)
    medians = {i: float(np.median(seconds)) for i, seconds in device_times.items()}
    return times, tuple(medians.get(i) for i in range(len(jobs))) if medians else ()


def _order(turn: int, count: int) -> list[int]:
    """Return the order of a round: alternately forward and backward, starting with each callable in turn."""
    first = turn // 2 % count if count > 2 else 0
    order = [(first + n) % count for n in range(count)]
    return order[:: -1 if turn % 2 else 1]


def _counts(jobs: Sequence[Job], report: Callable[[float], None] = lambda _: None) -> list[int]:
    """Return the runs in a batch of each callable: the same for all, except for one that is much slower.

    A kernel that runs more often in a row finds more in the caches, and would seem the faster of two equal ones.
    """
    counts = []
    for job in jobs:
        counts.append(count_for(job, report)[0])
        _restore(jobs)
    largest = max(counts)
    for i, job in enumerate(jobs):
        while counts[i] < largest:
            larger = min(largest, 4 * counts[i])
            duration = time_batch(job, larger)
            _restore(jobs)
            if duration > _LASTS:
                break
            counts[i] = larger
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
        Minus and plus infinity if there are too few values for any interval.
    """
    values_in_order = sorted(values)
    n = len(values_in_order)
    probability, k = 0.0, 0
    while k < n // 2:
        probability += math.comb(n, k) / 2**n
        if 1 - 2 * probability < confidence:
            break
        k += 1
    return (values_in_order[k - 1], values_in_order[n - k]) if k else (-math.inf, math.inf)
