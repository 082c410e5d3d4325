"""How the host and a running dispatch communicate: a flag that ends its loops, and a word that reports a fault.

Each is in the memory of the side that polls it. Loops read the flag in the GPU's memory, since thousands of warps
reading host memory at once would take milliseconds. The host reads the word in its own memory, without a copy.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from typing import Any

from ..nvidia_driver import Gpu

__all__ = ["HostSignals", "SignalPair"]

_FLAG = struct.Struct("IxxxxQ")  # struct $flag of faults.h
_SPACING = 64  # bytes between pairs
_PAGE = 4096
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: does not wait for the dispatches' stream


class SignalPair:
    """A flag in the GPU's memory, and a word in the host's that a kernel sets when it has recorded a fault.

    Parameters
    ----------
    host : int
        The address of the word.
    device : int
        The address of the flag.
    write : callable
        Writes a word to the GPU's memory, given its address and the word, and waits for completion.

    Attributes
    ----------
    device : int
    """

    def __init__(self, host: int, device: int, write: Any) -> None:
        self.device = device
        self._fault_word, self._write = ctypes.c_uint32.from_address(host), write
        self._is_stopped = False

    def stop(self) -> None:
        """Stop the loops."""
        self._is_stopped = True
        self._write(self.device, 1)

    @property
    def has_fault(self) -> bool:
        """Whether there is a fault."""
        return bool(self._fault_word.value)

    def clear(self) -> None:
        """Reset both to 0."""
        self._fault_word.value = 0
        if self._is_stopped:
            self._write(self.device, 0)
            self._is_stopped = False


class HostSignals:
    """A pool of unused pairs. They are never freed: an abandoned kernel may still be running.

    Parameters
    ----------
    gpu : Gpu
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._free: list[SignalPair] = []
        self._stream: Any = None  # the stream for writes while dispatches run
        self._lock = threading.Lock()

    def take(self) -> SignalPair:
        """Return a pair whose words are both 0."""
        with self._lock:
            if not self._free:
                self._allocate()
            return self._free.pop()

    def give_back(self, pair: SignalPair) -> None:
        """Keep a pair for another dispatch, now that its own has ended."""
        pair.clear()
        with self._lock:
            self._free.append(pair)

    def _allocate(self) -> None:
        api, take = self._gpu.api, self._gpu.take
        with self._gpu:
            if self._stream is None:
                self._stream = take(api.cuStreamCreate(_NON_BLOCKING))
            host = int(take(api.cuMemAllocHost(_PAGE)))
            host_on_device = int(take(api.cuMemHostGetDevicePointer(host, 0)))
            flags = int(take(api.cuMemAlloc(_PAGE)))
            words = ctypes.create_string_buffer(_PAGE)
            for offset in range(0, _PAGE, _SPACING):
                _FLAG.pack_into(words, offset, 0, host_on_device + offset)
            take(api.cuMemcpyHtoDAsync(flags, ctypes.addressof(words), _PAGE, self._stream))
            take(api.cuStreamSynchronize(self._stream))
        ctypes.memset(host, 0, _PAGE)
        self._free += [SignalPair(host + offset, flags + offset, self._write) for offset in range(0, _PAGE, _SPACING)]

    def _write(self, address: int, word: int) -> None:
        api, take = self._gpu.api, self._gpu.take
        with self._gpu:
            take(api.cuStreamWriteValue32(self._stream, address, word, 0))
            take(api.cuStreamSynchronize(self._stream))
