"""Format numbers with their units: ``4.71 ms``, ``42.1 GB/s``, ``93 %``."""

from __future__ import annotations

import math

__all__ = ["percent", "rate", "seconds", "threads", "times", "trim_grid"]

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_RATES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def seconds(value: float) -> str:
    """Format a time with three digits and its unit."""
    size, unit = next((t for t in _TIMES if value >= 0.9995 * t[0]), _TIMES[-1])
    return f"{_digits(value / size)} {unit}"


def rate(value: float, unit: str) -> str:
    """Format a rate with three digits: ``rate(42.1e9, "B/s")`` is ``42.1 GB/s``."""
    size, prefix = next((r for r in _RATES if value >= 0.9995 * r[0]), _RATES[-1])
    return f"{_digits(value / size)} {prefix}{unit}"


def percent(part: float) -> str:
    """Format a fraction as a percentage; with one decimal near 0 and 100, to avoid "0 %" and "100 %"."""
    value = 100 * part
    if 99.5 <= value < 100:
        value = min(value, 99.9)
    return f"{value:.1f} %" if 0 < value < 9.95 or 99.5 <= value < 100 else f"{value:.0f} %"


def times(ratio: float) -> str:
    """Format a ratio with no more digits than can be measured: ``1.57 ×``, ``41,000 ×``."""
    if not math.isfinite(ratio) or ratio < 9.995:
        return f"{ratio:.2f} ×"
    if ratio < 99.95:
        return f"{ratio:.1f} ×"
    unit = 10 ** (math.floor(math.log10(ratio)) - 1)
    return f"{round(ratio / unit) * unit:,} ×"


def threads(grid: tuple[int, ...]) -> str:
    """Format a grid: ``1,920 × 1,080``."""
    return " × ".join(f"{n:,}" for n in grid)


def trim_grid(grid: tuple[int, ...]) -> tuple[int, ...]:
    """Return a grid without the extents of 1 at its end."""
    while len(grid) > 1 and grid[-1] == 1:
        grid = grid[:-1]
    return grid


def _digits(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(value * 1.0005)))}f}" if value < 999.5 else f"{value:,.0f}"
