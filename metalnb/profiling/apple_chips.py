"""Apple's chips: the cores, the memory and the clock of their GPUs, with the source of each figure.

Apple states no clock. `powermetrics`, a part of macOS, lists the clock's states; each clock here is the highest state
in a list that an owner published, or an estimate: the same as that of a chip of the same generation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["CHIPS", "LANES_PER_CORE", "OTHER_SOURCES", "SOURCES", "AppleChip", "apple_chip", "nominal"]

LANES_PER_CORE = 128  # 32-bit floating-point operations that a core issues per cycle
_FMA = 2  # operations

# The source of a figure, by the field of `AppleChip`.
SOURCES = {
    "cores": "Apple's technical specifications of the Macs with the chip",
    "bandwidths": "Apple's technical specifications of the Macs with the chip",
    "clock": "the highest state that macOS's powermetrics lists, as owners published it: on GitHub, "
    "philipturner/applegpuinfo, issues 4 (M3 Max), 7 (M1 Pro) and 15 (M3, a MacBook Air); tlkh/asitop, issue 47 (M2); "
    "feedback-assistant/reports, issue 830 (M5 Max); logs of M2 Pro, M2 Max, M4 (a MacBook Air), M4 Pro and M4 Max; "
    "the other M1: philipturner/metal-benchmarks",
    "clock_of": "an estimate where it names a chip: that chip's clock, of the same generation",
    "threadgroup_memory": "Apple's Metal feature set tables, families Apple7 to Apple9",
    "simd_groups": "measured by others: github.com/philipturner/metal-benchmarks, families Apple7 and Apple8",
}
OTHER_SOURCES = {("Apple M1", "bandwidths"): "computed: 128 bits of LPDDR4X-4266, which Apple does not state"}


@dataclass(frozen=True, slots=True)
class AppleChip:
    """The known figures of a chip's GPU, without any measurement; see `SOURCES`.

    Attributes
    ----------
    cores : tuple of int
        The numbers of cores with which the chip is sold.
    bandwidths : tuple of float
        The memory bandwidths with which it is sold, in GB/s.
    clock : float
        The highest clock, in MHz.
    clock_of : str
        The chip whose clock this one is assumed to have; empty if its own is known.
    threadgroup_memory : int or None
        Bytes that a threadgroup may have; None if unknown.
    simd_groups : int or None
        The most SIMD-groups that a core holds at once, for a kernel with few registers; None if unknown.
    """

    cores: tuple[int, ...]
    bandwidths: tuple[float, ...]
    clock: float
    clock_of: str = ""
    threadgroup_memory: int | None = 32768
    simd_groups: int | None = None

    def __str__(self) -> str:
        """Return the figures as a line, with unknown ones marked."""
        groups = f"up to {self.simd_groups} SIMD-groups" if self.simd_groups else "unknown number of SIMD-groups"
        memory = "unknown" if self.threadgroup_memory is None else f"{self.threadgroup_memory >> 10} KiB"
        bandwidths = f"{_either(self.bandwidths)} GB/s"
        return f"{_either(self.cores)} cores, {groups} per core, {bandwidths}, threadgroup memory {memory}"

    @property
    def bandwidth(self) -> float:
        """The memory bandwidth in B/s; if the chip is sold with two kinds of memory, that of the faster one."""
        return max(self.bandwidths) * 1e9

    @property
    def flops(self) -> float:
        """Single-precision FLOP/s with the most cores, if each lane starts a fused multiply-add in every cycle."""
        return max(self.cores) * LANES_PER_CORE * _FMA * self.clock * 1e6


def _either(values: tuple[float, ...]) -> str:
    return " or ".join(f"{value:g}" for value in values)


_OCCUPANCY = 96  # 3072 threads per core in the families Apple7 and Apple8

CHIPS: dict[str, AppleChip] = {
    "Apple M1": AppleChip((7, 8), (68.25,), 1278, simd_groups=_OCCUPANCY),
    "Apple M1 Pro": AppleChip((14, 16), (200,), 1296, simd_groups=_OCCUPANCY),
    "Apple M1 Max": AppleChip((24, 32), (400,), 1296, simd_groups=_OCCUPANCY),
    "Apple M1 Ultra": AppleChip((48, 64), (800,), 1296, simd_groups=_OCCUPANCY),
    "Apple M2": AppleChip((8, 10), (100,), 1398, simd_groups=_OCCUPANCY),
    "Apple M2 Pro": AppleChip((16, 19), (200,), 1398, simd_groups=_OCCUPANCY),
    "Apple M2 Max": AppleChip((30, 38), (400,), 1398, simd_groups=_OCCUPANCY),
    "Apple M2 Ultra": AppleChip((60, 76), (800,), 1398, "M2 Max", simd_groups=_OCCUPANCY),
    "Apple M3": AppleChip((8, 10), (100,), 1338),
    "Apple M3 Pro": AppleChip((14, 18), (150,), 1380, "M3 Max"),
    "Apple M3 Max": AppleChip((30, 40), (300, 400), 1380),
    "Apple M3 Ultra": AppleChip((60, 80), (819,), 1380, "M3 Max"),
    "Apple M4": AppleChip((8, 10), (120,), 1470),
    "Apple M4 Pro": AppleChip((16, 20), (273,), 1578),
    "Apple M4 Max": AppleChip((32, 40), (410, 546), 1578),
    "Apple M5": AppleChip((8, 10), (153,), 1620, "M5 Max", None),
    "Apple M5 Pro": AppleChip((16, 20), (307,), 1620, "M5 Max", None),
    "Apple M5 Max": AppleChip((32, 40), (460, 614), 1620, threadgroup_memory=None),
}
_CHIP = re.compile(r"Apple M\d+(?: (?:Pro|Max|Ultra))?")


def apple_chip(device: str) -> AppleChip | None:
    """Return a chip's figures by its GPU's name; None if it is not in the table."""
    name = _CHIP.search(device)
    return CHIPS.get(name[0]) if name else None


def nominal(device: str) -> tuple[float, float] | None:
    """Return a chip's nominal B/s and FLOP/s by its name; None if it is not in the table.

    For a chip that is sold with two kinds of memory, these are the figures of the faster one.
    """
    chip = apple_chip(device)
    return None if chip is None else (chip.bandwidth, chip.flops)
