"""Memory shared by NumPy and the GPU: Metal's buffers, and NumPy's pages used by Metal in place."""

from __future__ import annotations

import ctypes
import mmap
import weakref
from typing import Any, Self

import numpy as np

from metalnb.engine.base import Bytes

from .bindings import Bindings

__all__ = ["PageLender", "Pages", "SharedBuffer", "allocate"]


class SharedBuffer(np.ndarray[Any, np.dtype[np.uint8]]):
    """Memory from `MetalEngine.alloc`: the bytes of an `MTLBuffer`, which it keeps alive.

    View it through ``np.frombuffer``.

    Attributes
    ----------
    buffer : MTLBuffer
    """

    buffer: Any

    def __new__(cls, nbytes: int, buffer: Any) -> Self:
        """Make NumPy's view of a buffer."""
        size = max(nbytes, 1)
        # NumPy shortens chains of bases that are arrays; this array must be found there.
        memory: Any = (ctypes.c_ubyte * size).from_buffer(buffer.contents().as_buffer(size))
        view = super().__new__(cls, nbytes, np.uint8, buffer=memory)
        view.buffer = buffer
        return view


def allocate(bindings: Bindings, device: Any, nbytes: int) -> SharedBuffer:
    """Allocate shared memory, which Metal aligns to pages.

    Raises
    ------
    MemoryError
    """
    limit = device.maxBufferLength()
    if nbytes > limit:
        raise MemoryError(f"{nbytes:,} bytes; a buffer of this device has at most {limit:,}")
    with bindings.pool():
        buffer = device.newBufferWithLength_options_(max(nbytes, 1), bindings.metal.MTLResourceStorageModeShared)
    if buffer is None:
        raise MemoryError(f"Metal has no {nbytes:,} bytes")
    return SharedBuffer(nbytes, buffer)


class Pages:
    """Complete pages of NumPy's memory that Metal uses as a buffer.

    Attributes
    ----------
    buffer : MTLBuffer
    """

    __slots__ = ("__weakref__", "_owner", "buffer")

    def __init__(self, buffer: Any, owner: Bytes) -> None:
        self.buffer = buffer
        self._owner = owner  # Metal does not keep NumPy's memory alive


class PageLender:
    """Gives Metal NumPy's memory in place if it consists of complete pages.

    While a dispatch uses some pages, they form a single buffer, so that Metal sees dependencies between dispatches.

    Parameters
    ----------
    bindings : Bindings
    device : MTLDevice
    """

    def __init__(self, bindings: Bindings, device: Any) -> None:
        self._bindings = bindings
        self._device = device
        self._known: weakref.WeakValueDictionary[tuple[int, int], Pages] = weakref.WeakValueDictionary()

    def __call__(self, view: Bytes) -> Pages | None:
        """Return the pages of an array's bytes; None for memory that must be copied."""
        start = view.ctypes.data
        if not view.size or start % mmap.PAGESIZE or view.size % mmap.PAGESIZE or not view.flags.writeable:
            return None
        pages = self._known.get((start, view.size))
        if pages is None:
            buffer = self._buffer(view)
            if buffer is None:
                return None
            pages = self._known[start, view.size] = Pages(buffer, view)
        return pages

    def _buffer(self, view: Bytes) -> Any:
        """Return a buffer over these bytes, uncopied; None if Metal or PyObjC copied them."""
        with self._bindings.pool():
            buffer = self._device.newBufferWithBytesNoCopy_length_options_deallocator_(
                view, view.size, self._bindings.metal.MTLResourceStorageModeShared, None
            )
            if buffer is None:
                return None
            contents = np.frombuffer(buffer.contents().as_buffer(view.size), np.uint8)
            return buffer if contents.ctypes.data == view.ctypes.data else None
