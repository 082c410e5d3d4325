"""Give up a configuration after one run, and an engine after a few, if they take ten times the best time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from metalnb.call.kernel import Dispatch
from metalnb.timing.records import Timing
from metalnb.timing.sampling import DispatchJob
from metalnb.timing.units import trim_grid

from .trials import Trial

__all__ = ["is_hopeless_engine", "time_if_hopeless"]

_HOPELESS, _LONG = 10, 0.02  # one run suffices if it takes this many times the best time, and at least these seconds
_SURE = 1.0  # seconds; in a first run of this length, copies and a late compilation take a small part
_RUNS = 3  # after giving up this many configurations, give up the rest of their engine


def time_if_hopeless(
    best: Trial | None, dispatch: Dispatch, duration: float, run: Callable[[Callable[[], float]], float], *, wall: bool
) -> Timing | None:
    """Return the time of one run of a configuration that is not worth measuring; None if it may be the best.

    Parameters
    ----------
    best : Trial or None
    dispatch : Dispatch
    duration : float
        The seconds of the configuration's first run by the wall clock, including copies.
    run : callable
        Takes a step, unless the sweep is stopping.
    wall : bool
        Whether everything is timed by the wall clock.
    """
    if best is None or best.timing is None:
        return None
    limit = max(_HOPELESS * best.timing.median, _LONG)
    if duration < limit:
        return None
    clock = "wall"
    if duration < _SURE:
        job = DispatchJob(dispatch, wall=wall)
        duration, clock = run(lambda: job.run(1)), job.clock
        if duration < limit:
            return None
    engine = dispatch.kernel.engine
    return replace(
        best.timing, engine=engine.name, device=engine.caps.device, clock=clock, seconds=(duration,), batch=1,
        threadgroup=trim_grid(dispatch.threadgroup),
    )  # fmt: skip


def is_hopeless_engine(trials: Sequence[Trial], engine: str) -> bool:
    """Return whether to skip an engine's remaining configurations because all those that ran were given up."""
    ran = [t for t in trials if t.engine == engine and t.timing]
    spent = sum(t.seconds or 0.0 for t in ran)
    return bool(ran) and all(t.once for t in ran) and (len(ran) >= _RUNS or spent >= _SURE)
