"""What is known of the machine without running anything: its name, its caches, and Apple's nominal figures."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from metalnb.engine.base import Engine

__all__ = ["CHIPS", "last_cache", "machine_name", "nominal"]

# Chip -> memory bandwidth in GB/s, single-precision TFLOP/s. The bandwidths are from Apple's specifications. These say
# little about arithmetic, so its figures are the commonly computed ones (cores × lanes × 2 × clock). Where a chip is
# sold with two kinds of memory, both bandwidths are listed.
CHIPS: dict[str, tuple[tuple[float, ...], float]] = {
    "Apple M1": ((68.25,), 2.6),
    "Apple M1 Pro": ((200,), 5.2),
    "Apple M1 Max": ((400,), 10.4),
    "Apple M1 Ultra": ((800,), 21),
    "Apple M2": ((100,), 3.6),
    "Apple M2 Pro": ((200,), 6.8),
    "Apple M2 Max": ((400,), 13.5),
    "Apple M2 Ultra": ((800,), 27.2),
    "Apple M3": ((100,), 4.1),
    "Apple M3 Pro": ((150,), 7.4),
    "Apple M3 Max": ((300, 400), 14.2),
    "Apple M3 Ultra": ((819,), 28.4),
    "Apple M4": ((120,), 4.6),
    "Apple M4 Pro": ((273,), 9.2),
    "Apple M4 Max": ((410, 546), 18.4),
    "Apple M5": ((153,), 5.7),
    "Apple M5 Pro": ((307,), 11.4),
    "Apple M5 Max": ((460, 614), 22.8),
    "Apple M5 Ultra": ((1200,), 45.6),
}
_CHIP = re.compile(r"Apple M\d+(?: (?:Pro|Max|Ultra))?")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def nominal(device: str) -> tuple[float, float] | None:
    """Return a chip's nominal B/s and FLOP/s by its name; None for one that is not in the table.

    For a chip that is sold with two kinds of memory this is the faster one.
    """
    found = _CHIP.search(device)
    row = CHIPS.get(found[0]) if found else None
    return None if row is None else (max(row[0]) * 1e9, row[1] * 1e12)


def last_cache(engine: Engine) -> int | None:
    """Return the bytes of the device's last-level cache; None when unknown."""
    if engine.name not in {"cpu", "native"}:
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
