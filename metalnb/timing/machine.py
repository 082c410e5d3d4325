"""Read facts about the machine that need no measurement: its name and its caches."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from metalnb.engine.base import Engine

__all__ = ["last_cache", "machine_name"]

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def last_cache(engine: Engine) -> int | None:
    """Return the bytes of the device's last-level cache; None if unknown."""
    if engine.name != "cpu":
        return engine.caps.last_cache or None  # an Apple GPU does not report its system-level cache
    files = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    try:
        sizes = [path.read_text(encoding="ascii").strip() for path in files]
    except OSError:
        return None
    return max((int(t[:-1]) * _UNITS[t[-1]] for t in sizes if t[-1:] in _UNITS), default=None)


def machine_name() -> str:
    """Return the machine's name: its processor, the number of cores, its system."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text(encoding="utf-8", errors="replace").splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"
