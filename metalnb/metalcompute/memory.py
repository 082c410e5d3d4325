"""Buffers: memory that Python and a kernel share."""

from __future__ import annotations

import mmap
from typing import Any, NoReturn, Self

import numpy as np

from .codes import Code, error_of

__all__ = ["PADDING", "Buffer"]

# After each buffer: a Metal buffer ends with its page (16 KiB), and a dispatch of whole threadgroups lets up to 1023
# threads run beyond the count. Each may access an element there, of at most 256 bytes (MSL's largest type has 64).
PADDING = 16384 + 1024 * 256

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Buffer(np.ndarray[Any, np.dtype[np.uint8]]):
    """``dev.buffer(nbytes)``: shared memory with Python's buffer protocol, and nothing else.

    In Python 3.11 a class written in Python has the buffer protocol only through a base class; NumPy's array
    is the one whose view has the format ``B`` that metalcompute's has, so that ``memoryview(b).cast("f")`` works.
    Every other operation of an array is disabled, because it would fail in metalcompute.

    Attributes
    ----------
    memory : numpy.ndarray
        The bytes and the padding after them.
    """

    memory: Bytes

    def __new__(cls, nbytes: int) -> Self:
        """Allocate zeros.

        Raises
        ------
        error
            If Metal cannot make the buffer: it has 0 bytes, or more than the machine has.
        """
        if nbytes < 1:  # metalcompute.swift, mc_sw_buf_open: makeBuffer returns nil
            raise error_of(Code.COULD_NOT_MAKE_BUFFER)
        try:  # pages of zeros, allocated on first access
            pages = mmap.mmap(-1, nbytes + PADDING)
        except (ValueError, OverflowError, OSError):
            raise error_of(Code.COULD_NOT_MAKE_BUFFER) from None
        buffer = super().__new__(cls, nbytes, np.uint8, buffer=pages)
        buffer.memory = np.frombuffer(pages, np.uint8)
        return buffer

    @classmethod
    def holding(cls, contents: Any) -> Self:
        """Make a buffer from the argument of ``dev.buffer``: a Python buffer, which is copied, or a number of bytes.

        If an object is both, it counts as a buffer. A number is anything that ``int()`` accepts, so "12" is 12 bytes
        (metalcompute.c, Buffer_init).
        """
        if isinstance(contents, np.ndarray) and contents.flags.c_contiguous:
            contents = np.asarray(contents).reshape(-1).view(np.uint8)  # metalcompute.c asks for no format
        try:
            view = memoryview(contents)
            contiguous = view.c_contiguous
        except (TypeError, ValueError):
            contiguous = False
        if contiguous:
            buffer = cls(view.nbytes)
            buffer.memory[: view.nbytes] = _bytes_of(view)
            return buffer
        try:
            nbytes = int(contents)
        except (TypeError, ValueError, OverflowError):
            raise error_of(Code.UNSUPPORTED_INPUT_FORMAT) from None
        return cls(nbytes)

    def __str__(self) -> str:
        return f"metalcompute.Buffer(length={self.nbytes})"

    __repr__ = object.__repr__
    __hash__ = object.__hash__  # type: ignore[assignment]  # an array has none
    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __array_ufunc__ = None  # type: ignore[assignment]  # NumPy's way to close it
    __iter__ = None  # type: ignore[assignment]  # Python's way to close it

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> NoReturn:
        raise TypeError("object of type 'metalcompute.Buffer' has no len()")

    def __getitem__(self, key: Any) -> NoReturn:
        raise TypeError("'metalcompute.Buffer' object is not subscriptable")

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError("'metalcompute.Buffer' object does not support item assignment")

    def __reduce_ex__(self, *_: Any) -> NoReturn:
        raise TypeError("cannot pickle 'metalcompute.Buffer' object")

    __copy__ = __deepcopy__ = __reduce_ex__


def _bytes_of(view: memoryview) -> Bytes:
    """Return the bytes of a buffer of any format and shape."""
    return np.ndarray(view.nbytes, np.uint8, buffer=view)
