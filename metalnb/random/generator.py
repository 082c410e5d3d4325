"""The generator of random arrays."""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any

import numpy as np

from metalnb import engine as engines
from metalnb.arrays.array import Array, empty
from metalnb.arrays.convert import asarray
from metalnb.arrays.dtype_info import finfo
from metalnb.arrays.promotion import DTYPES, as_dtype, is_float, is_integer
from metalnb.engine.process_locks import new_lock
from metalnb.library_kernels.indexing.take_and_put import take
from metalnb.library_kernels.launching.copying import check_writable, copy_into
from metalnb.library_kernels.launching.element_bits import as_bits, width
from metalnb.library_kernels.launching.launcher import dispatch
from metalnb.library_kernels.launching.programs import program
from metalnb.library_kernels.planning.axes import axis_of, shape_of
from metalnb.library_kernels.planning.device import LANES
from metalnb.library_kernels.sorting.searching import searchsorted
from metalnb.library_kernels.sorting.sort import argsort

from .distributions import Distributions, Size
from .keys import CHILD, block, key_of

__all__ = ["Generator", "Size"]

_ROWS = 32  # a SIMD-group computes rows of this many blocks, as in random.metal
_WORDS = 4
_FLOAT32, _UINT32, _UINT64 = np.dtype(np.float32), np.dtype(np.uint32), np.dtype(np.uint64)


