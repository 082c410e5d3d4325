"""Measure the best rates that an engine reaches, once, with kernels that do nothing else, and keep them on disk.

Rates that were measured while other programs used the processors, or that have a large spread, are shown and used for a
while, but not kept.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from metalnb import cache
from metalnb import engine as engines
from metalnb.call.kernel import Kernel
from metalnb.engine.base import Engine
from metalnb.errors import ArgumentError
from metalnb.free_memory import free_memory
from metalnb.profiling.apple_chips import AppleChip, apple_chip, nominal
from metalnb.program import compile
from metalnb.rendering import Rendered

from .limit_probes import ARITHMETIC, PROBES, Probe
from .machine import last_cache, machine_name
from .other_processes import BUSY, OtherProcesses
from .progress import progress
from .records import Traffic
from .sampling import OWN, DispatchJob

__all__ = ["Limits", "limits", "remeasure"]

_FORM = 4  # version of the record and of the measurement: older records are measured again
_SPAN = 4  # an array is this many times as large as the last-level cache
_BYTES = 1 << 27  # the most bytes per array, and its size if that of the last-level cache is unknown
_PART = 1 / 4  # all arrays together take at most this fraction of the free memory
_RUNS = 7  # the most runs per probe and threadgroup size; the best counts
_SECONDS = 1.5  # no round of runs begins after this many seconds of runs,
_WHOLE_TIME = 2.0  # … or after this many since the first probe began to compile
_COMPILING = 3  # probes that are compiled at once: clang works on one while Python works on another
_CROWDED = 0.30  # limits are not kept if other programs used more than this fraction of all processors' time,
_WIDE_SPREAD = 0.30  # … or if a limit's rates spread by more than this from round to round
_PASSING = 300.0  # limits that are not kept are used for this many seconds
_READS_ONLY = 0.9  # a mix with a larger fraction of reads is compared with reading alone,
_READS_LARGEST_FRACTION = 0.6  # … and with a larger fraction than this, with two reads and a write
_WRITES_ONLY = 0.1


@dataclass(frozen=True, slots=True, repr=False)
class Limits(Rendered):
    """The rates that an engine reached on this machine.

    Attributes
    ----------
    engine, device, machine : str
    date : str
        The time of the measurement: ISO 8601, local time.
    versions : mapping of str to str
        The versions of the software that the engine uses.
    read, write, copy, triad, update : float
        B/s of reading an array; of writing one; of ``a = b``; of ``a = b + q·c``; of ``a = q - a`` in place. Each byte
        counts once for a read and once for a write. On a CPU a write costs a read as well, because a cache line is
        fetched before it is written; so `copy` is slower than `update`, which has read the line anyway.
    flops : float
        Single-precision operations per second, of independent chains of fused multiply-adds (two operations each).
    cache : int or None
        Bytes of the last-level cache. Arrays that fit in it may exceed the limits.
    nominal : tuple of 2 float or None
        The maker's B/s and FLOP/s, or those computed from the number of cores.
    others : float
        The fraction of all processors' time that other programs used meanwhile: if it is large, the limits are too low.
    spread : float
        The spread of a limit's rates from round to round, as a fraction of the best; the largest of all limits.
    """

    engine: str
    device: str
    machine: str
    date: str
    versions: Mapping[str, str]
    read: float
    write: float
    copy: float
    triad: float
    update: float
    flops: float
    cache: int | None = None
    nominal: tuple[float, float] | None = None
    others: float = 0.0
    spread: float = 0.0

    @property
    def chip(self) -> AppleChip | None:
        """The known figures of the device itself, if it is one of Apple's."""
        return apple_chip(self.device)

    @property
    def state(self) -> str:
        """The machine's state during the measurement: ``quiet``, ``shared``, ``busy`` or ``unsteady``."""
        if self.others > _CROWDED:
            return "busy"
        if self.spread > _WIDE_SPREAD:
            return "unsteady"
        return "shared" if self.others > BUSY else "quiet"

    @property
    def sure(self) -> bool:
        """Whether the machine was quiet enough to keep the limits on disk."""
        return self.state in {"quiet", "shared"}

    def ceiling(self, traffic: Traffic) -> tuple[str, float]:
        """Return the name and the B/s of the limit with the most similar mix of reads and writes."""
        total = traffic.bytes or 1
        if traffic.read / total >= _READS_ONLY:
            name = "read"
        elif traffic.read / total <= _WRITES_ONLY:
            name = "write"
        elif traffic.written and traffic.updated >= traffic.written / 2:
            name = "update"
        else:
            name = "triad" if traffic.read / total >= _READS_LARGEST_FRACTION else "copy"
        return name, getattr(self, name)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values that `json.dumps` accepts."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a record from what `to_json` returned.

        Raises
        ------
        KeyError, TypeError
            If the data is something else.
        """
        pair = data["nominal"]
        return cls(**{**data, "nominal": None if pair is None else (float(pair[0]), float(pair[1]))})


def limits(*, engine: str | None = None, again: bool = False) -> Limits:
    """Return the best rates of this machine's memory and arithmetic that an engine's kernels reach.

    They are measured once, in less than three seconds, and kept on disk for this device and these versions of its
    drivers. Limits measured on a busy machine are used for five minutes, and not kept.

    Parameters
    ----------
    engine : str, optional
        One of `engines`; by default the one in use.
    again : bool, optional
        Whether to measure again.

    Returns
    -------
    Limits

    Raises
    ------
    EngineUnavailable
        If the named engine, or without a name any engine, cannot run here.
    """
    device_engine = engines.named(engine)
    key = _key(device_engine)
    cached = None if again else _cached_limits(key)
    if cached is not None:
        return cached
    with _measuring:
        cached = None if again else _cached_limits(key)  # another thread may just have measured them
        if cached is not None:
            return cached
        measured = _measure(device_engine)
        if measured.sure:
            cache.store().put(key, "limits", json.dumps(measured.to_json()).encode())
        _recent[key] = time.monotonic(), measured
    return measured


_recent: dict[str, tuple[float, Limits]] = {}
_measuring = threading.Lock()  # two simultaneous measurements would halve each other's rates


def remeasure(engine: str | None) -> Limits | None:
    """Measure the limits again because a kernel exceeded them; return None if they are less than five minutes old."""
    key = _key(engines.named(engine))
    measured_at, _ = _recent.get(key, (-math.inf, None))
    return None if time.monotonic() - measured_at < _PASSING else limits(engine=engine, again=True)


def _cached_limits(key: str) -> Limits | None:
    measured_at, recent = _recent.get(key, (-math.inf, None))
    if recent is not None and not recent.sure and time.monotonic() - measured_at < _PASSING:
        return recent
    data = cache.store().get(key, "limits")
    try:
        return None if data is None else Limits.from_json(json.loads(data))
    except (ValueError, KeyError, TypeError):
        return None  # damaged: measured again


def _key(engine: Engine) -> str:
    caps = engine.caps
    versions = repr(sorted(caps.versions.items()))
    sources = [p.source for p in (*PROBES, *ARITHMETIC)]
    return cache.digest(str(_FORM), engine.name, caps.device, machine_name(), versions, *sources)


def _measure(engine: Engine) -> Limits:
    cache_bytes = last_cache(engine)
    span = _span(cache_bytes)
    try:
        arrays = {n: np.frombuffer(engine.alloc(span), np.float32) for n in "abc"}
    except MemoryError as error:
        raise ArgumentError(f"limits: needs three arrays of {span:,} bytes. Free some memory.") from error
    rates, others, spread = _rates(engine, arrays)
    caps = engine.caps
    date = dt.datetime.now().astimezone().isoformat(timespec="seconds")
    return Limits(
        engine.name, caps.device, machine_name(), date, dict(caps.versions), **rates,
        cache=cache_bytes, nominal=caps.nominal or nominal(caps.device), others=others, spread=spread,
    )  # fmt: skip


def _span(last: int | None) -> int:
    """Return the bytes of an array larger than the last-level cache, if the machine has that much free memory."""
    nbytes = min(max(_SPAN * last, 1 << 26), _BYTES) if last else _BYTES
    free_bytes = free_memory()
    if free_bytes is not None:
        nbytes = min(nbytes, int(_PART * free_bytes / 3))
    return max(nbytes >> 20, 1) << 20


def _rates(engine: Engine, arrays: dict[str, Any]) -> tuple[dict[str, float], float, float]:
    """Return the best rate for each limit, the fraction of the processors that other programs used, and the spread.

    The probes alternate, so that a disturbance does not affect all runs of one of them.
    """
    probes = (*PROBES, *ARITHMETIC)
    with progress("measuring this machine's limits, once") as report:
        start_compiling = time.monotonic()
        with ThreadPoolExecutor(_COMPILING) as pool:  # the arrays' pages are allocated meanwhile
            fills = [pool.submit(array.fill, 1) for array in arrays.values()]
            kernels = []
            for kernel in pool.map(lambda probe: _compile(engine, probe), probes):
                kernels.append(kernel)
                report(len(kernels) / len(probes) / 2)
            for fill in fills:
                fill.result()
        jobs = [(p, grid, job) for p, k in zip(probes, kernels, strict=True) for grid, job in _jobs(k, p, arrays)]
        load, start = OtherProcesses(), time.monotonic()
        end = min(start + _SECONDS, start_compiling + _WHOLE_TIME)
        rounds: list[dict[str, float]] = []
        while not rounds or (len(rounds) < _RUNS and time.monotonic() < end):
            rates: dict[str, float] = {}
            for probe, grid, job in jobs:
                rates[probe.limit] = max(rates.get(probe.limit, 0.0), probe.amount * grid / job.run(1))
                report(0.5 + min((time.monotonic() - start) / _SECONDS, 1) / 2)
            rounds.append(rates)
    best = {name: max(r[name] for r in rounds) for name in rounds[0]}
    spread = max(1 - float(np.median([r[name] for r in rounds])) / best[name] for name in best)
    return best, load.share(), spread if len(rounds) > 1 else 1.0


def _compile(engine: Engine, probe: Probe) -> Kernel:
    kernel = compile(probe.source, engine=engine.name, name=OWN, checked=False)["probe"]
    _ = kernel.binary
    return kernel


def _jobs(kernel: Kernel, probe: Probe, arrays: dict[str, Any]) -> Iterator[tuple[int, DispatchJob]]:
    """Bind a probe for each threadgroup size; yield the number of threads and the job."""
    arguments = [arrays[p.name] for p in kernel.signature.buffers]
    grid = probe.threads or arguments[0].size // probe.elements
    for threadgroup in probe.threadgroups:
        yield grid, DispatchJob(kernel.prepare(*arguments, grid=grid, threadgroup=threadgroup), keep=False)
