"""`tune`: sweep threadgroups and function constants, and keep the best."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from metalnb import engine as engine_package
from metalnb.call.struct_pointers import arrays_of
from metalnb.errors import ArgumentError, EngineUnavailable, LaunchError

from ..bound_call import BoundCall, bound_call, check_kernel
from ..live_widget import Live
from .sweep import Sweep
from .sweep_view import sweep_html, sweep_text
from .trials import Trial, failure, resolve, trials

__all__ = ["Tuner", "tune"]


def tune(
    kernel: Any,
    /,
    *args: Any,
    threadgroup: Sequence[Any] | Callable[..., Any] | None = None,
    constants: Mapping[str, Sequence[Any]] | None = None,
    engines: Sequence[str] | None = None,
    check: bool = True,
    reference: Any = None,
    run: bool = True,
    **launch: Any,
) -> Tuner:
    """Find the fastest threadgroup, function constants and engine for a kernel.

    Every threadgroup is tried with every combination of constants, on copies of the arrays and in the background; then
    on every other available engine. An engine is abandoned if each of its first three configurations takes ten times
    the best time. A rejected configuration is a row with its reason, and the sweep continues. A configuration is also
    rejected if it writes past the end of an array, or if its results differ from those of the unchanged kernel, because
    a kernel may rely on its threadgroup. A configuration whose first run takes ten times as long as the best is not
    measured further; by default, configurations of about 256 threads are tried first. The best three are measured
    again, alternating with the unchanged kernel.

    Parameters
    ----------
    kernel : Kernel
    *args, **launch
        As for a call of the kernel. With ``groups`` the number of threadgroups stays the same whatever their size, with
        ``grid`` the number of threads. ``grid``, ``groups``, ``shapes`` and ``threadgroup_memory`` may be functions of
        the constants: ``grid=lambda TILE: (n // TILE, n)``. Such a function has a parameter for each constant that it
        uses.
    threadgroup : sequence of int or tuple of int, or callable, optional
        By default powers of two, from a SIMD-group up to the kernel's limit. A function of the constants returns the
        threadgroup of each combination.
    constants : mapping of str to sequence, optional
        The values to try for each function constant. The other constants keep their values.
    engines : sequence of str, optional
        The engines to try, like ``["cuda", "cpu"]``. By default the kernel's own engine, then the other engines that
        can run here; if an argument is an engine's array, only that engine. Times are device times and exclude copies.
    check : bool, optional
        Whether to reject configurations with different results; False if constants are meant to change them.
    reference : array or mapping of str to array, optional
        The expected results, by the names of the arrays that the kernel writes; one array if it writes one. By default
        the results of the unchanged kernel, which must then be correct. This is the only check of results whose shape
        depends on the constants.
    run : bool, optional
        Whether to start at once, in a background thread. With False, `Tuner.run` starts it and returns when it is done.

    Returns
    -------
    Tuner
        The sweep, with ``best`` and ``apply()``.

    Raises
    ------
    ArgumentError, LaunchError
        As for the call, before anything runs; also if a constant is unknown, a value does not fit its constant, or the
        sweep is empty.

    Examples
    --------
    >>> tuner = mnb.tune(blur, image, threadgroup=[(8, 8), (16, 16), (32, 8)])   # doctest: +SKIP
    >>> blur = tuner.wait().apply()                                              # doctest: +SKIP
    >>> mnb.tune(product, a, b, n, constants={"ROWS": [1, 2, 4]}, threadgroup=[(32, 8)],
    ...          grid=lambda ROWS: (n, n // ROWS), reference=a @ b)              # doctest: +SKIP
    """
    check_kernel("tune", kernel)
    changing = {name: value for name, value in launch.items() if callable(value)}
    fixed = {name: resolve(kernel, {}, value) for name, value in launch.items()}
    if callable(threadgroup):
        fixed["threadgroup"] = resolve(kernel, {}, threadgroup)
    call = _bind(kernel, args, fixed)

    def launch_of(trial: Trial) -> Trial:
        try:
            return replace(trial, launch={name: resolve(kernel, trial.constants, v) for name, v in changing.items()})
        except Exception as error:  # noqa: BLE001  (the author's own function, of these constants)
            return replace(trial, error=trial.error or failure(error))

    names = _engines(kernel, engines, has_residents=any(True for _ in arrays_of([*args, *fixed.values()])))
    configurations = [launch_of(trial) for trial in trials(call, threadgroup, constants or {}, names)]

    def rebind(trial: Trial) -> BoundCall:
        arguments = {**fixed, **trial.launch, "threadgroup": trial.threadgroup}
        return bound_call("tune", kernel.specialize(**trial.constants), args, arguments)

    tuner = Tuner(
        call, configurations, check=check, reference=reference, rebind=rebind if changing else None,
        usual_first=threadgroup is None,
    )  # fmt: skip
    return tuner.start() if run else tuner


class Tuner(Sweep, Live):
    """A `Sweep` as a widget: a progress bar, a heat map of the configurations, and a button that applies the best.

    A click on a cell of the heat map applies that configuration.

    Attributes
    ----------
    applied : Kernel or None
        The kernel whose default `apply`, the button or a click has changed, with its constants.
    """

    def __init__(
        self, call: BoundCall, trials: list[Trial], *, check: bool, reference: Any = None,
        rebind: Callable[[Trial], BoundCall] | None = None, usual_first: bool = False,
    ) -> None:  # fmt: skip
        Sweep.__init__(
            self, call, trials, check=check, reference=reference, rebind=rebind, usual_first=usual_first,
        )  # fmt: skip
        Live.__init__(self)

    def text(self) -> str:
        """Return the sweep in characters."""
        return sweep_text(self)

    def html(self) -> str:
        """Return the sweep as HTML."""
        return sweep_html(self)

    def _create_box(self) -> Any:
        from .sweep_buttons import SweepButtons

        self._controls = SweepButtons(self, self._on_leave)
        self._events = self._controls.events
        return self._controls.box

    def _on_change(self) -> None:
        if self._box is not None:
            self._controls.draw()

    def _on_end(self) -> None:
        self._stale = True
        self._update_if_idle()  # now: a notebook that is executed without a page may be saved next

    def _on_replaced(self) -> None:
        self.stop()


def _bind(kernel: Any, args: tuple[Any, ...], launch: dict[str, Any]) -> BoundCall:
    """Bind the call; if the default threadgroup does not fit the kernel's arrays, use a threadgroup that does."""
    try:
        return bound_call("tune", kernel, args, launch)
    except LaunchError:
        if launch.get("threadgroup") is not None or not kernel.signature.own_elements:
            raise
        for threads in (128, 64, 32, 16, 8, 4, 2):
            with contextlib.suppress(LaunchError):
                return bound_call("tune", kernel, args, {**launch, "threadgroup": threads})
        raise


def _engines(kernel: Any, requested: Sequence[str] | None, *, has_residents: bool) -> list[str]:
    """Return the names of the engines to try, the kernel's own first; if that is the only one, return an empty name."""
    kernel_engine = kernel.engine.name
    if requested is not None:
        if isinstance(requested, str) or not requested:
            raise ArgumentError(f'tune: engines is a list of names, like ["cuda", "cpu"]; got {requested!r}.')
        names = list(dict.fromkeys(engine_package.named(name).name for name in requested))
        if has_residents and names != [kernel_engine]:
            message = f"tune: the arrays are in the memory of {kernel_engine!r}. Pass NumPy arrays for others."
            raise ArgumentError(message)
    elif has_residents:
        names = [kernel_engine]
    else:
        base = kernel_engine.partition(":")[0]
        names = [kernel_engine, *(n for n in engine_package.REGISTRY if ":" not in n and n != base and _answers(n))]
    names.sort(key=lambda name: name != kernel_engine)
    return names if names != [kernel_engine] else [""]


def _answers(name: str) -> bool:
    try:
        engine_package.named(name)
    except EngineUnavailable:
        return False
    return True
