"""Order steps as a GPU does: SIMD-groups run in lockstep, and lanes diverge at branches and converge after them.

The traced build runs one thread after another. A GPU runs the lanes of a SIMD-group together: the lanes at the earliest
position in the program continue, and the other lanes wait until these catch up. A position is earlier if it is in an
earlier iteration of a loop, or further up in the same iteration. SIMD-groups run concurrently, up to a barrier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .source_marks import Site

__all__ = ["LANES", "Position", "StepPositions", "ThreadStep", "lockstep"]

LANES = 32
Position = tuple[int, ...]


class ThreadStep(NamedTuple):
    """A step of a thread: its position, and the barriers before it."""

    position: Position
    epoch: int


class StepPositions:
    """Tracks the positions of one thread's steps, given each step and scope in order."""

    def __init__(self, sites: Sequence[Site]) -> None:
        self._sites = sites
        self._frames: list[_Frame] = [_Frame((), {}, set())]
        self._last: Position = ()
        self._calls = 0

    def enter(self) -> None:
        """Enter a function, whose steps come after the step that called it."""
        self._calls += 1
        self._frames.append(_Frame((*self._last, self._calls), {}, set()))

    def leave(self) -> None:
        """Leave the function."""
        if len(self._frames) > 1:
            self._last = self._frames.pop().prefix[:-1]

    def step(self, number: int) -> Position:
        """Return the position of a step."""
        site, frame = self._sites[number], self._frames[-1]
        iterations = frame.iterations
        for loop in [loop_key for loop_key in iterations if loop_key not in site.loops]:
            del iterations[loop]
            frame.repeating.discard(loop)
        for loop in site.loops:
            iterations.setdefault(loop, -1 if site.kind == "loop" and loop == site.loops[-1] else 0)
            if loop in frame.repeating:
                frame.repeating.discard(loop)
                iterations[loop] += 1
        if site.kind == "loop":
            iterations[site.loops[-1]] += 1
        elif site.kind == "again":
            frame.repeating.add(site.loops[-1])
        counts = [part for loop in site.loops for part in (loop, iterations[loop])]
        self._last = (*frame.prefix, *counts, site.order)
        self._calls = 0
        return self._last


class _Frame(NamedTuple):
    prefix: Position
    iterations: dict[int, int]
    repeating: set[int]


def lockstep(threads: Sequence[Sequence[ThreadStep]]) -> list[list[int]]:
    """Return the ticks of each thread's steps, from 0, for one threadgroup."""
    ticks: list[list[int]] = [[] for _ in threads]
    last = max((steps[-1].epoch for steps in threads if steps), default=0)
    tick = 0
    for epoch in range(last + 1):
        end, waiting = tick, []
        for first in range(0, len(threads), LANES):
            lanes = range(first, min(first + LANES, len(threads)))
            positions = {lane: list(_positions_of_epoch(threads[lane], len(ticks[lane]), epoch)) for lane in lanes}
            steps = {lane: len(ticks[lane]) + len(positions[lane]) for lane in lanes}
            at_barrier = {lane for lane in lanes if positions[lane] and steps[lane] < len(threads[lane])}
            waiting += sorted(at_barrier)
            end = max(end, _run_simdgroup(positions, at_barrier, ticks, tick))
        for lane in waiting:
            ticks[lane].append(end)
        tick = end + bool(waiting)
    return ticks


def _positions_of_epoch(steps: Sequence[ThreadStep], start: int, epoch: int) -> Iterator[Position]:
    for step in steps[start:]:
        if step.epoch != epoch:
            return
        yield step.position


def _run_simdgroup(
    positions: dict[int, list[Position]], at_barrier: set[int], ticks: list[list[int]], tick: int
) -> int:
    """Run a SIMD-group up to its barrier, excluding the barrier's own step; return the tick after the last step."""
    done = dict.fromkeys(positions, 0)
    ends = {lane: len(steps) - (lane in at_barrier) for lane, steps in positions.items()}
    while running := [lane for lane in positions if done[lane] < ends[lane]]:
        first = min(positions[lane][done[lane]] for lane in running)
        for lane in running:
            if positions[lane][done[lane]] == first:
                ticks[lane].append(tick)
                done[lane] += 1
        tick += 1
    return tick
