"""Run a dispatch in the validated build: watch every access, run one threadgroup at a time, return raw facts."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from metalnb.errors import EngineUnavailable

from ...base import Grid
from ...process_locks import new_lock
from ...unit import Unit
from ..cpu_engine import dispatch
from ..reserved_memory import worker_region
from .fact_reader import read_facts
from .run_record import Watch, mark_count, prepare_record
from .validated_build import ValidatedBuild, validated_build
from .validated_memory import Copy, argument_regions, copy_arguments, return_marks, take_marks, variable_regions
from .validation_facts import Facts

__all__ = ["run_validated"]

_MAX_ACCESSES = 1 << 25  # no threadgroup is started beyond it: each element accessed takes 24 bytes or more

_lock = new_lock()


def run_validated(
    unit: Unit, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, seconds: float,
) -> Facts:  # fmt: skip
    """Run a dispatch in the validated build on copies, completely or as far as the time allows.

    Parameters
    ----------
    unit, arguments, grid, threadgroup
        As for `Engine.compile` and `Engine.launch`.
    seconds : float
        The time after which threads are stopped. If all threadgroups would take longer, a sample runs: half of it from
        the start of the grid, the other half spread evenly over the rest.

    Raises
    ------
    EngineUnavailable
        Where the validated build does not run: it reads Linux's object files.
    """
    if sys.platform != "linux":
        message = (
            f"mnb.validate and %%metal --check run under Linux, and with engine 'metal' on macOS 15 or newer; this is "
            f"{sys.platform}: run the cell without them"
        )
        raise EngineUnavailable(message)
    build = validated_build(unit)
    x, y, z = (-(-n // t) for n, t in zip(grid, threadgroup, strict=True))
    groups = x * y * z
    with _lock:
        worker = worker_region()
        arena = build.library.metalnb_arena_of(worker)
        copies = copy_arguments(unit, arguments)
        regions = [*argument_regions(unit, copies, arena, build.static), *variable_regions(build, arena)]
        marks = take_marks(sum(map(mark_count, regions)))
        record = prepare_record(regions, marks, grid, groups)
        words = dispatch([c.array if isinstance(c, Copy) else c for c in copies], grid, threadgroup, build.static)
        build.library.metalnb_watch(ctypes.byref(record.watch))
        finished = _run_within(build, record.watch, words, worker, groups, seconds)
    oldest, marks.moment = (marks.moment + 1) << 36, record.watch.now
    facts = read_facts(record, build, unit, copies, finished, oldest)
    return_marks(marks, facts)
    return facts


def _run_within(build: ValidatedBuild, watch: Watch, words: bytes, worker: int, groups: int, seconds: float) -> int:
    """Run threadgroups on another thread, so that Ctrl-C works; return how many finished."""
    deadline = time.perf_counter() + seconds
    group_count, is_abandoned = 0, False
    run_lock = threading.Lock()  # held while the threadgroups use the memory

    def run() -> None:
        nonlocal group_count
        with run_lock:
            for first, count in _parts(groups, watch, deadline) if not is_abandoned else ():
                build.library.metalnb_groups(words, worker, first, count)
                build.library.metalnb_counted()
                if watch.stopped:
                    return
                group_count += count

    runner = threading.Thread(target=run, name="metalnb-validated", daemon=True)
    try:
        runner.start()
        while runner.is_alive():
            runner.join(0.1)
            if time.perf_counter() > deadline:
                watch.stopped = watch.stopped or 1
    except BaseException:  # an interrupt, which may also arrive while the thread starts, or a second time
        is_abandoned = True
        watch.stopped = 2
        _wait_for(run_lock)
        raise
    return group_count


def _wait_for(lock: threading.Lock) -> None:
    while True:
        try:
            with lock:
                return
        except KeyboardInterrupt:
            continue


def _parts(groups: int, watch: Watch, deadline: float) -> Iterator[tuple[int, int]]:
    """Yield ranges of threadgroups: the first one and their number."""
    if not groups:
        return
    first = min(groups, 8)
    start = time.perf_counter()
    yield 0, first
    seconds = max(time.perf_counter() - start, 1e-6) / first
    accesses = max(watch.accesses / first, 1)
    affordable = min((deadline - time.perf_counter()) / seconds * 0.8, (_MAX_ACCESSES - watch.accesses) / accesses)
    remaining = groups - first
    if affordable >= remaining:
        yield from _chunks(first, remaining)
        return
    half = max(0, int(affordable / 2))
    yield from _chunks(first, half)
    rest = remaining - half
    samples = max(1, int(affordable) - half)
    for i in range(samples):
        if time.perf_counter() > deadline or watch.accesses > _MAX_ACCESSES:
            return
        yield groups - 1 - (i * rest) // samples, 1


def _chunks(first: int, count: int) -> Iterator[tuple[int, int]]:
    """Split a range of threadgroups, so that a stopped run knows roughly how far it got."""
    size = max(1, count // 16)
    for start in range(first, first + count, size):
        yield start, min(size, first + count - start)
