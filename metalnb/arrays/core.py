"""The core of an array: a block of memory with a dtype, a shape, strides and an offset."""

from __future__ import annotations

import functools
import math
from typing import Any, Self

import numpy as np

from metalnb.engine.base import Engine
from metalnb.errors import ArgumentError

from .memory_pool import Block, Lease

__all__ = ["ArrayForm", "Core", "contiguous_strides", "form_of"]

Shape = tuple[int, ...]


class ArrayForm:
    """Everything that a plan depends on: dtype, shape, strides, offset and engine. Plans are cached by this key."""

    __slots__ = ("contiguous", "strides")

    def __init__(self, dtype: np.dtype[Any], shape: Shape, strides: Shape) -> None:
        self.strides = strides
        self.contiguous = _is_whole(shape, strides, contiguous_strides(shape, dtype.itemsize))


class Core:
    """A block of an engine's memory and its layout; the attributes are those of `Array`."""

    __slots__ = ("__weakref__", "block", "contiguous", "dtype", "form", "offset", "shape", "strides")

    def __init__(
        self, block: Block, dtype: np.dtype[Any], shape: Shape, strides: Shape | None, offset: int,
        form: ArrayForm | None = None,
    ) -> None:  # fmt: skip
        self.form = form
        self.block = block
        self.dtype = dtype
        self.shape = shape
        self.offset = offset
        if form is not None:
            self.strides, self.contiguous = form.strides, form.contiguous
            return
        whole_strides = contiguous_strides(shape, dtype.itemsize)
        self.strides = whole_strides if strides is None else strides
        self.contiguous = strides is None or _is_whole(shape, strides, whole_strides)

    def shared_form(self) -> ArrayForm:
        """Return the array's form: the same object for arrays that differ only in their elements."""
        if self.form is None:
            self.form = form_of(self.dtype, self.shape, self.strides, self.offset, self.block.engine)
        return self.form

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def repeats(self) -> bool:
        """Whether elements share memory, as in a broadcast view. An array whose elements do is read-only."""
        return 0 in self.strides and any(n > 1 and s == 0 for n, s in zip(self.shape, self.strides, strict=True))

    @property
    def engine(self) -> Engine:
        """The engine of the array's memory."""
        return self.block.engine

    @property
    def device(self) -> str:
        """The name of the array's engine (array API)."""
        return self.block.engine.name

    @property
    def host(self) -> np.ndarray[Any, Any]:
        """The same memory as a NumPy array, **without waiting**: only for its shape, not for its elements."""
        return np.ndarray(self.shape, self.dtype, self.block.host, self.offset, self.strides)

    def viewed(self, host: np.ndarray[Any, Any]) -> Self:
        """Return the array for a NumPy view of `host`; every view is made this way."""
        block = self.block
        start: int = block.host.__array_interface__["data"][0]
        offset = host.__array_interface__["data"][0] - start if host.size else 0
        if not 0 <= offset <= block.host.size:
            raise ArgumentError("a view lies outside its block")
        return type(self)(block, host.dtype, host.shape, host.strides, offset)

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return a NumPy array of the same memory, without a copy.

        While that NumPy array exists, each dispatch on its memory waits, since NumPy may read the memory at any moment.

        Returns
        -------
        numpy.ndarray
            It has the same shape, strides and dtype. It is a copy if the host cannot access the engine's memory.
        """
        if not self.engine.caps.shared:
            return self.read().copy()
        interface = {**self.host.__array_interface__, "version": 3}
        # bfloat16 has no name in the interface: it is passed as bytes and viewed as bfloat16 afterwards.
        if self.dtype.kind == "V":
            interface["typestr"], interface["descr"] = "<u2", [("", "<u2")]
        view = np.asarray(Lease(self.block, interface))
        self.block.settle()
        return view.view(self.dtype) if view.dtype != self.dtype else view

    def read(self) -> np.ndarray[Any, Any]:
        """Wait, and return a NumPy view to read now; unlike with `numpy`, later dispatches are not waited for."""
        self.block.settle()
        return self.host

    def wait(self) -> Self:
        """Wait until the array is computed, and return it."""
        self.block.settle()
        return self


def form_of(dtype: np.dtype[Any], shape: Shape, strides: Shape, offset: int, engine: Any) -> ArrayForm:
    """Return the form that arrays with these properties share."""
    return _form(dtype, shape, strides, offset, engine)


@functools.lru_cache(4096)  # an evicted form remains valid: an equal array gets a new one and is planned again
def _form(dtype: np.dtype[Any], shape: Shape, strides: Shape, _offset: int, _engine: Any) -> ArrayForm:
    return ArrayForm(dtype, shape, strides)


@functools.lru_cache(4096)
def contiguous_strides(shape: Shape, itemsize: int) -> Shape:
    """Return the strides, in bytes, of a contiguous array, last axis fastest."""
    strides = []
    step = itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def _is_whole(shape: Shape, strides: Shape, whole_strides: Shape) -> bool:
    """Return whether an array with these strides is contiguous; strides of axes of one element do not matter."""
    if strides == whole_strides or 0 in shape:
        return True
    return all(n == 1 or s == w for n, s, w in zip(shape, strides, whole_strides, strict=True))
