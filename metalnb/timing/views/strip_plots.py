"""Strip plots: the times of several kernels on one axis, a dot for each, as SVG in the page's colors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from metalnb.display import mix

__all__ = ["STRIPS", "StripScale"]

_WIDTH, _HEIGHT = 240, 18
_WIDE_RATIO = 5  # if the times differ by more than this factor, the axis is logarithmic

STRIPS = (
    # A replaced element whose max-width is a percentage can shrink where a table has less room.
    f".metalnb .metalnb-strip{{display:block;width:{_WIDTH}px;min-width:100px;max-width:100%;height:{_HEIGHT}px;"
    "overflow:visible}"
    ".metalnb .metalnb-strip circle{fill:var(--jp-brand-color1,#3b82c4);fill-opacity:.6}"
    ".metalnb .metalnb-strip .metalnb-middle{stroke:currentColor;stroke-width:1.5}"
    f".metalnb .metalnb-strip .metalnb-axis{{stroke:{mix(18)}}}"
    f".metalnb .metalnb-strip-ends{{display:flex;justify-content:space-between;gap:8px;max-width:{_WIDTH}px}}"
    ".metalnb .metalnb-strip-ends::before{content:attr(data-low)}"
    ".metalnb .metalnb-strip-ends::after{content:attr(data-high)}"
)


@dataclass(frozen=True, slots=True)
class StripScale:
    """The axis that several strips share.

    Attributes
    ----------
    ends : tuple of 2 float
        The times at its ends.
    is_logarithmic : bool
        Whether it is logarithmic.
    """

    ends: tuple[float, float]
    is_logarithmic: bool

    @classmethod
    def of(cls, series: Sequence[Sequence[float]]) -> Self:
        """Return the axis for series of positive times: from the least time to the largest 95th percentile."""
        shortest = min(map(min, series))
        longest = max(float(np.quantile(values, 0.95)) for values in series)
        return cls((shortest, max(longest, shortest * 1.01)), longest > _WIDE_RATIO * shortest)

    def position(self, value: float) -> float:
        """Return a time's position, from 0 to 1; times beyond an end are placed at it."""
        low, high = self.ends
        if self.is_logarithmic:
            value, low, high = (math.log(n) for n in (value, low, high))
        return min(1.0, max(0.0, (value - low) / (high - low)))

    def strip(self, values: Sequence[float]) -> str:
        """Draw a series: a dot for each time, each a little higher or lower than the one before it; and the median."""
        middle = _HEIGHT / 2
        dots = "".join(
            f'<circle cx="{100 * self.position(v):.1f}%" cy="{middle + 3.5 * (n % 3 - 1):.1f}" r="2.5"/>'
            for n, v in enumerate(values)
        )
        x = f"{100 * self.position(float(np.median(values))):.1f}%"
        rule = f'<line class="metalnb-middle" x1="{x}" x2="{x}" y1="1" y2="{_HEIGHT - 1}"/>'
        axis = f'<line class="metalnb-axis" x1="0" x2="100%" y1="{middle}" y2="{middle}"/>'
        label = f'width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="times of the rounds"'
        return f'<svg class="metalnb-strip" {label}>{axis}{dots}{rule}</svg>'
