"""`tune`: sweep threadgroups and function constants, and keep the best."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from metalnb.call.kernel import Kernel
from metalnb.errors import LaunchError

from .guarded import Guarded
from .problem import Problem, problem
from .quick import quick, trimmed
from .show import Live
from .trials import Trial, trials
from .tune_page import EVEN, tune_html, tune_text
from .worker import spawn

__all__ = ["Tuner", "tune"]

_FINALISTS = 3  # measured again at the end, in turn with the kernel as it is
_NEAR = 1.5  # times the best: what is slower is not in question
_ROUNDS = 2


def tune(
    kernel: Any,
    /,
    *args: Any,
    threadgroup: Sequence[Any] | None = None,
    constants: Mapping[str, Sequence[Any]] | None = None,
    check: bool = True,
    run: bool = True,
    **launch: Any,
) -> Tuner:
    """Find the threadgroup, and the function constants, that a kernel is fastest with.

    Every threadgroup is tried with every combination of constants, on copies of the arrays, beside the notebook's own
    work. A configuration that fails is listed with its reason; so is one that writes past the end of an array, or other
    results than the kernel as it is, since a kernel may count on its threadgroup. The best three are measured again, in
    turn with the kernel as it is.

    Parameters
    ----------
    kernel : Kernel
    *args, **launch
        As for a call of the kernel.
    threadgroup : sequence of int or tuple of int, optional
        By default powers of two, from a SIMD-group up to what the kernel allows.
    constants : mapping of str to sequence, optional
        For each function constant the values to try. The others stay as they are.
    check : bool, optional
        False takes configurations with other results too: constants may be meant to change them.
    run : bool, optional
        True begins at once, in a thread of its own. False leaves it to `Tuner.run`, which returns when it is done.

    Returns
    -------
    Tuner
        With ``best`` and ``apply()``.

    Raises
    ------
    ArgumentError, LaunchError
        As for the call, before anything runs; for constants the cell does not have, values that do not fit them, and
        an empty sweep.

    Examples
    --------
    >>> tuner = mnb.tune(blur, image, threadgroup=[(8, 8), (16, 16), (32, 8)])   # doctest: +SKIP
    >>> blur = tuner.wait().apply()                                              # doctest: +SKIP
    """
    call = problem("tune", kernel, args, launch)
    tuner = Tuner(call, trials(call, threadgroup, constants or {}), check=check)
    return tuner.start() if run else tuner


class Tuner(Live):
    """A sweep.

    Attributes
    ----------
    trials : list of Trial
        All configurations, in the order in which they are tried.
    done : int
        How many have been tried.
    baseline : Trial
        The kernel as it is: with its own constants, in its default threadgroup.
    error : str
        What ended the sweep in its thread before its time, such as no memory for copies; empty when nothing did.
    """

    def __init__(self, call: Problem, trials: list[Trial], *, check: bool) -> None:
        super().__init__()
        self.call = call
        self.trials = trials
        self.done = 0
        self.check = check
        self.baseline = Trial(trimmed(call.dispatch().threadgroup))
        self.error = ""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._running = threading.Lock()

    # --- running ---------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether the sweep is under way."""
        return self._running.locked()

    def start(self) -> Self:
        """Begin, or go on after `stop`, in a thread of its own."""
        if self._stopping.is_set():
            self.wait()  # for the configuration that it was stopped in
        if self._thread is None or not self._thread.is_alive():
            self._stopping.clear()
            self._thread = spawn(self._sweep_apart, self.stop)
        return self

    def run(self) -> Self:
        """Do all of it now, and return when it is done."""
        self._stopping.clear()
        try:
            self._sweep()
        except KeyboardInterrupt:
            self.stop()
            raise
        return self

    def stop(self) -> Self:
        """End it after the configuration that is under way; what was tried stays, and `start` goes on."""
        self._stopping.set()
        return self

    def wait(self, timeout: float | None = None) -> Self:
        """Wait until it is done or stopped, at most ``timeout`` seconds."""
        if self._thread is not None:
            self._thread.join(timeout)
        return self

    def _replaced(self) -> None:
        self.stop()

    def _sweep_apart(self) -> None:
        """Sweep in a thread of its own, where nobody could catch what is raised: it is shown."""
        try:
            self._sweep()
        except Exception as error:  # noqa: BLE001
            self.error = f"{type(error).__name__}: {error}"
            self._draw()

    def _sweep(self) -> None:
        self.error = ""
        try:
            with self._running:
                self._draw()
                guarded = Guarded(self.call)
                expected = self._measure_baseline(guarded)
                while self.done < len(self.trials) and not self._stopping.is_set():
                    trial = self.trials[self.done]
                    known = self.changes_nothing(trial)
                    self.trials[self.done] = self._as_it_is(trial) if known else self._tried(trial, guarded, expected)
                    self.done += 1
                    self._draw()
                if self.done == len(self.trials):
                    self._settle(guarded)
        finally:
            self._draw()
            self._retake()

    def _measure_baseline(self, guarded: Guarded) -> dict[str, Any] | None:
        """Run the kernel as it is; give its results, or None when there is nothing to hold others against."""
        tried = self._tried(replace(self.baseline, timing=None, error=""), guarded, None)
        self.baseline = tried
        if tried.error or not self.check:
            return None
        guarded.reset()
        self._dispatch(tried, guarded).run()
        expected = guarded.results()
        guarded.overrun()
        return expected

    def _tried(self, trial: Trial, guarded: Guarded, expected: dict[str, Any] | None) -> Trial:
        try:
            guarded.reset()
            self._dispatch(trial, guarded).run()
            beyond = guarded.overrun()
            if beyond:
                return replace(trial, error=f"writes past the end of '{beyond}'")
            other = guarded.differing(expected) if expected is not None else ""
            if other:
                return replace(trial, error=f"gives other results in '{other}' (check=False takes them)")
            guarded.reset()
            return replace(trial, timing=quick(self._dispatch(trial, guarded)))
        except Exception as error:  # noqa: BLE001  (listed with the configuration; the sweep goes on)
            return replace(trial, error=f"{type(error).__name__}: {error}")

    def changes_nothing(self, trial: Trial) -> bool:
        """Tell whether a configuration is the kernel as it is: one that is measured once, and gains nothing."""
        own = self.call.kernel.program.constants
        same = all(own.get(name) == value for name, value in trial.constants.items())
        return same and trial.threadgroup == self.baseline.threadgroup

    def _as_it_is(self, trial: Trial) -> Trial:
        return replace(trial, timing=self.baseline.timing, error=self.baseline.error)

    def _settle(self, guarded: Guarded) -> None:
        """Measure the best ones again, in turn with the kernel as it is: who was lucky once is not the best."""
        ranked = sorted((t for t in self.trials if t.timing and not self.changes_nothing(t)), key=_seconds)[:_FINALISTS]
        ranked = [t for t in ranked if _seconds(t) < _NEAR * _seconds(ranked[0])]
        again: dict[int, list[float]] = {}
        places = [self.trials.index(t) for t in ranked]
        for _ in range(_ROUNDS):
            for place in (-1, *places):
                trial = self.baseline if place < 0 else self.trials[place]
                if trial.timing and not self._stopping.is_set():
                    again.setdefault(place, []).extend(quick(self._dispatch(trial, guarded)).seconds)
        for place, seconds in again.items():
            trial = self.baseline if place < 0 else self.trials[place]
            settled = replace(trial, timing=replace(trial.timing, seconds=tuple(seconds)))  # type: ignore[type-var]
            if place < 0:
                self.baseline = settled
            else:
                self.trials[place] = settled
        self.trials[:] = [self._as_it_is(t) if self.changes_nothing(t) else t for t in self.trials]

    def _dispatch(self, trial: Trial, guarded: Guarded) -> Any:
        kernel = self.kernel(trial)
        return self.call.dispatch(guarded.values, threadgroup=trial.threadgroup, kernel=kernel)

    def kernel(self, trial: Trial) -> Kernel:
        """Give the kernel compiled with a trial's constants."""
        return self.call.kernel.specialize(**trial.constants)

    # --- what was found --------------------------------------------------------------------------------------------

    @property
    def best(self) -> Trial | None:
        """The fastest configuration so far; None when none has run. `baseline` itself unless one is faster by 2 %."""
        base = self.baseline
        found = min((t for t in self.trials if t.timing and not self.changes_nothing(t)), key=_seconds, default=None)
        if found is None or (base.timing and _seconds(base) < EVEN * _seconds(found)):
            return base if base.timing else None
        return found

    @property
    def failures(self) -> list[Trial]:
        """The configurations that failed."""
        return [t for t in self.trials if t.error]

    @property
    def gain(self) -> float | None:
        """How many times faster the best is than the kernel as it is."""
        best, base = self.best, self.baseline.seconds
        return None if best is None or best.seconds is None or base is None else base / best.seconds

    def apply(self) -> Kernel:
        """Take the best threadgroup by default from now on.

        It is kept on disk for the kernel's content, its constants and the device, and taken for grids of as many
        dimensions when a call names no threadgroup. `Kernel.keep_threadgroup` takes it back.

        Returns
        -------
        Kernel
            With the best constants. Without constants it is the kernel itself.

        Raises
        ------
        LaunchError
            When no configuration has run.
        """
        best = self.best
        if best is None:
            name = self.call.kernel.signature.name
            why = f": {self.failures[0].error}" if self.failures else " yet. Call run() or wait() first."
            raise LaunchError(f"tune: {name}: no configuration has run{why}")
        kernel = self.kernel(best)
        x, y, z = (*best.threadgroup, 1, 1)[:3]
        kernel.keep_threadgroup(self.call.grid, (x, y, z))
        return kernel

    # --- showing ---------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """Give the sweep in characters."""
        return tune_text(self)

    def html(self) -> str:
        """Give the sweep as HTML."""
        return tune_html(self)

    def _make(self) -> Any:
        from .tune_controls import TuneControls

        self._controls = TuneControls(self)
        return self._controls.box

    def _draw(self) -> None:
        if self._made is not None:
            self._controls.draw()


def _seconds(trial: Trial) -> float:
    return trial.seconds or 0.0
