"""Draw how a measured figure varies with a size, and its limits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import chain
from typing import Any

from ..errors import ArgumentError
from ..timing.units import rate, seconds
from .canvas import COLORS, INK, Picture, png

__all__ = ["curves"]

_LABELS = 12  # this many labels fit below the axis
_SIZE = (8.2, 3.5)  # inches
_UNITS = ("B", "KiB", "MiB", "GiB")
_NO_DECIMALS_FROM = 1000  # from here, numbers have no decimals
_FEW_DECADES = 2.5  # with fewer powers of ten, grid lines are also drawn between them


def curves(
    lines: Mapping[str, Mapping[float, float]],
    *,
    across: str,
    unit: str,
    limits: Mapping[str, float | Mapping[float, float]] | None = None,
    marks: Mapping[str, float] | None = None,
    sizes: bool = False,
) -> Picture:
    """Plot measured figures against the varied quantity; both axes are logarithmic.

    Parameters
    ----------
    lines : mapping of str to mapping of float to float
        The figure at each point of each line, by the line's name.
    across : str
        The name of the varied quantity.
    unit : str
        The unit of the figures: ``"s"``, ``"B/s"``, ``"FLOP/s"``.
    limits : mapping of str to float or mapping of float to float, optional
        Limits to compare the figures with, drawn dashed: one value, or values at two points or more.
    marks : mapping of str to float, optional
        Named positions on the horizontal axis.
    sizes : bool, optional
        True when the horizontal axis counts bytes.

    Returns
    -------
    Picture

    Raises
    ------
    ArgumentError
        If a line has no points, or if a number is not positive and finite.

    Examples
    --------
    >>> curves({"copy": {1: 2e-6, 1024: 3e-6}}, across="elements", unit="s", limits={"a launch": 2e-6})
    copy: 2.00 µs at 1, 3.00 µs at 1,024
    a launch: 2.00 µs
    """
    roofs, mark_positions = dict(limits or {}), dict(marks or {})
    _check_numbers(lines, roofs, mark_positions)
    figure, axes = _sheet(across, unit, sizes=sizes)
    positions = sorted({x for line in lines.values() for x in line})
    for number, (name, line) in enumerate(lines.items()):
        axes.plot(*zip(*sorted(line.items()), strict=True), "o-", color=_SHADES[number % len(_SHADES)], label=name,
                  linewidth=1.8, markersize=4)  # fmt: skip
    for style, (name, roof) in zip(_DASHES * len(roofs), roofs.items(), strict=False):
        points = roof if isinstance(roof, Mapping) else {positions[0]: roof, positions[-1]: roof}
        axes.plot(*zip(*sorted(points.items()), strict=True), color=INK, linestyle=style, linewidth=1.2, label=name)
    for name, position in mark_positions.items():
        axes.axvline(position, color=INK, linestyle=":", linewidth=1, alpha=0.8)
        transform = axes.get_xaxis_transform()
        axes.text(position, 1.0, name, color=INK, fontsize=8, ha="center", va="bottom", transform=transform)
    axes.set_xticks(positions[:: -(-len(positions) // _LABELS)])
    axes.yaxis.set_major_locator(_grid([*(y for line in lines.values() for y in line.values())]))
    axes.minorticks_off()
    if len(lines) + len(roofs) > 1:
        figure.legend(loc="outside upper center", ncols=3, frameon=False, labelcolor=INK, fontsize=9)
    return Picture(png(figure), "\n".join(_describe_curves(lines, roofs, mark_positions, unit, sizes=sizes)))


def _check_numbers(lines: Mapping[str, Any], roofs: Mapping[str, Any], marks: Mapping[str, float]) -> None:
    """Reject a line without points, and a number that a logarithmic axis cannot show."""
    series = [v.items() if isinstance(v, Mapping) else [(v, v)] for v in (*lines.values(), *roofs.values())]
    numbers = chain(marks.values(), *(point for points in series for point in points))
    if not lines or not all(series) or not all(0 < number < math.inf for number in numbers):
        raise ArgumentError(f"curves: needs points, with numbers above 0; got { {**lines, **roofs, **marks} }.")


_SHADES = (COLORS[4], COLORS[3], COLORS[0], COLORS[2], COLORS[1])
_DASHES = ("--", ":", "-.")


def _sheet(across: str, unit: str, *, sizes: bool) -> tuple[Any, Any]:
    """Return a figure with two logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel(across, color=INK, fontsize=9)
    axes.xaxis.set_major_formatter(lambda value, _: _position_text(value, sizes=sizes))
    axes.yaxis.set_major_formatter(lambda value, _: _figure(value, unit))
    axes.tick_params(which="both", colors=INK, length=0, labelsize=9)
    axes.grid(axis="y", which="major", color=INK, alpha=0.25)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    return figure, axes


def _grid(figures: list[float]) -> Any:
    """Place the grid lines at the powers of ten; if there are few, also at 2 and 5 times each power."""
    from matplotlib.ticker import LogLocator

    is_narrow = math.log10(max(figures) / min(figures)) < _FEW_DECADES
    return LogLocator(subs=(1.0, 2.0, 5.0) if is_narrow else (1.0,))


def _describe_curves(lines: Any, limits: Any, marks: Any, unit: str, *, sizes: bool) -> list[str]:
    """Describe the picture."""

    def series(points: Mapping[float, float]) -> str:
        return ", ".join(f"{_figure(y, unit)} at {_position_text(x, sizes=sizes)}" for x, y in sorted(points.items()))

    curves = {**lines, **limits}
    text = [f"{name}: {series(v) if isinstance(v, Mapping) else _figure(v, unit)}" for name, v in curves.items()]
    return text + [f"{name}: at {_position_text(x, sizes=sizes)}" for name, x in marks.items()]


def _figure(value: float, unit: str) -> str:
    return seconds(value) if unit == "s" else rate(value, unit)


def _position_text(value: float, *, sizes: bool) -> str:
    if sizes:
        power = min(max(0, int(math.log2(value))) // 10, len(_UNITS) - 1)
        return f"{value / 1024**power:,.4g} {_UNITS[power]}"
    return f"{value:,.0f}" if value >= _NO_DECIMALS_FROM else f"{value:.3g}"
