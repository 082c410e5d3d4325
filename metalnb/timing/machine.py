"""Facts about the machine that need no measurement: its name, its caches, and Apple's nominal figures."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from metalnb.engine.base import Engine

__all__ = ["CHIPS", "OTHER_SOURCES", "SOURCES", "AppleChip", "apple_chip", "last_cache", "machine_name", "nominal"]

# The source of a figure, by the field of `AppleChip`.
SOURCES = {
    "cores": "Apple's technical specifications of the Macs with the chip",
    "bandwidths": "Apple's technical specifications of the Macs with the chip",
    "teraflops": "computed: the most cores x 128 lanes x 2 operations of an fma x clock, which Apple does not state",
    "threadgroup_memory": "Apple's Metal feature set tables, families Apple7 to Apple9",
    "simd_groups": "measured by others: github.com/philipturner/metal-benchmarks, families Apple7 and Apple8",
}
OTHER_SOURCES = {("Apple M1", "bandwidths"): "computed: 128 bits of LPDDR4X-4266, which Apple does not state"}


@dataclass(frozen=True, slots=True)
class AppleChip:
    """A chip's GPU, as far as known without a measurement; see `SOURCES`.

    Attributes
    ----------
    cores : tuple of int
        The numbers of cores with which the chip is sold; empty if unknown.
    bandwidths : tuple of float
        GB/s to memory, likewise.
    teraflops : float
        Single-precision, for the chip with the most cores.
    threadgroup_memory : int or None
        Bytes that a threadgroup may have; None if unknown.
    simd_groups : int or None
        The most that a core holds at once, for a kernel with few registers; None if unknown.
    """

    cores: tuple[int, ...]
    bandwidths: tuple[float, ...]
    teraflops: float
    threadgroup_memory: int | None = 32768
    simd_groups: int | None = None

    def __str__(self) -> str:
        """Return the figures as a line, with unknown ones marked."""
        cores = f"{_either(self.cores)} cores" if self.cores else "cores unknown"
        groups = f"up to {self.simd_groups} SIMD-groups" if self.simd_groups else "SIMD-groups unknown"
        memory = "unknown" if self.threadgroup_memory is None else f"{self.threadgroup_memory >> 10} KiB"
        return f"{cores}, {groups} a core, {_either(self.bandwidths)} GB/s, threadgroup memory {memory}"


def _either(values: tuple[float, ...]) -> str:
    return " or ".join(f"{value:g}" for value in values)


_OCCUPANCY = 96  # 3072 threads of a core, of the families Apple7 and Apple8

CHIPS: dict[str, AppleChip] = {
    "Apple M1": AppleChip((7, 8), (68.25,), 2.6, simd_groups=_OCCUPANCY),
    "Apple M1 Pro": AppleChip((14, 16), (200,), 5.2, simd_groups=_OCCUPANCY),
    "Apple M1 Max": AppleChip((24, 32), (400,), 10.4, simd_groups=_OCCUPANCY),
    "Apple M1 Ultra": AppleChip((48, 64), (800,), 21, simd_groups=_OCCUPANCY),
    "Apple M2": AppleChip((8, 10), (100,), 3.6, simd_groups=_OCCUPANCY),
    "Apple M2 Pro": AppleChip((16, 19), (200,), 6.8, simd_groups=_OCCUPANCY),
    "Apple M2 Max": AppleChip((30, 38), (400,), 13.5, simd_groups=_OCCUPANCY),
    "Apple M2 Ultra": AppleChip((60, 76), (800,), 27.2, simd_groups=_OCCUPANCY),
    "Apple M3": AppleChip((8, 10), (100,), 4.1),
    "Apple M3 Pro": AppleChip((14, 18), (150,), 7.4),
    "Apple M3 Max": AppleChip((30, 40), (300, 400), 14.2),
    "Apple M3 Ultra": AppleChip((60, 80), (819,), 28.4),
    "Apple M4": AppleChip((8, 10), (120,), 4.6),
    "Apple M4 Pro": AppleChip((16, 20), (273,), 9.2),
    "Apple M4 Max": AppleChip((32, 40), (410, 546), 18.4),
    "Apple M5": AppleChip((), (153,), 5.7, None),
    "Apple M5 Pro": AppleChip((), (307,), 11.4, None),
    "Apple M5 Max": AppleChip((), (460, 614), 22.8, None),
    "Apple M5 Ultra": AppleChip((), (1200,), 45.6, None),
}
_CHIP = re.compile(r"Apple M\d+(?: (?:Pro|Max|Ultra))?")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def nominal(device: str) -> tuple[float, float] | None:
    """Return a chip's nominal B/s and FLOP/s by its name; None for one that is not in the table.

    For a chip that is sold with two kinds of memory, these are the figures of the faster one.
    """
    chip = apple_chip(device)
    return None if chip is None else (max(chip.bandwidths) * 1e9, chip.teraflops * 1e12)


def apple_chip(device: str) -> AppleChip | None:
    """Return a chip's figures by its GPU's name; None if it is not in the table."""
    match = _CHIP.search(device)
    return CHIPS.get(match[0]) if match else None


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
