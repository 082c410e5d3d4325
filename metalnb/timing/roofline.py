"""`roofline`: how kernels compare with the limits of memory and arithmetic.

Source: S. Williams, A. Waterman and D. Patterson, "Roofline: an insightful visual performance model for multicore
architectures", Communications of the ACM 52 (2009).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from metalnb.call.kernel import Dispatch
from metalnb.errors import ArgumentError
from metalnb.rendering import Rendered, render

from .bottleneck import BYTES, FLOPS, bottleneck
from .limits import Limits, limits
from .measure import measure
from .records import Timing
from .units import percent

__all__ = ["Roofline", "roofline"]


@dataclass(frozen=True, slots=True, repr=False)
class Roofline(Rendered):
    """Timings and the limits of the engine that they ran on; a notebook shows a chart with a sentence for each kernel.

    Attributes
    ----------
    timings : tuple of Timing
    limits : Limits
    """

    timings: tuple[Timing, ...]
    limits: Limits

    @property
    def sentences(self) -> tuple[str, ...]:
        """A sentence for each kernel: what bounds it, and how far it is from its roof."""
        return tuple(f"{n} {t.kernel}: {_sentence(t)}" for n, t in enumerate(self.timings, 1))

    def figure(self) -> Any:
        """Draw the chart.

        Returns
        -------
        matplotlib.figure.Figure
            Pyplot does not manage it: it is shown once, and freed with its last reference.
        """
        return render(self, "figure")


def roofline(*kernels: Timing | Dispatch, flops: Sequence[float] = ()) -> Roofline:
    """Show what bounds kernels: memory, arithmetic, the dispatch, or none of them.

    Each kernel is a point: its operations per byte moved, and its operations per second. The roof above it is the best
    rate that the engine's own kernels reached (see `limits`). A dashed roof shows the chip's nominal figures, if known.

    Parameters
    ----------
    *kernels : Timing or Dispatch
        Timings from `measure`, or prepared calls, which are counted and measured here; all on one device. A timing
        without ``flops`` or ``bytes`` has a sentence but no point. Without any kernels the chart shows only the roofs.
    flops : sequence of float, optional
        The operations of one dispatch, for each prepared call in their order; by default they are counted, as `profile`
        does.

    Returns
    -------
    Roofline

    Raises
    ------
    ArgumentError
        If an argument is neither a timing nor a prepared call, the timings are of several devices, or ``flops`` does
        not match the calls.

    Examples
    --------
    >>> mnb.roofline(saxpy.prepare(x, y, 2.0), flops=[2 * x.size])   # doctest: +SKIP
    """
    for item in kernels:
        if not isinstance(item, (Timing, Dispatch)):
            raise ArgumentError(f"roofline: takes timings of measure and prepared calls; got {type(item).__name__}.")
    calls = sum(isinstance(item, Dispatch) for item in kernels)
    operations = list(flops)
    if operations and len(operations) != calls:
        count = len(operations)
        raise ArgumentError(f"roofline: flops has a number for each of the {calls} prepared calls; got {count}.")
    counts: Iterator[float | None] = iter(operations) if operations else itertools.repeat(None)
    timings = tuple(
        k if isinstance(k, Timing) else measure(k, flops=next(counts), cold=False, counted=True) for k in kernels
    )
    devices = sorted({f"{t.engine} ({t.device})" for t in timings})
    if len(devices) > 1:
        raise ArgumentError(f"roofline: one device has one roof; got timings of {', '.join(devices)}.")
    return Roofline(timings, limits(engine=timings[0].engine if timings else None))


def _missing_figures(timing: Timing) -> str:
    """Return the unknown figures that a point in the chart would need."""
    if timing.flops == 0:
        return ": it has no floating-point operations"
    lacks = [name for name, figure in (("bytes", timing.bytes), ("operations", timing.flops)) if not figure]
    if lacks:
        return f": its {' and '.join(lacks)} are not known"
    return ": the engine's limits are not known"


def _sentence(timing: Timing) -> str:
    result = bottleneck(timing)
    text = result.sentence or f"neither its bytes nor its operations are known: {BYTES} and {FLOPS}"
    if not timing.intensity or not timing.throughput or not timing.limit or not timing.peak:
        return f"{text} (not drawn{_missing_figures(timing)})"
    if result.bound in {"memory", "arithmetic"}:
        return text
    roof = timing.intensity * timing.limit
    side = "memory" if roof < timing.peak else "arithmetic"
    share = percent(timing.throughput / min(roof, timing.peak))
    return f"{text}. At {timing.intensity:.3g} FLOP/B {side} is its roof, and it has {share} of that"
