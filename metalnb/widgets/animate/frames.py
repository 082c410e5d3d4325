"""The frames of a simulation: steps and the user's drawing change its state, and a picture shows it."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ..knobs import Knob
from ..painter import Painter, palette, png
from .brush import Brush
from .film import Filmstrip, thin
from .simulation import Simulation

__all__ = ["Frames"]

_RECENT = 30  # the times are computed from this many frames
_PICTURES, _LIMIT = 6, 2.0  # pictures in the strip before the first play, and the seconds that it may take
_POINTS = 4096  # most points of strokes waiting to be drawn


class Frames:
    """A simulation and the picture of its state; safe to use from several threads.

    Parameters
    ----------
    simulation : Simulation
    look : callable
        Returns the array to paint.
    painter : Painter
    brush : Brush or None
    steps : int
        Steps per frame.
    spacing : int
        Frames between two pictures of the strip, if the kernel is fast enough.

    Attributes
    ----------
    png : bytes
        The latest picture.
    count : int
        Frames since the start, or the last `reset`.
    steps : int
        Steps per frame.
    settings : dict of Knob to number
        The scalars' values from the next step on.
    finite : bool
        Whether all numbers of the latest picture are finite.
    """

    def __init__(
        self, simulation: Simulation, look: Callable[[], Any], painter: Painter, brush: Brush | None, steps: int,
        spacing: int,
    ) -> None:  # fmt: skip
        self.simulation = simulation
        self.painter = painter
        self.brush = brush
        self.steps = steps
        self.settings: dict[Knob, Any] = {}
        self.count = 0
        self.finite = True
        self._look = look
        self._strokes: deque[tuple[Any, bool]] = deque(maxlen=_POINTS)
        self._times: deque[tuple[float, float, int]] = deque(maxlen=_RECENT)
        self._lock = threading.RLock()
        self._first = self._preview(spacing)
        self._strip = Filmstrip(self._first.spacing)
        self.png = self._paint()

    @property
    def strip(self) -> list[tuple[int, bytes]]:
        """Small pictures, each with its step: from the start to now or, before the first play, of the coming frames."""
        return self._strip.pictures if len(self._strip.pictures) > 1 else self._first.pictures

    def median_times(self) -> tuple[float, float]:
        """Return the median seconds per step and per picture of the latest frames; 0 before the first frame."""
        times = list(self._times)
        if not times:
            return 0.0, 0.0
        return float(np.median([k / n for k, _, n in times])), float(np.median([p for _, p, _ in times]))

    def make(self, *, advance: bool) -> None:
        """Make a frame: apply the user's drawing, advance the state, and paint it.

        Raises
        ------
        KernelFault
        """
        with self._lock:
            self._draw()
            start = perf_counter()
            if advance:
                self.simulation.set(self.settings)
                self.simulation.run(self.steps)
            ran = perf_counter()
            self.png = self._paint()
            if advance:
                self.count += 1
                self._times.append((ran - start, perf_counter() - ran, self.steps))
                self._strip.add(self.count, self.simulation.steps, self._thumb)

    def reset(self) -> None:
        """Go back to the start; the scalars keep their values."""
        with self._lock:
            self._strokes.clear()
            self.simulation.reset()
            self.painter.forget()
            self._strip, self.count = Filmstrip(self._first.spacing), 0

    def recolor(self, name: str) -> None:
        """Use another color map from the next picture on."""
        self.painter.palette = palette("animate", name)

    def stroke(self, points: Sequence[tuple[float, float] | None], *, rub: bool) -> None:
        """Draw along points, parts of the picture's width and height, before the next frame; None lifts the brush."""
        self._strokes.extend((point, rub) for point in points)

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """Return a copy of an array."""
        with self._lock:
            return self.simulation.array(name).copy()

    @contextlib.contextmanager
    def upcoming(self, count: int) -> Iterator[Iterator[Any]]:
        """Provide the pixels of the state and of the next frames, then restore the state and the colors' limits.

        Within the context, which ends in the thread that entered it, no other thread makes frames.
        """
        with self._lock:
            self._draw()
            self.simulation.set(self.settings)
            state, limits = self.simulation.take_state(), self.painter.limits
            try:
                yield self._pixels(count)
            finally:
                self.simulation.restore(state)
                self.painter.limits = limits

    def _pixels(self, count: int) -> Iterator[Any]:
        for n in range(count):
            if n:
                self.simulation.run(self.steps)
            yield self.painter.pixels(self._look()).copy()

    def _draw(self) -> None:
        if self.brush is None or not self._strokes:
            return
        with self.simulation.open_array(self.brush.name) as array:
            for point, rub in [self._strokes.popleft() for _ in range(len(self._strokes))]:
                position = (point[0], 1 - point[1]) if point and self.painter.flip else point
                self.brush.draw(array, [position], rub=rub)

    def _paint(self) -> bytes:
        array = self._look()
        data = self.painter.paint(array)
        self.finite = array.dtype.kind != "f" or bool(np.isfinite(array).all())
        return data

    def _thumb(self) -> bytes:
        return png(thin(self.painter.pixels(self._look())), self.painter.palette)

    def _preview(self, spacing: int) -> Filmstrip:
        """Make the strip of the first frames, then restore the state."""
        simulation = self.simulation
        state = simulation.take_state()
        for _ in range(2):  # the first frame may compile
            start = perf_counter()
            simulation.run(self.steps)
            duration = perf_counter() - start
            simulation.restore(state)
        strip = Filmstrip(max(1, min(spacing, int(_LIMIT / _PICTURES / max(duration, 1e-6)))))
        for n in range(_PICTURES):
            if n:
                simulation.run(strip.spacing * self.steps)
            strip.add(0, simulation.steps, self._thumb)
        simulation.restore(state)
        self.painter.forget()
        return strip
