"""Repeat a call in the validated build of the engine `cpu`, on copies, and judge it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from metalnb.call.kernel import Dispatch
from metalnb.engine.base import Bytes, Grid
from metalnb.engine.cpu.validated.validated_run import run_validated
from metalnb.program.host_visible import require_host_visible

from .access_report import Log, Validation, WatchedBuffer
from .judgment import Judge, in_grid

__all__ = ["SECONDS", "Outcome", "Watcher", "run_and_judge", "watch"]

SECONDS = 5.0


class Outcome(Protocol):
    """The contents of memory after a run, and its writers if known: see `Judge`."""

    def contents(self, name: str) -> Bytes:
        """Return a buffer's bytes."""
        ...

    def written(self, name: str, shape: tuple[int, ...], size: int) -> tuple[Any, Any]:
        """Return which elements of an array no thread wrote, and which were written again before they were read."""
        ...

    def writer(self, name: str, byte: int) -> tuple[int, int, Any]:
        """Return the thread that last wrote a byte of an array, its threadgroup, and the position of the write."""
        ...

    def location(self, line: Any) -> tuple[int, int, str]:
        """Return a position's line and column in the author's source, and that line."""
        ...


Watcher = Callable[[Dispatch, float], tuple[Validation, Outcome]]


def watch(dispatch: Dispatch, seconds: float = SECONDS) -> Validation:
    """Repeat a dispatch in the validated build; return the report."""
    return run_and_judge(dispatch, seconds)[0]


def run_and_judge(dispatch: Dispatch, seconds: float) -> tuple[Validation, Judge]:
    """Repeat a dispatch in the validated build; return the report, and the judge, which knows who wrote each byte."""
    kernel, grid, threadgroup = dispatch.kernel, dispatch.grid, dispatch.threadgroup
    require_host_visible(dispatch, "validate")
    signature = kernel.signature
    initial = {
        p.name: np.frombuffer(np.ascontiguousarray(a), np.uint8)  # the call works on copies
        for p, a in zip(signature.params, dispatch.arguments, strict=True)
        if a is not None and not isinstance(a, int)
    }
    facts = run_validated(kernel.unit, dispatch.arguments, grid, threadgroup, seconds)
    x, y, z = (-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
    left_out = x * y * z - facts.groups
    judge = Judge(kernel.unit, grid, threadgroup, facts, initial, complete=not left_out)
    arrays = [p for p in signature.buffers if not p.reference and p.name in facts.buffers]
    buffers = []
    for p in arrays:
        buffer = facts.buffers[p.name]
        size = buffer.contents.size // max(1, p.type.size)
        buffers.append(WatchedBuffer(
            name=p.name, size=size, writable=p.writable, atomic=buffer.atomics > 0, reads=buffer.reads,
            writes=buffer.writes, beyond=buffer.strays, others=buffer.others,
        ))  # fmt: skip
    unwritten = {name: np.flatnonzero(flags).tolist() for name, flags in judge.unwritten.items() if flags.any()}
    events, names, sizes = facts.events, facts.names, {p.name: max(1, p.type.size) for p in arrays}

    def log() -> Log:  # called later: it must not keep the watched memory alive
        return _log(events, names, sizes, grid, threadgroup)

    report = Validation(
        kernel=signature.name, grid=grid, threadgroup=threadgroup, buffers=tuple(buffers), findings=judge.findings(),
        unwritten=unwritten, accesses=facts.accesses, left_out=left_out, make_log=log,
    )  # fmt: skip
    return report, judge


def _log(
    kept_events: np.ndarray[Any, Any], names: tuple[str, ...], sizes: dict[str, int], grid: Grid, threadgroup: Grid,
) -> Log:  # fmt: skip
    """Return the accesses of arrays, in the form of `Validation.log`."""
    array_numbers = np.full(max(1, len(names)), -1, np.int64)
    sizes_of = np.ones(len(array_numbers), np.int64)
    for i, name in enumerate(names):
        if name in sizes:
            array_numbers[i], sizes_of[i] = list(sizes).index(name), sizes[name]
    events = kept_events[array_numbers[kept_events["access"] >> 2] >= 0]
    region = events["access"] >> 2
    log = np.empty((len(events), 4), np.int64)
    log[:, 0] = in_grid(events["thread"], events["group"], grid, threadgroup)
    log[:, 1] = array_numbers[region]
    log[:, 2] = events["access"] & 3
    log[:, 3] = events["offset"] // sizes_of[region]
    return log
