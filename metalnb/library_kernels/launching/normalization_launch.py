"""Run softmax and norms along an axis, with ``softmax.metal`` and ``norm.metal``."""

from __future__ import annotations

import functools
import math
import struct
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import check_engine
from ...arrays.promotion import is_float
from ...engine import named
from ...program import Program
from ..planning.axes import axis_of
from ..planning.device import LANES, device_of
from ..planning.long_row_splits import split, split_rows
from ..planning.packed_record import record
from ..planning.threads_per_row import grid_of_groups, grid_of_rows, threads_for_row
from .copying import as_array, contiguous_copy, convert
from .launcher import Launch, no_value
from .programs import compile_templates
from .reduction_launch import Monoid, reduce, tag

__all__ = ["normalize_groups", "normalize_rows", "start_softmax"]

_FLOAT = np.dtype(np.float32)
_SHARE_INCLUDE = "#include <metalnb/softmax.metal>"  # defines Share and LogShare
_SOFTMAX = struct.Struct("<3q5I4x")
_NORM = struct.Struct("<2q3If")
_CACHED = 65536  # a row of up to this many elements stays in cache for the second pass
_MAX_EXPONENTIALS = 16384  # … if its exponentials must stay in cache, too
_COLUMNS = 8192  # a stretch of adjacent columns has at least this many elements
_NORMS = ("layer_norm", "rms_norm", "layer_norm_shared", "rms_norm_shared", "group_norm")
_LAUNCHES = 512  # launches to keep
_ENOUGH_ROWS = 64  # from this many rows on, a SIMD-group takes an entire row of any length


class _Rows(NamedTuple):
    """The rows of a normalization, as the record ``Norm`` of ``norm.metal`` describes them."""

    offset: int
    number: int
    length: int
    has_weight: bool
    has_bias: bool
    eps: float

    def packed(self) -> np.ndarray[Any, Any]:
        return record(_NORM, self.offset, self.length, self.length, self.has_weight, self.has_bias, self.eps)


def _floats(caller: str, x: Any) -> Array:
    """Convert an argument to a contiguous array of floats; integers become float32."""
    x = as_array(caller, x)
    if x.dtype == np.bool_:
        raise TypeError(f"{caller}: takes numbers; got bool. Pass x.astype(mnb.float32).")
    if not is_float(x.dtype):
        x = convert(x, _FLOAT)
    return contiguous_copy(x) if not x.contiguous else x