class Generator(Distributions):
    """A stream of random numbers.

    Parameters
    ----------
    seed : int, optional
        Any integer, 0 or more; by default one from the system.
    device : str, optional
        The name of the engine for its arrays; by default the engine in use at each call.

    Attributes
    ----------
    key : int
        64 bits that identify the stream.
    used : int
        The number of blocks of four 32-bit words consumed so far. Set `key` and this to resume a stream.

    References
    ----------
    Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", 2011.
    """

    def __init__(self, seed: int | None = None, *, device: str | None = None) -> None:
        self.key = key_of(seed)
        self.used = 0
        self.device = device
        self._lock = new_lock()

    def __repr__(self) -> str:
        return f"<metalnb.random.Generator key={self.key:#x} used={self.used}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _generator_at, (self.key, self.used, self.device)

    def spawn(self, n: int) -> list[Generator]:
        """Return `n` generators whose streams are independent of each other and of this one.

        Their keys are taken from this stream, which advances by `n` blocks. A negative `n` raises ValueError.
        """
        n = _count("spawn", n)
        first = self._take(n)
        children = []
        for i in range(n):
            words = block(first + i, self.key, CHILD)
            children.append(_generator_at(words[0] | words[1] << 32, 0, self.device))
        return children

    def random(self, size: Size = None, dtype: Any = _FLOAT32) -> Array:
        """Return uniform floats on [0, 1): multiples of 2^-24, or of 2^-11 for float16 and 2^-8 for bfloat16."""
        return self._floats("random", "uniform", 0.0, 1.0, size, dtype)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Size = None, dtype: Any = _FLOAT32) -> Array:
        """Return floats on [low, high): ``low + (high - low) * random()``, which may round to `high`.

        Raises
        ------
        ValueError
            If a bound is not finite or exceeds the dtype, or if their difference exceeds float32.
        """
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"uniform: the bounds must be finite; got low={low}, high={high}.")
        target_dtype = as_dtype(dtype, "uniform")
        largest = finfo(target_dtype).max if is_float(target_dtype) else math.inf
        if max(abs(low), abs(high)) > largest or abs(high - low) > finfo(_FLOAT32).max:
            raise ValueError(f"uniform: {target_dtype} holds {-largest:g} to {largest:g}, and the bounds may be "
                             f"3.4e+38 apart; got low={low}, high={high}.")  # fmt: skip
        return self._floats("uniform", "uniform", low, high - low, size, dtype)

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: Size = None, dtype: Any = _FLOAT32) -> Array:
        """Return floats from the normal distribution with a mean and a standard deviation.

        Raises
        ------
        ValueError
            If the standard deviation is negative.
        """
        if not scale >= 0:
            raise ValueError(f"normal: scale must be 0 or more; got {scale}.")
        return self._floats("normal", "normal", loc, scale, size, dtype)

    def standard_normal(self, size: Size = None, dtype: Any = _FLOAT32) -> Array:
        """Return floats from the normal distribution with mean 0 and standard deviation 1."""
        return self.normal(0.0, 1.0, size, dtype)

    def rand(self, *shape: int, dtype: Any = _FLOAT32) -> Array:
        """Return floats on [0, 1): ``rand(3, 4)``."""
        return self.random(shape, dtype)

    def randn(self, *shape: int, dtype: Any = _FLOAT32) -> Array:
        """Return standard normal floats: ``randn(3, 4)``."""
        return self.normal(0.0, 1.0, shape, dtype)

    def randint(self, low: int, high: int | None = None, size: Size = None, dtype: Any = np.int64, *,
                endpoint: bool = False) -> Array:  # fmt: skip
        """Return integers, all equally likely.

        Parameters
        ----------
        low, high : int
            From `low` up to but not including `high`; from 0 up to `low` when `high` is left out.
        size : int or tuple of int, optional
        dtype : dtype
            Any integer dtype, or bool.
        endpoint : bool
            Whether `high` is included.

        Raises
        ------
        ValueError
            If there is no such integer, or the dtype cannot hold them all.
        """
        low, high = (0, low) if high is None else (low, high)
        low, count = operator.index(low), operator.index(high) - operator.index(low) + bool(endpoint)
        target_dtype = as_dtype(dtype, "randint")
        if not is_integer(target_dtype) and target_dtype != np.bool_:
            raise TypeError(f"randint: dtype must be an integer dtype or bool; got {target_dtype}.")
        limits = None if target_dtype == np.bool_ else np.iinfo(target_dtype)
        smallest, largest = (0, 1) if limits is None else (limits.min, limits.max)
        if count <= 0:
            raise ValueError(f"randint: no integers from {low} to {high}: low must be less than high.")
        if low < smallest or low + count - 1 > largest:
            raise ValueError(f"randint: {target_dtype} holds {smallest} to {largest}; got {low} to {low + count - 1}.")
        out = empty(_shape("randint", size), target_dtype, self._engine())
        self._integers(out, low, count)
        return out

    integers = randint

    def bytes(self, length: int) -> builtins.bytes:
        """Return random bytes; a negative length raises ValueError."""
        length = _count("bytes", length)
        words = empty((-(-length // 4),), _UINT32, self._engine())
        self._integers(words, 0, 1 << 32)
        return words.tobytes()[:length]

    def permutation(self, x: int | Array, axis: int = 0) -> Array:
        """Return a random permutation of an array's rows, or of 0 … x - 1; every order is equally likely."""
        if isinstance(x, (int, np.integer)):
            return self._order(_count("permutation", x))
        array = self._array(x)
        axis = axis_of("permutation", axis, array.ndim)
        shuffled: Array = take(array, self._order(array.shape[axis]), axis=axis)
        return shuffled

    def shuffle(self, x: Array, axis: int = 0) -> None:
        """Put an array's rows in random order, in place.

        Raises
        ------
        TypeError
            For anything but a metalnb array.
        ValueError
            For a broadcast view, whose elements share memory.
        """
        if not isinstance(x, Array):
            raise TypeError(f"shuffle: takes a metalnb array; got {type(x).__name__}. "
                            "Pass mnb.asarray(x), which has the memory of a NumPy array.")  # fmt: skip
        check_writable("shuffle", x)
        copy_into(x, self.permutation(x, axis))

    def choice(self, a: Any, size: Size = None, replace: bool = True, p: Any = None, axis: int = 0) -> Any:
        """Choose among an array's rows, or the integers below a number.

        Parameters
        ----------
        a : int, Array or sequence
            If arrays cannot hold its elements, such as text or float64, the result is a NumPy array.
        size : int or tuple of int, optional
        replace : bool
            Whether an element can be chosen more than once.
        p : sequence of float, optional
            The probability of each element; their sum must be 1. Only with `replace`.
        axis : int

        Raises
        ------
        ValueError
            If there are too few elements to choose from, or `p` does not fit.
        """
        rows = None if isinstance(a, (int, np.integer)) else self._rows(a)
        n = operator.index(a) if rows is None else rows.shape[axis_of("choice", axis, rows.ndim)]
        shape = _shape("choice", size)
        count = math.prod(shape)
        if n <= 0 and count:
            raise ValueError("choice: there is nothing to choose from.")
        if p is not None:
            indices = self._draw_weighted(n, p, shape, replace=replace)
        elif replace:
            indices = self.randint(0, max(n, 1), shape)
        elif count > n:
            raise ValueError(f"choice: cannot choose {count} of {n} without replacement.")
        else:
            indices = self._order(n)[:count].reshape(shape)
        if isinstance(rows, np.ndarray):
            return np.take(rows, indices.read(), axis=axis)
        return indices if rows is None else take(rows, indices, axis=axis)

    # ---- Implementation.
    def _draw_weighted(self, n: int, p: Any, shape: tuple[int, ...], *, replace: bool) -> Array:
        weights = np.asarray(p.read() if isinstance(p, Array) else p, np.float64)
        if not replace:
            raise ValueError("choice: p can only be used with replacement.")
        if weights.shape != (n,):
            raise ValueError(f"choice: p must be {n} numbers; got shape {weights.shape}.")
        if not (weights >= 0).all():
            raise ValueError(f"choice: p must be numbers, 0 or more; got {weights[~(weights >= 0)][0]}.")
        if abs(weights.sum() - 1) > 1e-6:
            raise ValueError(f"choice: p must sum to 1; it sums to {weights.sum():g}.")
        # The bounds are 64-bit fractions, since float32 could not resolve rare elements.
        bounds = np.minimum(np.cumsum(weights) / weights.sum() * 2.0**64, np.nextafter(2.0**64, 0)).astype(np.uint64)
        bounds[np.flatnonzero(weights)[-1] :] = np.iinfo(np.uint64).max
        fractions = empty(shape, _UINT64, self._engine())
        self._integers(fractions, 0, (1 << 64) - 1)
        indices: Array = searchsorted(asarray(bounds, device=fractions.device), fractions, side="right")
        return indices

    def _order(self, n: int) -> Array:
        """Return 0 … n - 1 in random order: the argsort of 64-bit random keys, which tie with probability n² / 2^65."""
        keys = empty((n,), _UINT64, self._engine())
        self._integers(keys, 0, 1 << 64)
        order: Array = argsort(keys)
        return order

    def _array(self, values: Any) -> Array:
        return values if isinstance(values, Array) else asarray(values, device=self.device)

    def _rows(self, values: Any) -> Any:
        """Return an array, or a NumPy array if arrays cannot hold the elements."""
        host = values if isinstance(values, (Array, np.ndarray)) else np.asarray(values)
        is_supported = isinstance(values, Array) or host.dtype.name in DTYPES
        is_python_floats = not isinstance(values, np.ndarray) and host.dtype == np.float64  # not NumPy's float64
        return self._array(values) if is_supported or is_python_floats else host

    def _engine(self) -> engines.Engine:
        return engines.named(self.device)

    def _take(self, blocks: int) -> int:
        with self._lock:
            first = self.used
            self.used += blocks
        return first

    def _floats(self, caller: str, kind: str, first: float, second: float, size: Size, dtype: Any) -> Array:
        target_dtype = as_dtype(dtype, caller)
        if not is_float(target_dtype):
            raise TypeError(f"{caller}: dtype must be float32, float16 or bfloat16; got {target_dtype}.")
        out = empty(_shape(caller, size), target_dtype, self._engine())
        words = as_bits(out) if target_dtype.name == "bfloat16" else out
        self._fill(f"random_{kind}_{target_dtype.name}", words, (first, second), _WORDS)
        return out

    def _integers(self, out: Array, low: int, count: int) -> None:
        bits = width(out.dtype)
        word = 64 if bits == 64 else 32
        uses_all_words = count == 1 << word  # nothing is rejected
        excess = (1 << word) % count
        interval = {"low": low % (1 << 64), "range": 0 if uses_all_words else count, "excess": excess}
        name = "random_integers_64" if bits == 64 else f"random_integers_{bits}"
        self._fill(name, as_bits(out), interval, _WORDS * 32 // word)

    def _fill(self, name: str, out: Array, parameters: Any, numbers_per_block: int) -> None:
        """Fill an array; each block yields `numbers_per_block` elements, and blocks are consumed in rows of 32."""
        if out.size == 0:
            return
        rows = -(-out.size // (LANES * numbers_per_block))
        number = self._take(rows * LANES)
        stream = {"key": (self.key & 0xFFFFFFFF, self.key >> 32), "block": number, "count": out.size}
        kernel = program("random.metal", out.engine)[name]
        dispatch(kernel, out, stream, parameters, grid=LANES * -(-rows // _ROWS), threadgroup=LANES)


def _generator_at(key: int, used: int, device: str | None) -> Generator:
    generator = Generator(0, device=device)
    generator.key, generator.used = key, used
    return generator


def _shape(caller: str, size: Size) -> tuple[int, ...]:
    return () if size is None else shape_of(caller, size)


def _count(caller: str, n: Any) -> int:
    """Return a count as a Python integer."""
    count = operator.index(n)
    if count < 0:
        raise ValueError(f"{caller}: needs a count of 0 or more; got {n}.")
    return count
