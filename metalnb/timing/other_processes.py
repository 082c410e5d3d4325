"""The processor time that other programs used while something was measured."""

from __future__ import annotations

import os
import time

__all__ = ["BUSY", "OtherProcesses"]

BUSY = 0.10  # of all processors' time: when others used more, the result says so


class OtherProcesses:
    """A measurement of the processors' load that starts when it is made."""

    def __init__(self) -> None:
        self._before = _cpu_seconds()

    def share(self) -> float:
        """Return the part of all processors' time that others used: programs, or other machines on this hardware.

        The system counts in ticks of 10 ms, so over a tenth of a second this is accurate to a tenth only. 0 when the
        system does not tell.
        """
        now = _cpu_seconds()
        if now is None or self._before is None:
            return 0.0
        total, idle, own = (after - before for after, before in zip(now, self._before, strict=True))
        return max(0.0, (total - idle - own) / total) if total > 0 else 0.0


def _cpu_seconds() -> tuple[float, float, float] | None:
    """Return seconds: of all processors together, of those idle, and of this process with its children."""
    import psutil

    try:
        cpu = psutil.cpu_times()._asdict()
    except (OSError, TypeError, ValueError):  # a sandbox may hide these figures, or make them up
        return None
    # Linux counts the time of guests in the user's too, and a processor that waits for a disk is idle.
    total = sum(cpu.values()) - cpu.get("guest", 0.0) - cpu.get("guest_nice", 0.0)
    children = os.times()
    own = time.process_time() + children.children_user + children.children_system
    return total, cpu["idle"] + cpu.get("iowait", 0.0), own
