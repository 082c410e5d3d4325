"""The class `Array`: a block of an engine's memory with a dtype, a shape, strides and an offset."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from metalnb import engine as engines
from metalnb.engine.base import Engine
from metalnb.errors import ArgumentError

from .core import contiguous_strides
from .memory_pool import Block, DeviceBlock, allocate
from .methods import Methods
from .operators import Operators
from .protocols import Protocols

__all__ = ["Array", "contiguous_strides", "copy_of", "empty", "view_of"]

Shape = tuple[int, ...]


class Array(Operators, Methods, Protocols):
    """An array on an engine, used like NumPy's.

    Create it by `metalnb.array`, `metalnb.asarray` and the other creation functions, not by calling the class.
    Operators, ``np.exp(a)`` and every function of `metalnb` start a dispatch and return a new array immediately;
    reading the array (printing it, taking an item, passing it to NumPy) waits for the dispatch.

    Attributes
    ----------
    dtype : numpy.dtype
    shape : tuple of int
    strides : tuple of int
        Bytes from one element to the next along each axis, as in NumPy.
    offset : int
        Bytes from the start of the block to the first element.
    block : Block
        The memory; an array and its views share one block.
    """

    __slots__ = ()

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        """Return the array on an engine, by its name (array API)."""
        if stream is not None:
            raise ArgumentError("to_device: stream must be None: dispatches of an engine run in order.")
        return self if device in {self.device, None} else copy_of(self.read(), self.dtype, engines.named(device))

    def __reduce__(self) -> tuple[Any, ...]:
        return copy_of, (self.read().copy(), self.dtype)


def empty(shape: Shape, dtype: np.dtype[Any], engine: Engine | None = None) -> Array:
    """Return an uninitialized array, for a kernel to fill."""
    return Array(allocate(math.prod(shape) * dtype.itemsize, engine), dtype, shape, None, 0)


def copy_of(host: np.ndarray[Any, Any], dtype: np.dtype[Any], engine: Engine | None = None) -> Array:
    """Return an array with the elements of a NumPy array, converted to a dtype."""
    array = empty(host.shape, dtype, engine)
    if isinstance(array.block, DeviceBlock):
        as_bytes_of_bool = host.view(np.uint8) != 0 if host.dtype == np.bool_ else host
        array.block.receive(np.ascontiguousarray(as_bytes_of_bool, dtype))
        return array
    array.block.settle()
    if host.dtype == np.bool_:
        np.not_equal(host.view(np.uint8), 0, out=array.host, casting="unsafe")  # any nonzero byte is True
    else:
        array.host[...] = host
    array.block.flush()
    return array


def view_of(block: Block, host: np.ndarray[Any, Any]) -> Array:
    """Return an array with the layout of a NumPy array over the same block."""
    return Array(block, host.dtype, host.shape, None, 0).viewed(host)
