"""How long a dispatch may run: a limit for all that is started meanwhile, which an engine that can stop one keeps.

A dispatch has the limit that stood when it was started, so that one that nobody waits for at once has it, too.
"""

from __future__ import annotations

import threading
from typing import Any, Self

__all__ = ["call_limit", "current_limit", "timeout"]

_default: list[float | None] = [None]
_own = threading.local()


class timeout:  # noqa: N801  (a function to those who call it)
    """Let each dispatch run for so many seconds; after that it is stopped, and whoever waits gets a `KernelFault`.

    It holds from the call on, in all threads; as a context manager it holds for the block.

    Parameters
    ----------
    seconds : float or None
        None is no limit.

    Examples
    --------
    >>> import metalnb as mnb
    >>> with mnb.timeout(2.5):
    ...     pass
    """

    def __init__(self, seconds: float | None) -> None:
        if seconds is not None and not seconds > 0:
            message = f"timeout: seconds are more than 0, or None for no limit; got {seconds!r}."
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


class call_limit:  # noqa: N801
    """The limit of one call, in its thread; None leaves the one that stands."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._before = getattr(_own, "seconds", None)
        if self._seconds is not None:
            _own.seconds = self._seconds

    def __exit__(self, *_: object) -> None:
        _own.seconds = self._before


def current_limit() -> float | None:
    """Return the seconds that a dispatch started now may run; None for any."""
    own: Any = getattr(_own, "seconds", None)
    return _default[0] if own is None else own
