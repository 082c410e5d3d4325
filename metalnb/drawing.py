"""Pictures for notebooks: the rounds of a tree, who reads what when, and how fast each version of a kernel was.

They are transparent PNGs in colours that hold on a light page and on a dark one, so that they show wherever a notebook
does. Each has a twin in words.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import ArgumentError
from .timing.units import percent, rate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Picture", "ladder", "reads", "tree"]

_INK = "#808488"  # a grey between the colours of both pages
_COLOURS = ("#0d9488", "#7c3aed", "#db2777", "#d97706", "#2563eb", "#65a30d", "#dc2626", "#0891b2")
_CELL = 0.82  # of the room for it
_INCHES = 0.36  # for a cell
_DPI = 110
_MOST = 64  # cells in a row that can still be told apart


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing with its twin in words.

    Attributes
    ----------
    png : bytes
    text : str
    """

    png: bytes
    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, Any]:
        return {"text/plain": self.text, "image/png": self.png}


def tree(size: int, rounds: Iterable[Iterable[tuple[int, int]]], *, simd: int = 4) -> Picture:
    """Draw the rounds in which threads add elements of an array to their own.

    Parameters
    ----------
    size : int
        Elements, and threads: thread t owns element t.
    rounds : iterable of iterables of (int, int)
        For each round the pairs (t, s): thread t adds element s to element t.
    simd : int, optional
        Threads to a SIMD-group, which share a colour; small, so that the picture is.

    Returns
    -------
    Picture

    Raises
    ------
    ArgumentError
        For an element outside the array, or too many to draw.

    Examples
    --------
    >>> tree(4, [[(0, 2), (1, 3)], [(0, 1)]], simd=2)
    round 1: threads 0 1 work, in 1 of 2 SIMD-groups
    round 2: threads 0 work, in 1 of 2 SIMD-groups
    """
    done = [list(pairs) for pairs in rounds]
    _within("tree", size, [place for pairs in done for pair in pairs for place in pair])
    groups = -(-size // simd)
    text, colours = [], np.full((len(done) + 1, size), "", dtype=object)
    colours[0] = [_colour(t // simd) for t in range(size)]
    for number, pairs in enumerate(done, 1):
        threads = sorted(t for t, _ in pairs)
        colours[number, threads] = [_colour(t // simd) for t in threads]
        awake = len({t // simd for t in threads})
        text.append(f"round {number}: threads {' '.join(map(str, threads))} work, in {awake} of {groups} SIMD-groups")
    figure, axes = _sheet(["before", *(f"round {n}" for n in range(1, len(done) + 1))], size, pitch=1.6)
    for row, pairs in enumerate(done):
        for target, source in pairs:
            for place in (target, source):
                axes.plot((place, target), (1.6 * row + 0.42, 1.6 * (row + 1) - 0.42), color=_INK, linewidth=1)
    labels = np.where(colours != "", np.arange(size).astype(str), "")
    _cells(axes, colours, labels, pitch=1.6)
    return Picture(_png(figure), "\n".join(text))


def reads(places: ArrayLike, *, size: int | None = None) -> Picture:
    """Draw which element of an array each thread reads in each step: one row a step, one colour a thread.

    Parameters
    ----------
    places : array_like of int, shape (T, S)
        The element that thread t reads in step s.
    size : int, optional
        Elements of the array; by default up to the last one that is read.

    Returns
    -------
    Picture

    Raises
    ------
    ArgumentError
        For an element outside the array, too many to draw, or another shape.

    Examples
    --------
    >>> reads([[0, 2], [1, 3]])
    step 1: threads 0 to 1 read elements 0 1
    step 2: threads 0 to 1 read elements 2 3
    """
    table = np.asarray(places)
    if table.ndim != 2 or not table.size or table.dtype.kind not in "iu":
        message = f"reads: places are whole numbers of shape (threads, steps); got {table.dtype}, shape {table.shape}."
        raise ArgumentError(message)
    threads, steps = table.shape
    count = int(table.max()) + 1 if size is None else size
    _within("reads", count, table.ravel().tolist())
    colours = np.full((steps, count), "", dtype=object)
    labels = np.full((steps, count), "", dtype=object)
    for step, row in enumerate(table.T):
        colours[step, row] = [_colour(t) for t in range(threads)]
        labels[step, row] = [str(t) for t in range(threads)]
    figure, axes = _sheet([f"step {s}" for s in range(1, steps + 1)], count, pitch=1)
    _cells(axes, colours, labels, pitch=1)
    told = [f"step {s}: threads 0 to {threads - 1} read elements {_words(row)}" for s, row in enumerate(table.T, 1)]
    return Picture(_png(figure), "\n".join(told))


def ladder(rates: Mapping[str, float], limit: float) -> Picture:
    """Draw how fast each version of a kernel was, against the limit; the newest stands out.

    Parameters
    ----------
    rates : mapping of str to float
        B/s by name, in the order of the steps.
    limit : float
        B/s.

    Returns
    -------
    Picture

    Raises
    ------
    ArgumentError
        Without a rate; for a rate or a limit that is not above 0.

    Examples
    --------
    >>> ladder({"one thread": 5e9, "all threads": 30e9}, 40e9)
    one thread   5 GB/s, 12 % of the limit
    all threads  30 GB/s, 75 % of the limit
    """
    if not rates or min(limit, *rates.values()) <= 0:
        raise ArgumentError(f"ladder: needs rates above 0 and a limit above 0; got {dict(rates)}, {limit}.")
    from matplotlib.figure import Figure

    told = {name: f"{rate(value, 'B/s')}, {percent(value / limit)} of the limit" for name, value in rates.items()}
    low, right = min(*rates.values(), limit) / 3, 1.2 * max(*rates.values(), limit)
    figure = Figure(figsize=(8.2, 0.5 + _INCHES * len(rates)), layout="constrained")
    axes = figure.subplots()
    for place, (name, value) in enumerate(rates.items()):
        newest = place == len(rates) - 1
        axes.barh(place, value - low, left=low, height=0.62, color=_COLOURS[3] if newest else _COLOURS[4])
        axes.text(right, place, told[name].removesuffix(" of the limit"), color=_INK, va="center", fontsize=9)
    axes.axvline(limit, color=_INK, linestyle="--", linewidth=1)
    axes.set(xscale="log", xlim=(low, right * 6), ylim=(len(rates) - 0.4, -0.6), yticks=range(len(rates)))
    axes.set_yticklabels(list(rates), color=_INK, fontsize=9)
    axes.set_xlabel(f"a grid line is ten times the one before; dashed: {rate(limit, 'B/s')}, the limit")
    axes.xaxis.label.set(color=_INK, fontsize=9)
    axes.xaxis.set_major_formatter(lambda value, _place: rate(value, "B/s"))
    axes.tick_params(which="both", colors=_INK, length=0, labelsize=9)
    axes.grid(axis="x", which="major", color=_INK, alpha=0.25)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    width = max(map(len, told))
    return Picture(_png(figure), "\n".join(f"{name:{width}}  {value}" for name, value in told.items()))


def _words(row: Any) -> str:
    return " ".join(str(int(place)) for place in row)


def _within(asks: str, size: int, places: Sequence[int]) -> None:
    if not 1 <= size <= _MOST:
        raise ArgumentError(f"{asks}: draws 1 to {_MOST} elements; got {size}. Draw fewer: the pattern is the same.")
    if wrong := [place for place in places if not 0 <= place < size]:
        raise ArgumentError(f"{asks}: element {wrong[0]} is outside the array of {size}.")


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _sheet(rows: list[str], columns: int, pitch: float) -> tuple[Any, Any]:
    """Make a figure with one named row below the other; columns lie at 0, 1, 2 and so on."""
    from matplotlib.figure import Figure

    height = pitch * (len(rows) - 1) + 1
    figure = Figure(figsize=(_INCHES * (columns + 2.2), _INCHES * height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-2.6, columns - 0.4), ylim=(height - 0.5, -0.5))
    axes.axis("off")
    for number, name in enumerate(rows):
        axes.text(-0.75, pitch * number, name, color=_INK, ha="right", va="center", fontsize=9)
    return figure, axes


def _cells(axes: Any, colours: Any, labels: Any, pitch: float) -> None:
    """Draw a box for each element of each row; one without a colour is empty."""
    from matplotlib.patches import FancyBboxPatch

    for (row, column), colour in np.ndenumerate(colours):
        corner = (column - _CELL / 2 + 0.08, pitch * row - _CELL / 2 + 0.08)
        box = FancyBboxPatch(
            corner, _CELL - 0.16, _CELL - 0.16, boxstyle="round,pad=0.08,rounding_size=0.12",
            facecolor=colour or "none", edgecolor=colour or _INK, linewidth=0.8, alpha=1 if colour else 0.45,
        )  # fmt: skip
        axes.add_patch(box)
        axes.text(
            column, pitch * row, labels[row, column], color="white", ha="center", va="center_baseline", fontsize=8
        )


def _png(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=_DPI, transparent=True)
    return file.getvalue()
