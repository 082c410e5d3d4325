"""Pooling: one kernel computes the largest element or the mean of each window; also adaptive mean pooling."""

from __future__ import annotations

import functools
import itertools
import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.promotion import is_float
from ...engine import named
from ...plurals import quantity
from ...program import Program
from ..launching.copying import as_array, make_contiguous
from ..launching.launcher import Launch, dispatch
from ..launching.programs import compile_templates
from ..launching.reduction_launch import tag
from ..op import FLOATS, Op, op
from ..planning.device import LANES, device_of
from ..planning.packed_record import record
from .convolution import tuple_of

__all__ = ["adaptive_avg_pool2d", "avg_pool1d", "avg_pool2d", "max_pool1d", "max_pool2d"]

_NARROW_WIDTH = 16  # fewer adjacent positions do not fill a SIMD-group;
_WIDE_WIDTH = 1024  # … from this many positions, one pays off
_WINDOW = 64  # a GPU loads this many elements of a window at once
_WINDOWED = struct.Struct("<11If2IQ")
_THREADS = 256  # threads in a threadgroup on a GPU


class _Windows(NamedTuple):
    """The windows of a pooling, along each of an image's axes.

    Attributes
    ----------
    size, stride, padding, dilation : tuple of int
    ceil : bool
        Whether the last window may be cut off.
    """

    size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    ceil: bool

    def positions(self, image: tuple[int, ...]) -> tuple[int, ...]:
        """Return the number of positions along each axis of an image."""
        ceil = (self.ceil,) * len(image)
        return tuple(map(_position_count, image, self.size, self.stride, self.padding, self.dilation, ceil))


class _Mean(NamedTuple):
    """How a mean counts its elements; a maximum ignores these options."""

    count_padding: bool = True
    divisor: float | None = None


def _check_windows(
    caller: str, axes: int, size: Any, stride: Any, padding: Any, dilation: Any = 1, *, ceil: bool = False,
) -> _Windows:  # fmt: skip
    """Return the windows that a caller describes by a number or by one for each axis.

    Raises
    ------
    TypeError, ValueError
    """
    sizes = tuple_of(caller, "kernel_size", size, axes, smallest=1)
    strides = sizes if stride is None else tuple_of(caller, "stride", stride, axes, smallest=1)
    paddings = tuple_of(caller, "padding", padding, axes, smallest=0)
    dilations = tuple_of(caller, "dilation", dilation, axes, smallest=1)
    if any(2 * p > k for p, k in zip(paddings, sizes, strict=True)):
        raise ValueError(f"{caller}: padding must be at most half a window; got padding {paddings} of windows {sizes}.")
    return _Windows(sizes, strides, paddings, dilations, ceil)


def _pool(caller: str, x: Any, windows: _Windows, mean: _Mean | None = None) -> Array:
    """Return the mean of each window, or without `mean` its largest element."""
    axes = len(windows.size)
    x = as_array(caller, x)
    if not is_float(x.dtype):
        raise TypeError(f"{caller}: takes floats; got {x.dtype}. Pass x.astype(mnb.float32).")
    if x.ndim not in {axes + 1, axes + 2}:
        more_axes = quantity(axes, "more axis", "more axes")
        raise ValueError(f"{caller}: x must be (N, C, …) or (C, …) with {more_axes}; got shape {x.shape}.")
    image = x.shape[-axes:]
    positions = windows.positions(image)
    if any(n < 1 for n in positions):
        message = f"a window of {windows.size} does not fit into {image} with padding {windows.padding}."
        raise ValueError(f"{caller}: {message}")
    out = empty((*x.shape[:-axes], *positions), x.dtype, x.engine)
    if out.size:
        loads_windows = device_of(x.engine.caps).waits and math.prod(windows.size) <= _WINDOW
        (_start_windows if loads_windows else _start_positions)(make_contiguous(x), out, windows, mean)
    return out


def _pair(values: tuple[int, ...], filler: int) -> tuple[int, ...]:
    """Return two numbers, for columns and rows; a single axis is treated as columns."""
    return tuple(reversed((filler,) * (2 - len(values)) + tuple(values)))


def _geometry(image: tuple[int, ...], windows: _Windows) -> dict[str, tuple[int, ...]]:
    """Return the image and its windows as the record of ``pool.metal``."""
    return {
        "image": _pair(image, 1), "size": _pair(windows.size, 1), "stride": _pair(windows.stride, 1),
        "padding": _pair(windows.padding, 0), "dilation": _pair(windows.dilation, 1),
    }  # fmt: skip


