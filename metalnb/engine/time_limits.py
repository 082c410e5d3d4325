"""Time limits for dispatches, enforced by engines that can stop one.

The limit in force when a dispatch starts applies to it, even if it is waited for only later.
"""

from __future__ import annotations

import sys
import threading
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

from metalnb.errors import ArgumentError, LaunchError

if TYPE_CHECKING:
    from .base import Engine
    from .unit import Unit

__all__ = ["LONG_RUN", "call_limit", "check_limit", "current_limit", "show_long_run", "timeout"]

LONG_RUN = 5.0  # seconds after which a notebook shows that a dispatch is still running

_default: list[float | None] = [None]
_thread_limit = threading.local()


class timeout:  # noqa: N801  (used like a function)
    """Limit the time of each checked dispatch; it is then stopped, and waiting for it raises a `KernelFault`.

    A kernel that is not checked, such as the library's, does not test the stop flag, and runs on.
    The limit applies from the call on, in all threads; used as a context manager, it applies to the block.

    Parameters
    ----------
    seconds : float or None
        None means no limit.

    Examples
    --------
    >>> import metalnb as mnb
    >>> with mnb.timeout(2.5):
    ...     pass
    """

    def __init__(self, seconds: float | None) -> None:
        given: Any = seconds
        if given is not None and not (isinstance(given, Real) and float(given) > 0):
            message = f"timeout: seconds must be more than 0, or None for no limit; got {seconds!r}."
            raise ValueError(message)
        self.seconds = seconds
        self._before = _default[0]
        _default[0] = seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _default[0] = self._before

    def __repr__(self) -> str:
        return f"timeout({self.seconds})"


def check_limit(unit: Unit, engine: Engine, seconds: Any) -> None:
    """Refuse a call's time limit that could not be enforced.

    Raises
    ------
    ArgumentError, LaunchError
    """
    name = unit.signature.name
    if not isinstance(seconds, Real) or not float(seconds) > 0:
        raise ArgumentError(f"{name}: timeout must be more than 0 seconds; got {seconds!r}.")
    if not engine.caps.stops:
        raise LaunchError(f"{name}: engine {engine.name!r} cannot stop a dispatch: leave timeout out.")
    if not unit.checked:
        message = (
            f"{name}: timeout only stops checked kernels, which test a stop flag: compile the cell "
            "without --unchecked, or with compile(…, checked=True)."
        )
        raise LaunchError(message)


class call_limit:  # noqa: N801
    """Set the limit of one call, in its thread; None keeps the current one."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._before = getattr(_thread_limit, "seconds", None)
        if self._seconds is not None:
            _thread_limit.seconds = self._seconds

    def __exit__(self, *_: object) -> None:
        _thread_limit.seconds = self._before


def current_limit() -> float | None:
    """Return the time limit in seconds of a dispatch started now; None for no limit."""
    limit: Any = getattr(_thread_limit, "seconds", None)
    return _default[0] if limit is None else limit


def show_long_run(name: str) -> None:
    """Show in a notebook that a dispatch is still running, and that the notebook does not hang."""
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None:
        print(f"{name}: still running, {LONG_RUN:.0f} s (interrupt the kernel to stop it)", file=sys.stderr)  # noqa: T201
