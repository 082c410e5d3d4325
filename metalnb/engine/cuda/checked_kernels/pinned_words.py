"""Pairs of words in the host's memory that a kernel reads and writes while it runs."""

from __future__ import annotations

import ctypes
import threading

from ..nvidia_driver import Gpu

__all__ = ["PinnedPair", "PinnedWords"]

_APART = 64  # bytes from a pair to the next
_PAGE = 4096


class PinnedPair:
    """Two words: the host sets the first to end loops, a kernel the second when it has recorded a fault.

    Attributes
    ----------
    device : int
        Their address for a kernel.
    """

    def __init__(self, host: int, device: int) -> None:
        self.device = device
        self._words = (ctypes.c_uint32 * 2).from_address(host)

    def stop(self) -> None:
        """Let loops end."""
        self._words[0] = 1

    @property
    def told(self) -> bool:
        """Whether there is a fault."""
        return bool(self._words[1])

    def clear(self) -> None:
        """Make both 0."""
        self._words[0] = self._words[1] = 0


class PinnedWords:
    """Pairs that nobody uses, and how more are made. They are never freed: a kernel that nobody waits for may run on.

    Parameters
    ----------
    gpu : Gpu
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._free: list[PinnedPair] = []
        self._lock = threading.Lock()

    def take(self) -> PinnedPair:
        """Return a pair, both words 0."""
        with self._lock:
            if not self._free:
                self._more()
            return self._free.pop()

    def give_back(self, pair: PinnedPair) -> None:
        """Keep a pair for another dispatch; its own has ended."""
        pair.clear()
        with self._lock:
            self._free.append(pair)

    def _more(self) -> None:
        with self._gpu:
            host = self._gpu.take(self._gpu.api.cuMemAllocHost(_PAGE))
            device = int(self._gpu.take(self._gpu.api.cuMemHostGetDevicePointer(host, 0)))
        ctypes.memset(int(host), 0, _PAGE)
        self._free += [PinnedPair(int(host) + at, device + at) for at in range(0, _PAGE, _APART)]