def start_softmax(caller: str, x: Any, axis: Any, *, log: bool) -> Array:
    """Return the softmax along an axis, or the logarithm of the softmax."""
    x = _floats(caller, x)
    axis_index = axis_of(caller, axis, x.ndim)
    out = empty(x.shape, x.dtype, x.engine)
    if 0 in x.shape:
        return out
    count, outer, width = x.shape[axis_index], math.prod(x.shape[:axis_index]), math.prod(x.shape[axis_index + 1 :])
    program = _softmax_program(tag(x.dtype), x.device, log=log)
    offset, pitch = x.offset // x.itemsize, count * width
    device = device_of(x.engine.caps)
    if width == 1 and (count <= _CACHED or outer >= _ENOUGH_ROWS):
        packed = record(_SOFTMAX, offset, pitch, 1, count, count, count, 1, 1)
        threads = threads_for_row(count, device)
        launch_grid = grid_of_rows(outer, threads) if threads else grid_of_groups(outer, device)
        keeps_row = x.engine.caps.serial and not log and x.dtype == _FLOAT and count <= _MAX_EXPONENTIALS
        name = "shared" if threads else "kept" if keeps_row else "rows"
        Launch(program[name].binary, *launch_grid, (packed,)).start(x, out)
        return out
    if width == 1:
        kernel, stretches = "stretch", split_rows(count, outer, LANES, device)
    else:
        kernel, stretches = "columns", split(count, max(1, _COLUMNS // width), -(-device.simd_groups // outer))
    element = tag(x.dtype)
    largest = reduce(x, (axis_index,), Monoid("Maximum", element, "float", "float", "float"), _FLOAT)
    share = Monoid("LogShare" if log else "Share", element, "float", "float", "float", _SHARE_INCLUDE)
    shares = reduce(x, (axis_index,), share, _FLOAT, about=largest)
    packed = record(
        _SOFTMAX, offset, pitch, width, count, stretches.stretch, stretches.rest, stretches.parts, width,
    )  # fmt: skip
    launch = Launch(program[kernel].binary, *grid_of_groups(outer * stretches.parts, device), (packed,))
    launch.start(x, largest, shares, out)
    return out


@functools.cache
def _softmax_program(element: str, engine: str, *, log: bool) -> Program:
    arguments = f"<{element}, {str(log).lower()}>"
    templates = {name: f"softmax_{name}{arguments}" for name in ("rows", "shared", "stretch", "columns")}
    templates["kept"] = f"softmax_kept<{element}>"
    return compile_templates("softmax.metal", templates, engine)


def normalize_rows(caller: str, kernel: str, x: Any, weight: Any, bias: Any, eps: float) -> Array:
    """Normalize the rows of an array with a kernel of ``norm.metal``.

    Raises
    ------
    ValueError
        If the array is 0-d, or the weights do not have the length of the rows.
    """
    x = _floats(caller, x)
    if x.ndim == 0:
        raise ValueError(f"{caller}: x must have at least one axis; got shape ().")
    count = x.shape[-1]
    factors = [None if p is None else as_array(caller, p) for p in (weight, bias)]
    check_engine(x.engine, caller, *(p for p in factors if p is not None))
    for name, p in zip(("weight", "bias"), factors, strict=True):
        if p is not None and p.shape != (count,):
            raise ValueError(f"{caller}: {name} must have the shape of x's last axis, ({count},); got {p.shape}.")
    out = empty(x.shape, x.dtype, x.engine)
    if 0 in x.shape:
        return out
    extra = [x if p is None else _from_first(convert(p, x.dtype)) for p in factors]
    rows = _Rows(x.offset // x.itemsize, x.size // count, count, weight is not None, bias is not None, float(eps))
    _along_rows(kernel, tag(x.dtype), x.device, rows).start(x, *extra, out)
    return out


@functools.lru_cache(_LAUNCHES)
def _along_rows(kernel: str, element: str, engine: str, rows: _Rows) -> Launch:
    device = device_of(named(engine).caps)
    threads = threads_for_row(rows.length, device)
    launch_grid = grid_of_rows(rows.number, threads) if threads else grid_of_groups(rows.number, device)
    binary = _norm_program(element, engine)[f"{kernel}_shared" if threads else kernel].binary
    return Launch(binary, *launch_grid, (rows.packed(),)).bind_records(named(engine))


def normalize_groups(x: Array, groups: int, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """Normalize groups of channels of a float array (N, C, …) with one kernel: a SIMD-group takes each group.

    Parameters
    ----------
    x : Array
        Not empty.
    groups : int
        A divisor of C.
    weight, bias : Array (C,) of float32, or None
    eps : float
    """
    x = _floats("group_norm", x)
    out = empty(x.shape, x.dtype, x.engine)
    channels = (x.shape[1] // groups, math.prod(x.shape[2:]), groups)
    factors = [no_value(x.device) if p is None else _from_first(p) for p in (weight, bias)]
    rows = _Rows(
        x.offset // x.itemsize, x.shape[0] * groups, channels[0] * channels[1], weight is not None, bias is not None,
        float(eps),
    )  # fmt: skip
    _along_groups(tag(x.dtype), x.device, rows, channels).start(x, *factors, out)
    return out


@functools.lru_cache(_LAUNCHES)
def _along_groups(element: str, engine: str, rows: _Rows, channels: tuple[int, int, int]) -> Launch:
    launch_grid = grid_of_groups(rows.number, device_of(named(engine).caps))
    binary = _norm_program(element, engine)["group_norm"].binary
    return Launch(binary, *launch_grid, (rows.packed(), np.array(channels, np.uint32))).bind_records(named(engine))


def _from_first(x: Array) -> Array:
    """Return the array if it starts at the beginning of its block, otherwise a copy."""
    return x if x.contiguous and x.offset == 0 else contiguous_copy(x)


@functools.cache
def _norm_program(element: str, engine: str) -> Program:
    return compile_templates("norm.metal", {name: f"{name}<{element}>" for name in _NORMS}, engine)