def _start_windows(x: Array, out: Array, windows: _Windows, mean: _Mean | None) -> None:
    """Start the kernel that loads a whole window at once; on a GPU."""
    axes = len(windows.size)
    counted, divisor = mean or _Mean()
    numbers = (
        *itertools.chain(*_geometry(x.shape[-axes:], windows).values()), int(counted), float(divisor or 0),
        *_pair(out.shape[-axes:], 1),
    )  # fmt: skip
    images = math.prod(x.shape[:-axes])
    _windows_launch(tag(x.dtype), numbers, x.offset // x.itemsize, images, x.device, is_max=mean is None).start(x, out)


def _start_positions(x: Array, out: Array, windows: _Windows, mean: _Mean | None) -> None:
    """Start the kernel with a thread for each position, or on a CPU with a SIMD-group for lines of positions."""
    axes = len(windows.size)
    counted, divisor = mean or _Mean()
    settings = {**_geometry(x.shape[-axes:], windows), "counted": int(counted), "divisor": float(divisor or 0)}
    kernels, name, images = _program(tag(x.dtype), x.device), "mean" if mean else "max", math.prod(x.shape[:-axes])
    columns, rows = _pair(out.shape[-axes:], 1)
    if columns < _NARROW_WIDTH or not x.engine.caps.serial:
        dispatch(kernels[name], x, out, settings, grid=(columns, rows, images))
        return
    rows_per_simdgroup = max(1, min(rows, _WIDE_WIDTH // columns))
    lines = {"columns": columns, "rows": rows, "rows_per_simdgroup": rows_per_simdgroup}
    step = windows.stride[-1] if windows.stride[-1] <= 2 else 0
    dispatch(kernels[f"{name}_{step}"], x, out, settings, lines,
             grid=(-(-rows // rows_per_simdgroup) * LANES, images), threadgroup=(LANES, 1))  # fmt: skip


def _position_count(n: int, k: int, s: int, p: int, d: int, ceil: bool) -> int:
    """Count a window's positions along an axis; rounded up, the last one still begins in the image or before it."""
    room = n + 2 * p - d * (k - 1) - 1
    count = (-(-room // s) if ceil else room // s) + 1
    return count - int(ceil and (count - 1) * s >= n + p)


@functools.lru_cache(256)
def _windows_launch(
    element: str, numbers: tuple[float, ...], start: int, images: int, engine: str, *, is_max: bool
) -> Launch:
    """Compile the kernel for a fixed size of windows: `numbers` are ``pool.metal``'s Windowed."""
    width, height, columns, down = *numbers[2:4], *numbers[-2:]
    template = f"pool_windows<{element}, {str(is_max).lower()}, {width}, {height}>"
    binary = compile_templates("pool.metal", {"pool_windows": template}, engine)["pool_windows"].binary
    packed = record(_WINDOWED, *numbers, start)
    return Launch(binary, (int(columns * down), images, 1), (_THREADS, 1, 1), (packed,)).bind_records(named(engine))


@functools.cache
def _program(element: str, engine: str) -> Program:
    templates = {}
    for name, is_max in (("max", "true"), ("mean", "false")):
        templates[name] = f"pool<{element}, {is_max}>"
        templates |= {f"{name}_{stride}": f"pool_lines<{element}, {is_max}, {stride}>" for stride in range(3)}
    return compile_templates("pool.metal", templates, engine)


def _reference(axes: int, *, is_max: bool) -> Any:
    def reference(
        x: Any, size: Any, stride: Any = None, padding: Any = 0, *, dilation: Any = 1, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: float | None = None,
    ) -> Any:  # fmt: skip
        k, p, d = (np.broadcast_to(v, axes) for v in (size, padding, dilation))
        s = np.broadcast_to(size if stride is None else stride, axes)
        images = x.shape[-axes:]
        positions = [_position_count(*map(int, v), ceil_mode) for v in zip(images, k, s, p, d, strict=True)]  # type: ignore[call-arg, arg-type]
        out = np.empty((*x.shape[:-axes], *positions))
        for at in np.ndindex(*positions):
            first = [i * a - b for i, a, b in zip(at, s, p, strict=True)]
            cuts = [[f + j * c for j in range(n)] for f, n, c in zip(first, k, d, strict=True)]
            inside = [[j for j in cut if 0 <= j < n] for cut, n in zip(cuts, images, strict=True)]
            part = x[(..., *np.ix_(*inside))]
            if is_max:
                value = part.max(tuple(range(-axes, 0)), initial=-np.inf)
            else:
                ends = [n + b for n, b in zip(images, p, strict=True)] if count_include_pad else images
                starts = first if count_include_pad else [max(f, 0) for f in first]
                count = math.prod(min(f + n, e) - b for f, n, e, b in zip(first, k, ends, starts, strict=True))
                value = part.sum(tuple(range(-axes, 0))) / (divisor_override or count)
            out[(..., *at)] = value
        return out

    return reference


def _size(x: Any, *rest: Any) -> Any:
    return np.maximum(np.abs(rest[-1]), np.abs(x).max(initial=0.0))


def _row(name: str, axes: int, *, is_max: bool) -> Callable[[Callable[..., Any]], Op]:
    bounds = {} if is_max else {"float32": 6.0, "float16": 0.52, "bfloat16": 0.51}
    return op("neural", reference=_reference(axes, is_max=is_max), dtypes=FLOATS, kernels=("pool.metal",), flops=9,
              tolerance=bounds, cite=f"PyTorch, ``{name}``", size=None if is_max else _size)  # fmt: skip


@_row("max_pool2d", 2, is_max=True)
def max_pool2d(
    x: Array, kernel_size: Any, /, stride: Any = None, padding: Any = 0, *, dilation: Any = 1, ceil_mode: bool = False
) -> Array:
    """Return the largest element of each window of images, or NaN if the window has one.

    Parameters
    ----------
    x : Array (N, C, H, W) or (C, H, W)
    kernel_size : int or pair of int
        Rows and columns of a window.
    stride : int or pair of int, optional
        The step from one window to the next; by default the window's size.
    padding : int or pair of int
        Positions around the image that windows may cover, at most half a window; they are ignored.
    dilation : int or pair of int
        The step from one element of a window to the next.
    ceil_mode : bool
        Whether the last window may be cut off.

    Returns
    -------
    Array
        With x's dtype.

    Raises
    ------
    ValueError
        If no window fits.
    """
    windows = _check_windows("max_pool2d", 2, kernel_size, stride, padding, dilation, ceil=ceil_mode)
    return _pool("max_pool2d", x, windows)


@_row("avg_pool2d", 2, is_max=False)
def avg_pool2d(
    x: Array, kernel_size: Any, /, stride: Any = None, padding: Any = 0, *, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: float | None = None,
) -> Array:  # fmt: skip
    """Return the mean of each window of images; parameters as for `max_pool2d`.

    `count_include_pad` counts the padding as zeros; `divisor_override` replaces the count as the divisor.
    """
    windows = _check_windows("avg_pool2d", 2, kernel_size, stride, padding, ceil=ceil_mode)
    return _pool("avg_pool2d", x, windows, _Mean(count_include_pad, divisor_override))


@_row("max_pool1d", 1, is_max=True)
def max_pool1d(
    x: Array, kernel_size: Any, /, stride: Any = None, padding: Any = 0, *, dilation: Any = 1, ceil_mode: bool = False
) -> Array:
    """Like `max_pool2d`, over one axis: x (N, C, L) or (C, L)."""
    windows = _check_windows("max_pool1d", 1, kernel_size, stride, padding, dilation, ceil=ceil_mode)
    return _pool("max_pool1d", x, windows)


@_row("avg_pool1d", 1, is_max=False)
def avg_pool1d(
    x: Array, kernel_size: Any, /, stride: Any = None, padding: Any = 0, *, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:  # fmt: skip
    """Like `avg_pool2d`, over one axis: x (N, C, L) or (C, L)."""
    windows = _check_windows("avg_pool1d", 1, kernel_size, stride, padding, ceil=ceil_mode)
    return _pool("avg_pool1d", x, windows, _Mean(count_include_pad))


def _adaptive_reference(x: Any, size: Any) -> Any:
    rows, columns = np.broadcast_to(size, 2)
    out = np.empty((*x.shape[:-2], rows, columns))
    for i, j in np.ndindex(rows, columns):
        bounds = zip((i, j), x.shape[-2:], (rows, columns), strict=True)
        cuts = [slice(a * n // m, -(-(a + 1) * n // m)) for a, n, m in bounds]
        out[..., i, j] = x[(..., *cuts)].mean((-2, -1))
    return out


@op("neural", reference=_adaptive_reference, dtypes=FLOATS, kernels=("pool.metal",), flops=2,
    cite="PyTorch, ``adaptive_avg_pool2d``",
    tolerance={"float32": 6.0, "float16": 0.52, "bfloat16": 0.51},
    size=_size)  # fmt: skip
def adaptive_avg_pool2d(x: Array, output_size: Any, /) -> Array:
    """Return means of as many windows as make images of a given size: x (N, C, H, W) or (C, H, W).

    Raises
    ------
    ValueError
        If an axis is not a multiple of its new length, so that windows would have several sizes.
    """
    x = as_array("adaptive_avg_pool2d", x)
    size = tuple_of("adaptive_avg_pool2d", "output_size", output_size, 2, smallest=1)
    if x.ndim < 3 or any(n % m for n, m in zip(x.shape[-2:], size, strict=True)):
        message = f"adaptive_avg_pool2d: the image of {x.shape} does not divide evenly into {size}"
        raise ValueError(f"{message}. Use avg_pool2d.")
    window = tuple(n // m for n, m in zip(x.shape[-2:], size, strict=True))
    return _pool("adaptive_avg_pool2d", x, _check_windows("adaptive_avg_pool2d", 2, window, window, 0), _Mean())
