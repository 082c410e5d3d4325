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
from ..planning.elementwise_plan import Strip, broadcast_strides, plan_elementwise, plan_transposed
from .launcher import Launch
from .programs import program_with_macros

__all__ = [
    "BITS", "apart_from", "as_array", "bits_of", "check_writable", "contiguous_copy", "convert", "copy_into",
    "fill_with", "make_contiguous", "source_for",
]  # fmt: skip

_PLANS = 4096
BITS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}  # elements that are not converted are moved as bits

DType = np.dtype[Any]
Shape = tuple[int, ...]


def as_array(caller: str, x: Any) -> Array:
    """Convert an argument to an array. NumPy's and other libraries' arrays are accepted, but not lists or numbers.

    Raises
    ------
    TypeError
    """
    if isinstance(x, Array):
        return x
    if isinstance(x, (np.ndarray, np.generic)) or hasattr(x, "__dlpack__"):
        return asarray(x)
    raise TypeError(f"{caller}: takes an array; got {type(x).__name__}. Pass mnb.asarray(…).")


def source_for(caller: str, x: Array, value: Any) -> Array:
    """Convert a value that is to be written into x. Python numbers, and sequences of numbers, take x's dtype.

    Raises
    ------
    OverflowError
        If the dtype cannot represent one of the numbers.
    ArgumentError
        If the value is an array on another engine.
    """
    if isinstance(value, Array):
        source = value
    else:
        is_python = isinstance(value, (bool, int, float, list, tuple, range))
        source = asarray(value, dtype=x.dtype if is_python else None, device=x.device)
    check_engine(x.block.engine, caller, source)
    return source


def check_writable(caller: str, x: Array) -> None:
    """Refuse to write into a broadcast view, whose elements share memory.

    Raises
    ------
    ValueError
    """
    if x.repeats:
        raise ValueError(f"{caller}: x is broadcast, shape {x.shape}: elements share memory. Use x.copy().")


def bits_of(x: Array) -> Array:
    """View elements as unsigned integers of the same width, for a kernel that only moves them."""
    return Array(x.block, np.dtype(f"u{x.itemsize}"), x.shape, x.strides, x.offset)


def convert(x: Array, dtype: DType) -> Array:
    """Return the array converted to a dtype, or the array itself if it has that dtype."""
    return x if x.dtype == dtype else copy_into(empty(x.shape, dtype, x.engine), x)


def make_contiguous(x: Array) -> Array:
    """Return the array itself if a kernel can use a pointer to its first element, else a contiguous copy."""
    fits = x.contiguous and (x.offset == 0 or x.engine.caps.offsets)
    return x if fits else contiguous_copy(x)


def contiguous_copy(x: Array, shape: Shape | None = None) -> Array:
    """Return a contiguous copy, broadcast to a shape."""
    return copy_into(empty(x.shape if shape is None else shape, x.dtype, x.engine), x)


def apart_from(target: Array, x: Array) -> Array:
    """Return x, or a copy of it if writing to the target could change elements of x before they are read."""
    if target.block is not x.block and not (target.block.shared and x.block.shared):
        return x
    layout, other = ((a.host.ctypes.data, a.strides, a.shape, a.dtype) for a in (target, x))
    return contiguous_copy(x) if layout != other and np.may_share_memory(target.host, x.host) else x


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
        number = np.array(value, out.dtype)
        launch = _launch(out.dtype, (), (), 0, out.dtype, out.shape, out.strides, out.offset, out.device)
        launch.start(number, out)
    return out


@functools.lru_cache(_PLANS)
def _launch(  # noqa: PLR0913, PLR0917  (everything that distinguishes copies)
    source: DType, shape: Shape, strides: Shape, offset: int, target: DType, target_shape: Shape, out_strides: Shape,
    out_offset: int, engine: str,
) -> Launch:  # fmt: skip
    size, out_size = source.itemsize, target.itemsize
    element_strides = tuple(s // size for s in broadcast_strides(strides, shape, target_shape))
    target_strip = Strip(tuple(s // out_size for s in out_strides), out_offset // out_size)
    strips = [Strip(element_strides, offset // size), target_strip]
    device, plan = device_of(named(engine).caps), plan_transposed(target_shape, strips)
    if plan is None:
        device_profile = CORES._replace(streams=device.streams)
        plan = plan_elementwise(target_shape, strips, device_profile, size + out_size)
        if plan.kinds == "gu" and not any(s for s, n in zip(element_strides, target_shape, strict=True) if n != 1):
            flat = plan.grid[1] == 1 and not any(s.offset for s in strips)
            plan = plan._replace(kinds="SU" if flat else "su")  # every element of the source is the same
        elif plan.kinds == "gu" and plan.inner[0] == -1:
            plan = plan._replace(kinds="ru")
    binary = _binary(_word(source, target), _word(target, source), plan.kinds, engine)
    return Launch(binary, plan.grid, plan.threadgroup, (plan.record,)).bind_records(named(engine))


def _word(dtype: DType, other: DType) -> str:
    return BITS[dtype.itemsize] if dtype == other else DTYPES[dtype.name]


@functools.cache
def _binary(source: str, target: str, kinds: str, engine: str) -> Any:
    if kinds == "turned":
        return program_with_macros("transpose.metal", engine, FROM=source, TO=target).transpose.binary
    macros = {"STREAMED": ""} if "V" in kinds else {}
    return program_with_macros("copy.metal", engine, FROM=source, TO=target, **macros)[f"copy_{kinds}"].binary
