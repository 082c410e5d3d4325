"""Figures of GPUs that a profile is compared with, each with its source and whether the maker publishes it.

A figure that the maker does not publish was measured by third parties, or derived. Its `Figure.public` is False, and
results computed from it are marked.
"""

from __future__ import annotations

from dataclasses import dataclass

from metalnb.errors import ArgumentError

from .apple_chips import CHIPS, LANES_PER_CORE, OTHER_SOURCES, AppleChip
from .apple_chips import SOURCES as CHIP_SOURCES

__all__ = ["DEVICES", "DeviceFigures", "Figure", "device_of"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its source.

    Attributes
    ----------
    value : float
    source : str
    public : bool
        Whether the device's maker publishes it.
    """

    value: float
    source: str
    public: bool = True


@dataclass(frozen=True, slots=True)
class DeviceFigures:
    """A GPU.

    Attributes
    ----------
    name : str
    processors : Figure
        GPU cores, in Apple's words; streaming multiprocessors, in NVIDIA's.
    clock : Figure
        The clock, in Hz.
    lanes : Figure
        32-bit floating-point operations that a processor issues per cycle; a fused multiply-add is one.
    integers, specials : Figure
        The numbers of integer operations and special functions that it issues per cycle.
    bandwidth : Figure
        The memory bandwidth, in B/s.
    shared : Figure
        Bytes of threadgroup memory that a processor moves per cycle.
    lines : Figure
        Lines of 128 bytes of device memory that a processor's loads and stores can access per cycle.
    threads, registers, memory, groups : Figure
        A processor's limits: resident threads, registers of 32 bits, bytes of threadgroup memory, resident
        threadgroups.
    fixed : bool
        Whether registers and threadgroup memory are reserved for a threadgroup while it runs, unlike in Apple's
        family 9 ("Dynamic Caching").
    reserved : Figure
        Bytes of threadgroup memory that a processor reserves per threadgroup besides the kernel's own.
    """

    name: str
    processors: Figure
    clock: Figure
    lanes: Figure
    integers: Figure
    specials: Figure
    bandwidth: Figure
    shared: Figure
    lines: Figure
    threads: Figure
    registers: Figure
    memory: Figure
    groups: Figure
    fixed: bool = True
    reserved: Figure = Figure(0, "none is known")


_TURNER = "P. Turner, metal-benchmarks (measured)"
_LINES = Figure(1, "assumed: one line's tag a cycle", public=False)
_FEATURES = "Apple, Metal feature set tables: 32 KB for a threadgroup; that many fit, " + _TURNER
_GUIDE = "NVIDIA, CUDA C++ Programming Guide, compute capability "


def _apple(name: str, chip: AppleChip) -> DeviceFigures:
    """Return the figures of an Apple GPU; as far as is known, a core's rates have been the same since family 7."""
    clock = f"estimated: as of the {chip.clock_of}" if chip.clock_of else CHIP_SOURCES["clock"]
    return DeviceFigures(
        name=name.removeprefix("Apple "), processors=Figure(max(chip.cores), CHIP_SOURCES["cores"]),
        clock=Figure(chip.clock * 1e6, clock, public=False),
        lanes=Figure(LANES_PER_CORE, "Apple, M1 (128 execution units to a core); " + _TURNER),
        integers=Figure(128, _TURNER, public=False), specials=Figure(32, _TURNER, public=False),
        bandwidth=Figure(chip.bandwidth, OTHER_SOURCES.get((name, "bandwidths"), CHIP_SOURCES["bandwidths"])),
        shared=Figure(128, "assumed: 32 banks of 4 bytes, as NVIDIA's", public=False), lines=_LINES,
        threads=Figure(3072, _TURNER, public=False), registers=Figure(208 * 256, _TURNER, public=False),
        memory=Figure(60 << 10, _FEATURES, public=False),
        groups=Figure(32, "assumed: no limit is known", public=False), fixed=chip.simd_groups is not None,
    )  # fmt: skip


# For each compute capability: floating-point operations issued per cycle; then the threads, KB of threadgroup memory
# and threadgroups that a processor holds.
_CAPABILITIES = {
    "7.5": (64, 1024, 64, 16), "8.0": (64, 2048, 164, 32), "8.9": (128, 1536, 100, 24), "9.0": (128, 2048, 228, 32),
}  # fmt: skip


def _nvidia(name: str, processors: int, gigahertz: float, gigabytes: float, capability: str) -> DeviceFigures:
    sheet, guide = f"NVIDIA, {name}, data sheet or white paper", f"{_GUIDE}{capability}"
    lanes, threads, kilobytes, groups = _CAPABILITIES[capability]
    return DeviceFigures(
        name=f"NVIDIA {name}", processors=Figure(processors, sheet), clock=Figure(gigahertz * 1e9, sheet),
        lanes=Figure(lanes, guide), integers=Figure(64, guide), specials=Figure(16, guide),
        bandwidth=Figure(gigabytes * 1e9, sheet), shared=Figure(128, f"{guide}: 32 banks of 4 bytes"), lines=_LINES,
        threads=Figure(threads, guide), registers=Figure(65536, guide), memory=Figure(kilobytes << 10, guide),
        groups=Figure(groups, guide),
        reserved=Figure(1024 if capability >= "8.0" else 0, f"{guide}: the system's, for each block"),
    )  # fmt: skip


DEVICES = {
    device.name: device
    for device in (
        *(_apple(name, chip) for name, chip in CHIPS.items()),
        _nvidia("T4", 40, 1.59, 320, "7.5"),
        _nvidia("A100 SXM 80 GB", 108, 1.41, 2039, "8.0"),
        _nvidia("RTX 4090", 128, 2.52, 1008, "8.9"),
        _nvidia("H100 SXM", 132, 1.83, 3350, "9.0"),
    )
}


def device_of(name: str) -> DeviceFigures:
    """Return a device by name.

    Raises
    ------
    ArgumentError
        If no device has this name; the message lists the known ones.
    """
    device = DEVICES.get(name) or DEVICES.get(f"NVIDIA {name}")
    if device is None:
        raise ArgumentError(f"profile: no figures for the device {name!r}. The known devices are {', '.join(DEVICES)}.")
    return device
