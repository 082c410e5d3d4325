"""What other programs took of the processors while something was measured."""

from __future__ import annotations

import os
import time
from pathlib import Path

__all__ = ["Others"]

_STAT = Path("/proc/stat")  # its first line: all processors' ticks as user, nice, system, idle, iowait, irq, …
_IDLE = (3, 4)
_GUESTS = 8  # from here on the ticks are counted among the others already


class Others:
    """A watch on the processors, from its making on. It tells nothing where there is no ``/proc/stat``."""

    def __init__(self) -> None:
        self._before = _ticks()

    def share(self) -> float:
        """Give the part of all processors' time that went to others: programs, or other machines on this hardware.

        Ticks are 10 ms, so that over a tenth of a second it is known to a tenth only. 0 when it is not known.
        """
        now = _ticks()
        if now is None or self._before is None:
            return 0.0
        total, idle, own = (after - before for after, before in zip(now, self._before, strict=True))
        return max(0.0, (total - idle - own) / total) if total > 0 else 0.0


def _ticks() -> tuple[float, float, float] | None:
    """Give seconds: of all processors together, of those idle, and this process's with its children's."""
    try:
        words = _STAT.read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
        ticks = [int(w) / os.sysconf("SC_CLK_TCK") for w in words[:_GUESTS]]
        idle = sum(ticks[i] for i in _IDLE)
    except (OSError, ValueError, IndexError):
        return None
    children = os.times()
    return sum(ticks), idle, time.process_time() + children.children_user + children.children_system
