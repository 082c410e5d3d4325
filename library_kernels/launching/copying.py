"""Copies from one layout and dtype to another, with broadcasting. Every op that moves data uses `copy_into`."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import asarray, check_engine
from ...arrays.promotion import DTYPES
from ...engine import named
from ..planning.device import CORES, device_of
from ..planning.elementwise_plan import Strip, plan_elementwise, plan_transposed, stretched
from .launcher import Launch
from .programs import with_macros

__all__ = [
    "BITS", "as_array", "bits_of", "contiguous", "converted", "copied", "copy_into", "fill_with", "given_for",
    "writable",
]  # fmt: skip

_PLANS = 4096
BITS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}  # elements that are not converted are moved as bits

DType = np.dtype[Any]
Shape = tuple[int, ...]


def as_array(caller: str, x: Any) -> Array:
    """Convert an argument to an array: NumPy's and other libraries' arrays, but not lists or numbers.

    Raises
    ------
    TypeError
    """
    if isinstance(x, Array):
        return x
    if isinstance(x, (np.ndarray, np.generic)) or hasattr(x, "__dlpack__"):
        return asarray(x)
    raise TypeError(f"{caller}: takes an array; got {type(x).__name__}. Pass mnb.asarray(…).")


def given_for(caller: str, x: Array, value: Any) -> Array:
    """Convert a value to write into an array; Python numbers and sequences of them take its dtype.

    Raises
    ------
    OverflowError
        If the dtype cannot represent one of them.
    ArgumentError
        For an array of another engine.
    """
    if isinstance(value, Array):
        given = value
    else:
        own = isinstance(value, (bool, int, float, list, tuple, range))
        given = asarray(value, dtype=x.dtype if own else None, device=x.device)
    check_engine(x.block.engine, caller, given)
    return given


def writable(caller: str, x: Array) -> None:
    """Refuse to write into a broadcast view, whose elements share memory.

    Raises
    ------
    ValueError
    """
    if x.repeats:
        raise ValueError(f"{caller}: x is broadcast, shape {x.shape}: elements share memory. Use x.copy().")


def bits_of(x: Array) -> Array:
    """View elements as unsigned integers of their width, for a kernel that only moves them."""
    return Array(x.block, np.dtype(f"u{x.itemsize}"), x.shape, x.strides, x.offset)


def converted(x: Array, dtype: DType) -> Array:
    """Return the array converted to a dtype, or the array itself if it has that dtype."""
    return x if x.dtype == dtype else copy_into(empty(x.shape, dtype, x.engine), x)


def contiguous(x: Array) -> Array:
    """Return the array itself if a kernel can use a pointer to its first element, else a contiguous copy."""
    fits = x.contiguous and (x.offset == 0 or x.engine.caps.offsets)
    return x if fits else copied(x)


def copied(x: Array, shape: Shape | None = None) -> Array:
    """Return a contiguous copy, broadcast to a shape."""
    return copy_into(empty(x.shape if shape is None else shape, x.dtype, x.engine), x)


def copy_into(out: Array, x: Array) -> Array:
    """Write x, broadcast and converted, into an array."""
    engine = out.block.engine
    if x.block.engine is not engine:
        check_engine(engine, "copy", x)
    if 0 in out.shape:
        return out
    launch = _launch(x.dtype, x.shape, x.strides, x.offset, out.dtype, out.shape, out.strides, out.offset, engine.name)
    launch.start(x, out)
    return out


def fill_with(out: Array, value: Any) -> Array:
    """Write one Python number into every element.

    Raises
    ------
    OverflowError
        If an integer dtype cannot represent it.
    """
    if 0 not in out.shape:
        one = np.array(value, out.dtype)
        launch = _launch(out.dtype, (), (), 0, out.dtype, out.shape, out.strides, out.offset, out.device)
        launch.start(one, out)
    return out


@functools.lru_cache(_PLANS)
def _launch(  # noqa: PLR0913, PLR0917  (everything that distinguishes copies)
    given: DType, shape: Shape, strides: Shape, offset: int, wanted: DType, to: Shape, out_strides: Shape,
    out_offset: int, engine: str,
) -> Launch:  # fmt: skip
    size, out_size = given.itemsize, wanted.itemsize
    spread = tuple(s // size for s in stretched(strides, shape, to))
    strips = [Strip(spread, offset // size), Strip(tuple(s // out_size for s in out_strides), out_offset // out_size)]
    device, planned = device_of(named(engine).caps), plan_transposed(to, strips)
    if planned is None:
        like = CORES._replace(streams=device.streams)
        planned = plan_elementwise(to, strips, like, size + out_size)
        if planned.kinds == "gu" and not any(s for s, n in zip(spread, to, strict=True) if n != 1):
            flat = planned.grid[1] == 1 and not any(s.offset for s in strips)
            planned = planned._replace(kinds="SU" if flat else "su")  # the same element everywhere
        elif planned.kinds == "gu" and planned.inner[0] == -1:
            planned = planned._replace(kinds="ru")
    binary = _binary(_word(given, wanted), _word(wanted, given), planned.kinds, engine)
    return Launch(binary, planned.grid, planned.threadgroup, (planned.record,)).kept(named(engine))


def _word(dtype: DType, other: DType) -> str:
    return BITS[dtype.itemsize] if dtype == other else DTYPES[dtype.name]


@functools.cache
def _binary(given: str, wanted: str, kinds: str, engine: str) -> Any:
    if kinds == "turned":
        return with_macros("transpose.metal", engine, FROM=given, TO=wanted).transpose.binary
    streamed = {"STREAMED": ""} if "V" in kinds else {}
    return with_macros("copy.metal", engine, FROM=given, TO=wanted, **streamed)[f"copy_{kinds}"].binary
