"""Draw how fast each version of a kernel was."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor, inf, log10

from ..errors import ArgumentError
from ..timing.units import percent, rate
from .canvas import COLORS, INCHES, INK, Picture, png

__all__ = ["ladder"]


def ladder(rates: Mapping[str, float], limit: float, *, unit: str = "B/s", best: bool = False) -> Picture:
    """Draw the rate of each version of a kernel, with the limit; the newest or the best version is highlighted.

    Parameters
    ----------
    rates : mapping of str to float
        The rate of each version by its name, in the order of the versions.
    limit : float
        The limit, in the same unit as the rates.
    unit : str, optional
        ``"FLOP/s"`` for kernels that compute.
    best : bool, optional
        True highlights the fastest version, for alternatives that do not build on each other.

    Returns
    -------
    Picture

    Raises
    ------
    ArgumentError
        If there is no rate, or if a rate or the limit is not positive and finite.

    Examples
    --------
    >>> ladder({"one thread": 5e9, "all threads": 30e9}, 40e9)
    one thread   5.00 GB/s, 12 % of the limit
    all threads  30.0 GB/s, 75 % of the limit
    """
    if not rates or not all(0 < value < inf for value in (limit, *rates.values())):
        raise ArgumentError(f"ladder: needs rates above 0 and a limit above 0; got {dict(rates)}, {limit}.")
    from matplotlib.figure import Figure

    labels = {name: f"{rate(value, unit)}, {percent(value / limit)} of the limit" for name, value in rates.items()}
    left_end, right_end = min(*rates.values(), limit) / 3, 1.2 * max(*rates.values(), limit)
    highlighted = max(rates, key=rates.__getitem__) if best else list(rates)[-1]
    figure = Figure(figsize=(8.2, 0.5 + INCHES * len(rates)), layout="constrained")
    axes = figure.subplots()
    for row, (name, value) in enumerate(rates.items()):
        axes.barh(row, value - left_end, left=left_end, height=0.62, color=COLORS[3 if name == highlighted else 4])
        axes.text(right_end, row, labels[name].removesuffix(" of the limit"), color=INK, va="center", fontsize=9)
    axes.axvline(limit, color=INK, linestyle="--", linewidth=1)
    axes.set(xscale="log", xlim=(left_end, right_end * 6), ylim=(len(rates) - 0.4, -0.6), yticks=range(len(rates)))
    axes.set_yticklabels(list(rates), color=INK, fontsize=9)
    axes.set_xlabel(f"a grid line is ten times the one before; dashed: {rate(limit, unit)}, the limit")
    axes.xaxis.label.set(color=INK, fontsize=9)
    exponents = range(floor(log10(left_end)) + 1, ceil(log10(right_end)))  # none beyond the figures
    axes.set_xticks([10.0**e for e in exponents])
    axes.xaxis.set_major_formatter(lambda value, _position: rate(value, unit))
    axes.tick_params(which="both", colors=INK, length=0, labelsize=9)
    axes.grid(axis="x", which="major", color=INK, alpha=0.25)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    width = max(map(len, labels))
    return Picture(png(figure), "\n".join(f"{name:{width}}  {value}" for name, value in labels.items()))
