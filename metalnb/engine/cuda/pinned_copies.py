"""Large copies between NumPy's memory and the GPU's, staged through pinned memory.

The GPU's copy engine transfers pinned memory several times as fast as the driver copies from NumPy's pageable memory.
The host must first copy the data into pinned memory. Several threads do so, one lane each, while the copy engine
transfers the buffers that they have filled.
"""

from __future__ import annotations

import ctypes
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from ..base import Bytes
from .nvidia_driver import Gpu

__all__ = ["PinnedCopies"]

# Measured on an H100 (docs/gpu.md): up to 4 MiB the driver is as fast, and a lane needs enough work to pay for its
# start.
_MIN_SIZE = 1 << 23  # bytes; larger copies are worth threads
_MAX_THREADS = 8
_PIECE = 1 << 22  # bytes that a buffer holds
_SHARE = 1 << 22  # bytes per additional lane


class PinnedCopies:
    """The pinned buffers of a GPU, and the threads that fill and empty them.

    Copies go through the default stream, in order with all dispatches. The first copy that is large enough allocates
    the memory and starts the threads, which are then kept. The driver frees the memory when the process ends: freeing
    it earlier could wait for a kernel that hangs.

    Parameters
    ----------
    gpu : Gpu
    threads : int, optional
        By default one per core, up to eight. A single thread gains nothing, so all copies are left to the driver.
    piece : int, optional
        Bytes that a buffer holds.
    """

    def __init__(self, gpu: Gpu, threads: int | None = None, piece: int = _PIECE) -> None:
        self._gpu = gpu
        self._threads = min(_MAX_THREADS, _cores()) if threads is None else threads
        self._piece = piece
        self._lanes: list[_Lane] | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0
        self._lock = threading.Lock()

    def copy_in(self, target: int, data: Bytes) -> bool:
        """Copy a contiguous array to the GPU; return False, without copying, if the driver's own copy is preferable.

        On return the array may be changed. The last pieces may still be in flight, but ahead of anything enqueued
        later.
        """
        return self._spread(target, data, into_gpu=True)

    def copy_out(self, source: int, into: Bytes) -> bool:
        """Copy the GPU's memory to a contiguous array; return False, without copying, as `copy_in` does."""
        return self._spread(source, into, into_gpu=False)

    def _spread(self, address: int, host: Bytes, *, into_gpu: bool) -> bool:
        """Give each lane its pieces, and wait for all."""
        if host.nbytes < _MIN_SIZE or self._threads < 2:
            return False
        lanes = self._open_lanes()
        count, pieces = self._pieces(host.nbytes)
        if self._pool is None or self._process != os.getpid():  # a forked process has neither threads nor a GPU
            return False
        futures: list[Future[None]] = []
        try:
            for i, lane in enumerate(lanes[:count]):
                copy = lane.copy_in if into_gpu else lane.copy_out
                futures.append(self._pool.submit(copy, address, host, pieces[i::count]))
        except RuntimeError:  # Python is shutting down and starts no more threads
            return False
        finally:
            _wait_for_all(futures)
        for lane_pieces in futures:
            lane_pieces.result()
        return True

    def _pieces(self, nbytes: int) -> tuple[int, list[tuple[int, int]]]:
        """Split a copy: return the number of lanes, and the pieces, at least two per lane to keep both sides busy."""
        lanes = min(self._threads, max(1, nbytes // _SHARE))
        even = -(-nbytes // (2 * lanes))
        piece = min(self._piece, even + -even % 4096)
        return lanes, [(start, min(piece, nbytes - start)) for start in range(0, nbytes, piece)]

    def _open_lanes(self) -> list[_Lane]:
        """Return the lanes; none if the system has no memory to pin."""
        with self._lock:
            if self._lanes is None:
                self._lanes = []
                api = self._gpu.api
                status, memory = api.cuMemHostAlloc(2 * self._threads * self._piece, 0)
                if not status:
                    starts = range(int(memory), int(memory) + 2 * self._threads * self._piece, self._piece)
                    buffers = [_Buffer(self._gpu, start) for start in starts]
                    self._lanes = [_Lane(self._gpu, pair) for pair in zip(buffers[::2], buffers[1::2], strict=True)]
                    self._pool = ThreadPoolExecutor(self._threads, "metalnb-copies")
                    self._process = os.getpid()
            return self._lanes


class _Buffer:
    """A piece of pinned memory, and the event after the GPU's last copy that touches it."""

    __slots__ = ("_event", "_gpu", "address")

    def __init__(self, gpu: Gpu, address: int) -> None:
        self._gpu = gpu
        self.address = address
        self._event = gpu.take(gpu.api.cuEventCreate(int(gpu.api.CUevent_flags.CU_EVENT_DISABLE_TIMING)))

    def record_use(self) -> None:
        """Record that a copy was put into the stream."""
        self._gpu.take(self._gpu.api.cuEventRecord(self._event, self._gpu.stream))

    def settle(self) -> None:
        """Wait until the GPU is done with it; an event that was never recorded counts as passed."""
        self._gpu.take(self._gpu.api.cuEventSynchronize(self._event))


class _Lane:
    """Two buffers: the host works on one while the GPU works on the other. Used by one thread at a time."""

    def __init__(self, gpu: Gpu, buffers: tuple[_Buffer, _Buffer]) -> None:
        self._gpu = gpu
        self._buffers = buffers
        self._lock = threading.Lock()

    def copy_in(self, target: int, host: Bytes, pieces: list[tuple[int, int]]) -> None:
        """Copy pieces of a host array to the GPU."""
        api, take, stream = self._gpu.api, self._gpu.take, self._gpu.stream
        memory = host.ctypes.data
        with self._gpu, self._lock:
            for turn, (start, size) in enumerate(pieces):
                buffer = self._buffers[turn % 2]
                buffer.settle()
                ctypes.memmove(buffer.address, memory + start, size)
                take(api.cuMemcpyHtoDAsync(target + start, buffer.address, size, stream))
                buffer.record_use()

    def copy_out(self, source: int, host: Bytes, pieces: list[tuple[int, int]]) -> None:
        """Copy pieces of the GPU's memory to a host array."""
        api, take, stream = self._gpu.api, self._gpu.take, self._gpu.stream
        memory = host.ctypes.data
        with self._gpu, self._lock:
            in_flight: list[tuple[_Buffer, int, int]] = []
            for turn, (start, size) in enumerate(pieces):
                if turn > 1:
                    _drain(memory, *in_flight.pop(0))
                buffer = self._buffers[turn % 2]
                take(api.cuMemcpyDtoHAsync(buffer.address, source + start, size, stream))
                buffer.record_use()
                in_flight.append((buffer, start, size))
            for transfer in in_flight:
                _drain(memory, *transfer)


def _drain(memory: int, buffer: _Buffer, start: int, size: int) -> None:
    buffer.settle()
    ctypes.memmove(memory + start, buffer.address, size)


def _wait_for_all(futures: list[Future[None]]) -> None:
    """Wait for lanes even if interrupted: they use the caller's memory."""
    try:
        wait(futures)
    except BaseException:  # Ctrl-C
        wait(futures)
        raise


def _cores() -> int:
    """Return how many cores this process may use."""
    affinity: Any = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
