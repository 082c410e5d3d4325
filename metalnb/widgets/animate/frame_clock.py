"""The thread that requests the frames of an animation: at a rate, and no faster than the page shows them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from ..background_work import spawn

__all__ = ["FrameClock"]

_AHEAD = 2  # frames on their way to the page: one is drawn while the next is made
_RECENT = 31  # the rate is measured over this many frames


class FrameClock:
    """Requests frames while an animation plays.

    The thread runs while there is something to do. Once a page has reported that it shows a frame, no frame is made
    before the page has shown all but one of the earlier ones: nothing queues up, and an animation that no page shows
    pauses.

    Parameters
    ----------
    work : callable
        Called with True to advance a frame, with False to redraw the current one; must not raise.
    rate : float
        Frames per second.
    """

    def __init__(self, work: Callable[[bool], None], rate: float) -> None:
        self._rate = rate
        self.playing = False
        self._work = work
        self._single = 0
        self._redraw = False
        self._is_watched = False
        self._sent_count = self._shown_count = 0
        self._due = 0.0
        self._frame_times: deque[float] = deque(maxlen=_RECENT)
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()

    @property
    def rate(self) -> float:
        """Frames per second; a change also holds for the next frame."""
        return self._rate

    @rate.setter
    def rate(self, rate: float) -> None:
        with self._changed:
            self._rate = rate
            self._due = min(self._due, time.monotonic() + 1 / rate)
            self._changed.notify_all()

    @property
    def measured_rate(self) -> float:
        """Frames per second, measured over the latest frames; 0 until there are two."""
        times = list(self._frame_times)
        return (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0.0

    def play(self) -> None:
        """Request frames until `pause`."""
        with self._changed:
            self._frame_times.clear()
            self.playing = True
            self._start()

    def pause(self) -> None:
        """Stop requesting frames; the current one is finished, and redrawn if that was requested."""
        with self._changed:
            self.playing, self._single = False, 0
            self._changed.notify_all()

    def stop(self) -> None:
        """Pause, and cancel any requested redraw."""
        with self._changed:
            self._redraw = False
            self.pause()

    def step(self) -> None:
        """Request one frame."""
        with self._changed:
            self._single += 1
            self._start()

    def request_redraw(self) -> None:
        """Request a redraw, with the next frame or now."""
        with self._changed:
            self._redraw = True
            self._start()

    def note_sent(self) -> int:
        """Note that a frame is on its way to the page; return its number."""
        with self._changed:
            self._sent_count += 1
            return self._sent_count

    def note_shown(self, number: int | None) -> None:
        """Note that the page has shown a frame or, for None, that it waits for one even if frames were sent."""
        with self._changed:
            self._is_watched = True
            self._shown_count = self._sent_count if number is None else max(number, self._shown_count)
            self._changed.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the work is done; return False if that takes longer than ``timeout`` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._thread is None, timeout)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = spawn(self._run, self.stop)
        self._changed.notify_all()

    def _run(self) -> None:
        while (onward := self._next()) is not None:
            self._work(onward)

    def _next(self) -> bool | None:
        """Wait for the next task: advance a frame (True), redraw the current one (False), or nothing (None)."""
        with self._changed:
            while True:
                if self._single:
                    self._single -= 1
                    return True
                if self._redraw and not self.playing:
                    self._redraw = False
                    return False
                if not self.playing:
                    self._thread = None
                    self._changed.notify_all()
                    return None
                now = time.monotonic()
                if self._is_watched and self._sent_count - self._shown_count >= _AHEAD:
                    self._changed.wait()
                elif self._due > now:
                    self._changed.wait(self._due - now)
                else:
                    self._due = max(self._due, now - 1 / self.rate) + 1 / self.rate
                    self._redraw = False
                    self._frame_times.append(now)
                    return True
