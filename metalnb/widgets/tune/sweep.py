"""Run a sweep: check and measure every configuration, then measure the best ones again."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self, TypeVar

import numpy as np

from metalnb.call.kernel import Kernel
from metalnb.engine import named
from metalnb.errors import ArgumentError, LaunchError
from metalnb.timing.compare import median_interval
from metalnb.timing.records import Timing
from metalnb.timing.units import trim_grid

from ..background_work import spawn
from ..bound_call import BoundCall
from ..quick_timing import Stopped, quick
from .hopeless_trials import is_hopeless_engine, time_if_hopeless
from .overrun_check import GuardedArguments
from .trials import Trial, failure, order

__all__ = ["EVEN", "Sweep"]

T = TypeVar("T")

EVEN = 1.02  # a gain below this is noise
_FINALISTS = 3  # configurations measured again at the end, alternating with the baseline
_NEAR_BEST = 1.5  # configurations that take more than this times the best are not measured again
_ROUNDS = 2
_SECONDS = 0.08  # per measurement
_DUEL, _TURN = 1.5, 0.02  # seconds for the comparison with the baseline, and for each measurement in it
_MIN_TURNS, _MAX_TURNS = 6, 15  # measurements in the comparison; an interval needs six


class Sweep:
    """Tries configurations one after another, and records the time of each.

    They are tried in order or, with ``usual_first``, starting with those of about 256 threads: once a good time is
    known, one run is enough to reject a far slower configuration. Other engines come after the kernel's own.

    Attributes
    ----------
    trials : list of Trial
        All configurations.
    done : int
        The number of configurations that have been tried.
    baseline : Trial
        The kernel unchanged: with its own constants and its default threadgroup.
    wall : bool
        Whether all configurations are timed by the wall clock, because one of the engines has no other clock.
    ratios : tuple of float
        The baseline's time divided by that of the best configuration, from pairs of consecutive measurements; see
        `interval`.
    error : str
        Why a sweep in the background ended early (too little memory for copies, say); empty if it did not.
    """

    def __init__(
        self, call: BoundCall, trials: list[Trial], *, check: bool, reference: Any = None,
        rebind: Callable[[Trial], BoundCall] | None = None, usual_first: bool = False,
    ) -> None:  # fmt: skip
        self.call = call
        self._rebind = rebind
        self._reference = _results_by_name(reference, call)
        self.ratios: tuple[float, ...] = ()
        self.trials = trials
        self._order = order(trials, usual_first=usual_first)
        call_engine, other_engines = call.kernel.engine, {trial.engine for trial in trials} - {""}
        self.wall = len({call_engine.caps.clock, *(named(name).caps.clock for name in other_engines)}) > 1
        self.done = 0
        self.check = check
        self.baseline = Trial(trim_grid(call.dispatch().threadgroup), engine=call_engine.name if other_engines else "")
        self.error = ""
        self.applied: Kernel | None = None
        self._own: tuple[Any, GuardedArguments] | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._running = threading.Lock()

    # --- running ---------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether the sweep is running."""
        return self._running.locked()

    def start(self) -> Self:
        """Start, or continue after `stop`, in a background thread."""
        if self._stopping.is_set():
            self.wait()  # until the configuration in progress is done
        if self._thread is None or not self._thread.is_alive():
            self._stopping.clear()
            self._thread = spawn(self._run_in_thread, self.stop)
        return self

    def run(self) -> Self:
        """Run the sweep, and return when it is done."""
        self._stopping.clear()
        try:
            self._sweep()
        except KeyboardInterrupt:
            self.stop()
            raise
        return self

    def stop(self) -> Self:
        """Stop after the current dispatch; results are kept, and `start` continues."""
        self._stopping.set()
        return self

    def wait(self, timeout: float | None = None) -> Self:
        """Wait until the sweep is done or stopped, at most ``timeout`` seconds."""
        if self._thread is not None:
            self._thread.join(timeout)
        return self

    def _on_change(self) -> None:
        """Called after each configuration, when there is something new to show."""

    def _on_end(self) -> None:
        """Called when the sweep is done, stopped or failed."""

    def _run_in_thread(self) -> None:
        """Run the sweep in its thread; an exception, which cannot be caught there, is kept for display."""
        try:
            self._sweep()
        except Exception as error:  # noqa: BLE001
            self.error = f"{type(error).__name__}: {error}"
            self._on_change()

    def _sweep(self) -> None:
        self.error = ""
        try:
            with self._running:
                self._on_change()
                guarded = GuardedArguments(self.call)
                expected = self._measure_baseline(guarded)
                while self.done < len(self.trials) and not self._stopping.is_set():
                    index = self._order[self.done]
                    trial = self.trials[index]
                    if not trial.error:  # an error means that it was refused before anything ran
                        self.trials[index] = self._outcome(trial, guarded, expected)
                    self.done += 1
                    self._on_change()
                if self.done == len(self.trials):
                    self._measure_finalists(guarded)
        except Stopped:
            pass
        finally:
            self._on_change()
            self._on_end()

    def _outcome(self, trial: Trial, guarded: GuardedArguments, expected: Mapping[str, Any] | None) -> Trial:
        if self.changes_nothing(trial):
            return self._as_baseline(trial)
        if trial.engine != self.baseline.engine and is_hopeless_engine(self.trials, trial.engine):
            return replace(trial, left_out=True)
        return self._try(trial, guarded, expected)

    def _measure_baseline(self, guarded: GuardedArguments) -> Mapping[str, Any] | None:
        """Run the baseline; return its results, or None if there are none to compare with."""
        reference = self._reference if self.check else None
        trial = self._try(replace(self.baseline, timing=None, error=""), guarded, reference or None)
        self.baseline = trial
        if reference:
            return reference
        if trial.error or not self.check:
            return None
        self._step(guarded.reset)
        self._step(self._dispatch(trial, guarded).run)
        expected = self._step(guarded.results)
        self._step(guarded.find_overrun)
        return expected

    def _try(self, trial: Trial, guarded: GuardedArguments, expected: Mapping[str, Any] | None) -> Trial:
        try:
            guarded = self._guards_of(trial, guarded)
            self._step(guarded.reset)
            dispatch = self._dispatch(trial, guarded)
            start = time.perf_counter()
            self._step(dispatch.run)
            duration = time.perf_counter() - start
            overrun = self._step(guarded.find_overrun)
            if overrun:
                return replace(trial, error=f"writes past the end of '{overrun}'")
            same_shapes = expected is self._reference or not trial.launch
            difference = ""
            if expected is not None:
                check_stop = functools.partial(self._step, bool)
                difference = guarded.find_difference(expected, same_shapes=same_shapes, on_step=check_stop)
            if difference:
                return replace(trial, error=f"writes different results to '{difference}' (check=False accepts them)")
            given_up = time_if_hopeless(self.best, dispatch, duration, self._step, wall=self.wall)
            if given_up:
                return replace(trial, timing=given_up, once=True)
            self._step(guarded.reset)
            return replace(trial, timing=self._quick(trial, guarded))
        except Stopped:
            raise
        except Exception as error:  # noqa: BLE001  (listed with the configuration; the sweep continues)
            return replace(trial, error=failure(error))

    def _step(self, step: Callable[[], T]) -> T:
        """Run one step of a configuration, unless the sweep is stopping; `start` then repeats the configuration."""
        if self._stopping.is_set():
            raise Stopped
        return step()

    def _quick(self, trial: Trial, guarded: GuardedArguments, total: float = _SECONDS) -> Timing:
        dispatch = self._dispatch(trial, self._guards_of(trial, guarded))
        return quick(dispatch, total, self._stopping.is_set, wall=self.wall)

    def _guards_of(self, trial: Trial, guarded: GuardedArguments) -> GuardedArguments:
        """Return the copies for a configuration; new ones are made only if the launch depends on its constants."""
        if self._rebind is None or trial is self.baseline or not trial.launch:
            return guarded
        if self._own is None or self._own[0] != (trial.threadgroup, dict(trial.constants)):
            self._own = None  # free the old copies first
            self._own = (trial.threadgroup, dict(trial.constants)), GuardedArguments(self._rebind(trial))
        return self._own[1]

    def changes_nothing(self, trial: Trial) -> bool:
        """Return whether a configuration equals the baseline, which is measured only once and has no gain."""
        constants = self.call.kernel.program.constants
        same_constants = all(constants.get(name) == value for name, value in trial.constants.items())
        same_threadgroup = trim_grid(trial.threadgroup) == self.baseline.threadgroup
        return same_constants and same_threadgroup and trial.engine == self.baseline.engine

    def _as_baseline(self, trial: Trial) -> Trial:
        return replace(trial, timing=self.baseline.timing, error=self.baseline.error)

    def _measure_finalists(self, guarded: GuardedArguments) -> None:
        """Measure the best configurations again, alternating with the baseline: one lucky measurement must not win."""
        candidates = [t for t in self.trials if t.timing and not t.once and not self.changes_nothing(t)]
        shortest = min(map(_seconds, [*candidates, *([self.baseline] if self.baseline.timing else [])]), default=0.0)
        finalists = sorted((t for t in candidates if _seconds(t) < _NEAR_BEST * shortest), key=_seconds)[:_FINALISTS]
        times: dict[int, list[float]] = {}
        indices = [self.trials.index(t) for t in finalists]
        for _ in range(_ROUNDS):
            for index in (-1, *indices):
                trial = self.baseline if index < 0 else self.trials[index]
                if trial.timing:
                    times.setdefault(index, []).extend(self._quick(trial, guarded).seconds)
        for index, seconds in times.items():
            trial = self.baseline if index < 0 else self.trials[index]
            trial_again = replace(trial, timing=replace(trial.timing, seconds=tuple(seconds)))  # type: ignore[type-var]
            if index < 0:
                self.baseline = trial_again
            else:
                self.trials[index] = trial_again
        self.trials[:] = [self._as_baseline(t) if self.changes_nothing(t) else t for t in self.trials]
        self._duel(guarded)

    def _duel(self, guarded: GuardedArguments) -> None:
        """Measure the best configuration and the baseline alternately, for a confidence interval of the gain."""
        best, base = self.best, self.baseline
        if best is None or best is base or base.timing is None:
            return
        ratios: list[float] = []
        end = time.perf_counter() + _DUEL
        while len(ratios) < _MAX_TURNS and (len(ratios) < _MIN_TURNS or time.perf_counter() < end):
            pair = (best, base) if len(ratios) % 2 else (base, best)
            medians = {id(t): self._quick(t, guarded, _TURN).median for t in pair}
            ratios.append(medians[id(base)] / medians[id(best)])
        self.ratios = tuple(ratios)

    def _dispatch(self, trial: Trial, guarded: GuardedArguments) -> Any:
        return guarded.call.dispatch(guarded.values, threadgroup=trial.threadgroup, kernel=self.kernel(trial))

    def kernel(self, trial: Trial) -> Kernel:
        """Return the kernel compiled with a trial's constants, for its engine."""
        kernel = self.call.kernel.specialize(**trial.constants)
        return kernel if trial.engine in {"", kernel.engine.name} else kernel.on(trial.engine)

    # --- what was found --------------------------------------------------------------------------------------------

    @property
    def best(self) -> Trial | None:
        """The fastest configuration so far: `baseline`, unless another is faster by 2 %; None before any has run."""
        base = self.baseline
        fastest = min((t for t in self.trials if t.timing and not self.changes_nothing(t)), key=_seconds, default=None)
        if fastest is None or (base.timing and _seconds(base) < EVEN * _seconds(fastest)):
            return base if base.timing else None
        return fastest

    @property
    def failures(self) -> list[Trial]:
        """The configurations that failed."""
        return [t for t in self.trials if t.error]

    @property
    def gain(self) -> float | None:
        """The speedup of the best configuration over the baseline."""
        best, base = self.best, self.baseline.seconds
        if best is None or best.seconds is None or base is None:
            return None
        return float(np.median(self.ratios)) if self.ratios and best is not self.baseline else base / best.seconds

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of `gain` (see `metalnb.compare`); None before the best is known."""
        return median_interval(self.ratios) if self.ratios else None

    def apply(self, trial: Trial | None = None) -> Kernel:
        """Make the threadgroup of the best configuration, or of another one, the kernel's default.

        The threadgroup is kept on disk for the kernel's content, its constants and the device. A call without a
        threadgroup uses it for a grid with the same number of dimensions. `Kernel.keep_threadgroup` undoes this.

        Parameters
        ----------
        trial : Trial, optional
            An item of ``trials`` that ran; by default the best.

        Returns
        -------
        Kernel
            A kernel with the configuration's constants and engine; the kernel itself if both are unchanged.

        Raises
        ------
        LaunchError
            If no configuration has run, or the requested one has not.
        """
        best = trial or self.best
        if trial is not None and trial.timing is None:
            reason = f"was refused: {trial.error}" if trial.error else "has not run yet"
            raise LaunchError(f"tune: {self.call.kernel.signature.name}: this configuration {reason}")
        if best is None:
            name = self.call.kernel.signature.name
            reason = f": {self.failures[0].error}" if self.failures else " yet. Call run() or wait() first."
            raise LaunchError(f"tune: {name}: no configuration has run{reason}")
        kernel = self.kernel(best)
        x, y, z = (*best.threadgroup, 1, 1)[:3]
        kernel.keep_threadgroup(self.call.grid, (x, y, z))
        self.applied = kernel
        return kernel


def _results_by_name(reference: Any, call: BoundCall) -> Mapping[str, Any]:
    """Return the expected results by the names of the arrays that a kernel writes."""
    names = [p.param.name for p in call.parts if p.is_array and p.param.writable]
    if reference is None:
        return {}
    results: Mapping[str, Any] = {names[0] if len(names) == 1 else "": reference}
    if isinstance(reference, Mapping):
        results = reference
    if any(name not in names for name in results):
        writable = ", ".join(names) or "none"
        kernel = call.kernel.signature.name
        raise ArgumentError(f"tune: {kernel}: reference has a result for each of the arrays it writes: {writable}.")
    return results


def _seconds(trial: Trial) -> float:
    return trial.seconds or 0.0
