"""`tune`: sweep threadgroups and function constants, and keep the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..bound_call import BoundCall, bound_call
from ..live import Live
from .sweep import Sweep
from .sweep_view import sweep_html, sweep_text
from .trials import Trial, trials

__all__ = ["Tuner", "tune"]


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
    """Find the threadgroup and the function constants with which a kernel is fastest.

    Every threadgroup is tried with every combination of constants, on copies of the arrays and in the background. A
    configuration that fails is listed with its reason. So is one that writes past the end of an array, or that writes
    other results than the kernel as it is, because a kernel may rely on its threadgroup. The best three are measured
    again, alternating with the kernel as it is.

    Parameters
    ----------
    kernel : Kernel
    *args, **launch
        As for a call of the kernel.
    threadgroup : sequence of int or tuple of int, optional
        By default powers of two, from a SIMD-group up to the kernel's limit.
    constants : mapping of str to sequence, optional
        The values to try for each function constant. The others keep their values.
    check : bool, optional
        False accepts configurations with other results too: constants may be meant to change them.
    run : bool, optional
        True starts at once, in a background thread. False leaves it to `Tuner.run`, which returns when it is done.

    Returns
    -------
    Tuner
        With ``best`` and ``apply()``.

    Raises
    ------
    ArgumentError, LaunchError
        As for the call, before anything runs; for unknown constants, for values that do not fit them, and for an empty
        sweep.

    Examples
    --------
    >>> tuner = mnb.tune(blur, image, threadgroup=[(8, 8), (16, 16), (32, 8)])   # doctest: +SKIP
    >>> blur = tuner.wait().apply()                                              # doctest: +SKIP
    """
    call = bound_call("tune", kernel, args, launch)
    tuner = Tuner(call, trials(call, threadgroup, constants or {}), check=check)
    return tuner.start() if run else tuner


class Tuner(Sweep, Live):
    """A `Sweep` as a widget: a progress bar, a heat map of the configurations, and a button that applies the best."""

    def __init__(self, call: BoundCall, trials: list[Trial], *, check: bool) -> None:
        Sweep.__init__(self, call, trials, check=check)
        Live.__init__(self)

    def text(self) -> str:
        """Return the sweep in characters."""
        return sweep_text(self)

    def html(self) -> str:
        """Return the sweep as HTML."""
        return sweep_html(self)

    def _make(self) -> Any:
        from .sweep_buttons import SweepButtons

        self._controls = SweepButtons(self)
        return self._controls.box

    def _changed(self) -> None:
        if self._made is not None:
            self._controls.draw()

    def _ended(self) -> None:
        self._retake()

    def _replaced(self) -> None:
        self.stop()
