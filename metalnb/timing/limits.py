"""The best rates that an engine reaches: measured once, with kernels that do nothing else, and kept on disk."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from metalnb import cache
from metalnb import engine as engines
from metalnb.engine.base import Engine
from metalnb.errors import ArgumentError
from metalnb.program import compile
from metalnb.rendering import Rendered

from .limit_probes import ARITHMETIC, PROBES, Probe
from .machine import last_cache, machine_name, nominal
from .other_processes import OtherProcesses
from .records import Traffic
from .sampling import OWN, DispatchJob

__all__ = ["Limits", "limits"]

_FORM = 2  # version of the record and of the measurement: older ones are measured again
_SPAN = 4  # size of an array in last-level caches
_BYTES = 1 << 28  # of an array, where the size of the last-level cache is unknown
_RUNS = 7  # of each probe with each threadgroup size; the best counts
_READS_ONLY = 0.9  # a mix with a larger part of reads is compared with reading alone
_READS_MOST = 0.6  # with a larger one than this, with two reads and a write
_WRITES_ONLY = 0.1


@dataclass(frozen=True, slots=True, repr=False)
class Limits(Rendered):
    """The rates that an engine reached on this machine.

    Attributes
    ----------
    engine, device, machine : str
    date : str
        Of the measurement: ISO 8601, local time.
    versions : mapping of str to str
        Of the software that the engine uses.
    read, write, copy, triad, update : float
        B/s of reading an array; of writing one; of ``a = b``; of ``a = b + q·c``; of ``a = q - a`` in place. Each byte
        counts once for a read and once for a write. On a CPU a write costs a read as well, because a cache line is
        fetched before it is written; so `copy` is slower than `update`, which has read the line anyway.
    flops : float
        Single-precision operations per second, of independent chains of fused multiply-adds (two operations each).
    cache : int or None
        Bytes of the last-level cache. Arrays that fit in it may exceed the limits.
    nominal : tuple of 2 float or None
        B/s and FLOP/s as the maker states them, or as computed from the number of cores.
    others : float
        The part of all processors' time that other programs used meanwhile: if it is large, the limits are too low.
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
            name = "triad" if traffic.read / total >= _READS_MOST else "copy"
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
            When it is something else.
        """
        pair = data["nominal"]
        return cls(**{**data, "nominal": None if pair is None else (float(pair[0]), float(pair[1]))})


def limits(*, engine: str | None = None, again: bool = False) -> Limits:
    """Return what this machine's memory and arithmetic can do, as an engine's kernels reach it.

    They are measured once, in about three seconds, and kept on disk for this device and these versions of its drivers.

    Parameters
    ----------
    engine : str, optional
        One of `engines`; by default the one in use.
    again : bool, optional
        True measures again.

    Returns
    -------
    Limits

    Raises
    ------
    EngineUnavailable
        When no engine, or not the one named, can run here.
    """
    chosen = engines.named(engine)
    key = _key(chosen)
    if not again:
        kept = cache.store().get(key, "limits")
        if kept is not None:
            try:
                return Limits.from_json(json.loads(kept))
            except (ValueError, KeyError, TypeError):
                pass  # damaged: measured again
    found = _measured(chosen)
    cache.store().put(key, "limits", json.dumps(found.to_json()).encode())
    return found


def _key(engine: Engine) -> str:
    caps = engine.caps
    versions = repr(sorted(caps.versions.items()))
    sources = [p.source for p in (*PROBES, *ARITHMETIC)]
    return cache.digest(str(_FORM), engine.name, caps.device, machine_name(), versions, *sources)


def _measured(engine: Engine) -> Limits:
    known = last_cache(engine)
    span = _span(known)
    try:
        arrays = {n: np.frombuffer(engine.alloc(span), np.float32) for n in "abc"}
    except MemoryError as error:
        raise ArgumentError(f"limits: needs three arrays of {span:,} bytes. Free some memory.") from error
    for array in arrays.values():
        array[:] = 1
    rates, others = _rates(engine, arrays)
    caps = engine.caps
    date = dt.datetime.now().astimezone().isoformat(timespec="seconds")
    return Limits(
        engine.name, caps.device, machine_name(), date, dict(caps.versions), **rates,
        cache=known, nominal=nominal(caps.device), others=others,
    )  # fmt: skip


def _span(last: int | None) -> int:
    """Return the bytes of an array that is much larger than the last-level cache."""
    return max(_SPAN * last, 1 << 26) if last else _BYTES


def _rates(engine: Engine, arrays: dict[str, Any]) -> tuple[dict[str, float], float]:
    """Return the best rate for each limit, and the part of the processors that other programs used meanwhile.

    The probes alternate, so that a disturbance of some duration does not hit all runs of one of them.
    """
    jobs = [(probe, grid, job) for probe in (*PROBES, *ARITHMETIC) for grid, job in _jobs(engine, probe, arrays)]
    for _, _, job in jobs:
        job.run(1)  # compiles it, and touches every page
    load = OtherProcesses()
    best: dict[str, float] = {}
    for _ in range(_RUNS):
        for probe, grid, job in jobs:
            best[probe.limit] = max(best.get(probe.limit, 0.0), probe.amount * grid / job.run(1))
    return best, load.share()


def _jobs(engine: Engine, probe: Probe, arrays: dict[str, Any]) -> Iterator[tuple[int, DispatchJob]]:
    """Bind a probe for each threadgroup size; yield the number of threads with it."""
    kernel = compile(probe.source, engine=engine.name, name=OWN)["probe"]
    given = [arrays[p.name] for p in kernel.signature.buffers]
    grid = probe.threads or given[0].size // probe.elements
    for threadgroup in probe.threadgroups:
        yield grid, DispatchJob(kernel.prepare(*given, grid=grid, threadgroup=threadgroup), keep=False)
