"""The processor time that other programs used during a measurement."""

from __future__ import annotations

import os
import time

__all__ = ["BUSY", "OtherProcesses"]

BUSY = 0.10  # fraction of all processors' time: if other programs used more, the result has a note


class OtherProcesses:
    """A measurement of the processors' load that starts when the object is created."""

    def __init__(self) -> None:
        self._before = _cpu_seconds()

    def share(self) -> float:
        """Return the fraction of all processors' time that other programs, or other machines on this hardware, used.

        The system counts in ticks of 10 ms, so over a tenth of a second the fraction is only accurate to a tenth. It is
        0 if the system does not report the time.
        """
        current = _cpu_seconds()
        if current is None or self._before is None:
            return 0.0
        total, idle, own_seconds = (after - before for after, before in zip(current, self._before, strict=True))
        return max(0.0, (total - idle - own_seconds) / total) if total > 0 else 0.0


def _cpu_seconds() -> tuple[float, float, float] | None:
    """Return the seconds of all processors, their idle seconds, and those of this process with its children."""
    import psutil

    try:
        cpu = psutil.cpu_times()._asdict()
    except (OSError, TypeError, ValueError):  # a sandbox may hide these figures, or make them up
        return None
    # Linux includes the time of guests in the user's, and a processor that waits for a disk is idle.
    total = sum(cpu.values()) - cpu.get("guest", 0.0) - cpu.get("guest_nice", 0.0)
    times = os.times()
    own_seconds = time.process_time() + times.children_user + times.children_system
    return total, cpu["idle"] + cpu.get("iowait", 0.0), own_seconds
