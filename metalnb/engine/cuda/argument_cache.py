"""Small read-only arguments, copied to the GPU once for all launches that pass the same content."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from .nvidia_driver import Gpu

__all__ = ["ArgumentCache"]

_MAX_SIZE = 4096  # bytes of an argument
_CAPACITY = 1 << 22  # bytes of the buffer, in two halves
_ALIGNMENT = 256


class ArgumentCache:
    """Keeps the contents of small arguments on the GPU.

    The buffer's halves are filled alternately, so that filling one does not overwrite the other arguments of a launch
    that is being prepared. Copies are in stream order, so they never overwrite content that an enqueued launch still
    reads.

    Parameters
    ----------
    gpu : Gpu
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._buffer = 0
        self._used = 0  # bytes of the half that is being filled
        self._half = 0
        self._addresses: dict[bytes, int] = {}  # by content, of that half
        self._lock = threading.Lock()

    def address_of(self, argument: Any) -> int | None:
        """Return the address of an argument's content, or None if it is empty or too large to be kept."""
        size = getattr(argument, "nbytes", None)
        if size is None:
            argument = np.frombuffer(argument, np.uint8)
            size = argument.nbytes
        if not 0 < size <= _MAX_SIZE:
            return None
        content = argument.tobytes()
        with self._lock:
            address = self._addresses.get(content)
            return self._add(content) if address is None else address

    def _add(self, content: bytes) -> int:
        api, take = self._gpu.api, self._gpu.take
        if not self._buffer:
            self._buffer = int(take(api.cuMemAlloc(_CAPACITY)))
        if self._used + len(content) > _CAPACITY // 2:
            self._half, self._used = 1 - self._half, 0
            self._addresses.clear()
        address = self._buffer + self._half * (_CAPACITY // 2) + self._used
        source = np.frombuffer(content, np.uint8).ctypes.data  # the driver has read the bytes when it returns
        take(api.cuMemcpyHtoDAsync(address, source, len(content), self._gpu.stream))
        self._used += -(-len(content) // _ALIGNMENT) * _ALIGNMENT
        self._addresses[content] = address
        return address
