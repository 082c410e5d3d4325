"""The results of measurements: immutable records of plain values that can be written as JSON.

The units are seconds, bytes, bytes per second and operations per second throughout; no field is scaled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from metalnb.rendering import Rendered, render

__all__ = ["Timing", "Traffic"]


@dataclass(frozen=True, slots=True)
class Traffic:
    """The minimum that a dispatch must move and compute.

    Attributes
    ----------
    read, written : int
        Bytes: each input read once, each output written once. A buffer that is updated counts in both.
    updated : int
        The written bytes that were read before.
    flops : float or None
        Floating-point operations; None if they were not counted.
    notes : tuple of str
        Unknown quantities, and how they were counted instead; shown beside the figures.
    """

    read: int
    written: int
    updated: int = 0
    flops: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes read and written together."""
        return self.read + self.written


@dataclass(frozen=True, slots=True, repr=False)
class Timing(Rendered):
    """The measured times of a kernel, and the limits that they are compared with.

    Attributes
    ----------
    kernel, engine, device : str
    clock : {"device", "wall"}
        The clock of `seconds`: the device's own, from a dispatch's start to its end; or the wall clock, which includes
        the cost of launching if the kernel is shorter than that.
    seconds : tuple of float
        The time of one dispatch, one value per batch.
    batch : int
        Back-to-back dispatches in a batch.
    empty : float
        Seconds to launch an empty dispatch and wait for it (wall clock): the least time of any call.
    cold : float or None
        Seconds of a dispatch whose arrays are not in the caches; `seconds` are warm.
    bytes : int or None
        Bytes that must move: each input read once, each output written once.
    flops : float or None
        Floating-point operations.
    limit : float or None
        B/s that this engine reached with the same mix of reads and writes (see `Limits`).
    ceiling : str
        The name of that limit: "read", "copy", "triad", ….
    peak : float or None
        Operations per second that this engine reached.
    cache : int or None
        Bytes of the device's last-level cache.
    grid, threadgroup : tuple of int
        Threads, x first; empty for a callable other than a kernel.
    arguments : mapping of str to str
        A description of each argument.
    warnings : tuple of str
        Caveats for a reader of the figures.
    counted : tuple of str
        The highest costs on a GPU according to a counted run, line by line; empty without such a run. The run is one of
        `measure`, or the latest profile of the same dispatch.
    most_needed : str
        The resource that a GPU would need longest, from the counts of that run and a model; empty without such a run.
    """

    kernel: str
    engine: str
    device: str
    clock: str
    seconds: tuple[float, ...]
    batch: int
    empty: float
    cold: float | None = None
    bytes: int | None = None
    flops: float | None = None
    limit: float | None = None
    ceiling: str = ""
    peak: float | None = None
    cache: int | None = None
    grid: tuple[int, ...] = ()
    threadgroup: tuple[int, ...] = ()
    arguments: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    most_needed: str = ""

    @property
    def median(self) -> float:
        """The median of `seconds`: half of the batches were faster."""
        return float(np.median(self.seconds))

    @property
    def p20(self) -> float:
        """The 20th percentile of `seconds`: a fifth of the batches were faster."""
        return float(np.quantile(self.seconds, 0.2))

    @property
    def p80(self) -> float:
        """The 80th percentile of `seconds`: four fifths of the batches were faster."""
        return float(np.quantile(self.seconds, 0.8))

    @property
    def best(self) -> float:
        """Seconds of the fastest batch."""
        return min(self.seconds)

    @property
    def spread(self) -> float:
        """The distance from p20 to p80, as a fraction of the median."""
        return (self.p80 - self.p20) / self.median

    @property
    def bandwidth(self) -> float | None:
        """B/s, at the median time."""
        return None if self.bytes is None else self.bytes / self.median

    @property
    def throughput(self) -> float | None:
        """Floating-point operations per second, at the median time."""
        return None if self.flops is None else self.flops / self.median

    @property
    def share(self) -> float | None:
        """The bandwidth as a fraction of the limit."""
        return None if self.bandwidth is None or not self.limit else self.bandwidth / self.limit

    @property
    def intensity(self) -> float | None:
        """Arithmetic intensity: floating-point operations per byte."""
        return self.flops / self.bytes if self.flops is not None and self.bytes else None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values that `json.dumps` accepts."""
        return {**dataclasses.asdict(self), "arguments": dict(self.arguments)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a record from what `to_json` returned.

        Raises
        ------
        KeyError, TypeError
            If the data is something else.
        """
        lists = ("seconds", "grid", "threadgroup", "warnings")
        tuples = {**{name: tuple(data[name]) for name in lists}, "counted": tuple(data.get("counted", ()))}
        return cls(**{**data, **tuples, "arguments": dict(data["arguments"])})

    def plot(self, ax: Any = None) -> Any:
        """Draw the distribution of the times with matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default, the axes of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return render(self, "figure", ax)
