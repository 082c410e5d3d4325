"""Convolutions, as sums over the images in place or over a padded layout of the images.

``convolve.metal`` computes them. On a GPU with tiles they are products of weights with windows, whose elements the
tiles read from the images. If channels do not fill strips, one copy lays out the windows first.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import check_engine
from ...arrays.promotion import is_float, promote
from ...plurals import quantity
from ..elementwise.elementwise_by_name import BY_NAME
from ..launching.convolution_launch import convolve, convolve_by_channels, convolve_by_product
from ..launching.copying import as_array, contiguous_copy, convert, copy_into, fill_with, make_contiguous
from ..linear_algebra.matrix_products import matmul
from ..op import FLOATS, LeastTraffic, Op, OpRow
from ..planning.convolution_plan import Windows
from ..planning.device import device_of

__all__ = ["conv1d", "conv2d", "pad_edges", "tuple_of", "windows"]

Shape = tuple[int, ...]

_MAX_BYTES = 1 << 28  # lay out at most this many bytes of windows at once


class _Convolution(Op):
    """An op that sums a window's products for each element of the result."""

    def __metal_traffic__(self, x: Any, weight: Any, *rest: Any, **options: Any) -> LeastTraffic:
        """Return the least bytes that a call must move, and its operations."""
        nbytes = super().__metal_traffic__(x, weight, *rest, **options)
        result = self(x, weight, *rest, **options)
        return LeastTraffic(nbytes.bytes, 2 * result.size * math.prod(weight.shape[1:]))


def tuple_of(caller: str, name: str, value: Any, count: int, *, smallest: int) -> Shape:
    """Return an integer for each axis, from one integer or several."""
    values = tuple(value) if isinstance(value, Iterable) else (value,) * count
    if len(values) == 1:
        values *= count
    rule = f"{caller}: {name} must be {count} integers, {smallest} or more; got {value!r}."
    try:
        result = tuple(operator.index(v) for v in values)
    except TypeError:
        raise ValueError(rule) from None
    if len(result) != count or any(v < smallest for v in result):
        raise ValueError(rule)
    return result


def pad_edges(x: Array, padding: Sequence[tuple[int, int]], value: float) -> Array:
    """Return the array padded with a number along its last axes."""
    if not any(map(any, padding)):
        return x
    lead = x.ndim - len(padding)
    shape = (*x.shape[:lead], *(n + a + b for n, (a, b) in zip(x.shape[lead:], padding, strict=True)))
    out = fill_with(empty(shape, x.dtype, x.engine), value)
    inner = tuple(slice(a, a + n) for n, (a, _) in zip(x.shape[lead:], padding, strict=True))
    copy_into(out[(..., *inner)], x)
    return out


def windows(x: Array, size: Shape, stride: Shape, dilation: Shape) -> Array:
    """View (…, *axes) as (…, *size, *places): the elements of each window, for each of its positions."""
    count = len(size)
    shape, strides = x.shape[-count:], x.strides[-count:]
    positions = tuple((n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(shape, size, stride, dilation, strict=True))
    window_axes = tuple(t * d for t, d in zip(strides, dilation, strict=True))
    position_axes = tuple(t * s for t, s in zip(strides, stride, strict=True))
    lead = x.ndim - count
    strides = (*x.strides[:lead], *window_axes, *position_axes)
    return Array(x.block, x.dtype, (*x.shape[:lead], *size, *positions), strides, x.offset)


def _padding_widths(
    caller: str, padding: Any, size: Shape, stride: Shape, dilation: Shape
) -> tuple[tuple[int, int], ...]:
    """Return the padding before and after each axis."""
    if padding == "valid":
        return ((0, 0),) * len(size)
    if padding == "same":
        if any(s != 1 for s in stride):
            raise ValueError(f"{caller}: padding='same' needs stride=1; got {stride}.")
        total = [d * (k - 1) for k, d in zip(size, dilation, strict=True)]
        return tuple((w // 2, w - w // 2) for w in total)
    return tuple((p, p) for p in tuple_of(caller, "padding", padding, len(size), smallest=0))


def _convolve(  # noqa: PLR0913, PLR0917  (PyTorch's parameters)
    caller: str, axes: int, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Array:
    arrays = [as_array(caller, a) for a in (x, weight, *(() if bias is None else (bias,)))]
    check_engine(arrays[0].engine, caller, *arrays)
    dtype = arrays[0].dtype
    for a in arrays[1:]:
        dtype = promote(dtype, a.dtype, caller)
    if not is_float(dtype):
        raise TypeError(f"{caller}: takes floats; got {dtype}. Pass x.astype(mnb.float32).")
    x, weight, *rest = (convert(a, dtype) for a in arrays)
    is_single = x.ndim == axes + 1
    x = x[None] if is_single else x
    groups = operator.index(groups)
    if x.ndim != axes + 2 or weight.ndim != axes + 2:
        more_axes = quantity(axes, "more axis", "more axes")
        raise ValueError(f"{caller}: needs x (N, C, …) and weight (O, C / groups, …) with {more_axes} each; got "
                         f"{arrays[0].shape} and {weight.shape}.")  # fmt: skip
    outputs, channels = weight.shape[:2]
    if groups < 1 or channels * groups != x.shape[1] or outputs % groups:
        channels_text = f"{quantity(x.shape[1], 'channel')} in {quantity(groups, 'group')}"
        raise ValueError(f"{caller}: x's {channels_text} do not match weight's shape {weight.shape}.")
    if rest and rest[0].shape != (outputs,):
        raise ValueError(f"{caller}: bias must have shape ({outputs},); got {rest[0].shape}.")
    size = weight.shape[2:]
    options = (("stride", stride), ("dilation", dilation))
    steps, dilations = (tuple_of(caller, n, v, axes, smallest=1) for n, v in options)
    window = Windows(size, steps, dilations, _padding_widths(caller, padding, size, steps, dilations))
    room = tuple(n + sum(p) for n, p in zip(x.shape[2:], window.padding, strict=True))
    reach = tuple(d * (k - 1) + 1 for k, d in zip(size, dilations, strict=True))
    if any(n < r for n, r in zip(room, reach, strict=True)):
        raise ValueError(f"{caller}: a window of {reach} does not fit into {room}, which includes the padding.")
    bias = rest[0] if rest else None
    result = None
    if 0 not in weight.shape and 0 not in x.shape:
        if not device_of(x.engine.caps).tile_threadgroups:
            result = convolve(x, weight, bias, window, groups)
        elif channels == 1 and groups > 1:
            result = convolve_by_channels(x, weight, bias, window, groups)
    if result is None:
        result = _multiply_in_place(x, weight, window, groups)
        if bias is not None:
            result = BY_NAME["add"](result, bias.reshape((-1, *(1,) * axes)), out=result)
    return result[0] if is_single else result


def _multiply_in_place(x: Array, weight: Array, window: Windows, groups: int) -> Array:
    """Multiply the weights with the windows, on a GPU in place in the images if possible."""
    tiles = device_of(x.engine.caps).tile_threadgroups
    result = None
    if tiles and math.prod(window.size) > 1 and 0 not in weight.shape and 0 not in x.shape:
        result = convolve_by_product(x, weight, window, groups)
    return _multiply_windows(pad_edges(x, window.padding, 0.0), weight, window, groups) if result is None else result


def _multiply_windows(x: Array, weight: Array, window: Windows, groups: int) -> Array:
    """Multiply the weights with copies of the windows, for part of the batch at a time if the copy would be large."""
    count = len(window.size)
    batch, outputs, channels = x.shape[0], *weight.shape[:2]
    groups_of_x = x if x.contiguous else contiguous_copy(x)
    groups_of_x = groups_of_x.reshape((batch, groups, channels, *x.shape[2:]))
    view = windows(groups_of_x, window.size, window.stride, window.dilation)
    positions = view.shape[-count:]
    terms, columns_axes = channels * math.prod(window.size), math.prod(positions)
    rows = make_contiguous(weight).reshape((groups, outputs // groups, terms))
    out = empty((batch, outputs, *positions), x.dtype, x.engine)
    if not out.size:
        return out
    if not terms:
        return fill_with(out, 0)
    if math.prod(window.size) == 1 and positions == x.shape[2:]:
        return matmul(rows, groups_of_x.reshape((batch, groups, channels, columns_axes))).reshape(out.shape)  # type: ignore[no-any-return]
    step = max(1, _MAX_BYTES // max(groups * terms * columns_axes * x.itemsize, 1))
    for first in range(0, batch, step):
        part = view[first : first + step]
        columns = contiguous_copy(part).reshape((part.shape[0], groups, terms, columns_axes))
        result = matmul(rows, columns).reshape((part.shape[0], outputs, *positions))
        if step >= batch:
            return result  # type: ignore[no-any-return]
        copy_into(out[first : first + step], result)
    return out


# ---- The ops ---------------------------------------------------------------------------------------------------------


def _reference(x: Any, weight: Any, bias: Any = None, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
               groups: int = 1) -> Any:  # fmt: skip
    """Add up the products for each element of the window."""
    axes = weight.ndim - 2
    if x.ndim == axes + 1:
        return _reference(x[None], weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)[0]
    step, dilations = (np.broadcast_to(v, axes) for v in (stride, dilation))
    if padding == "same":
        totals = [d * (k - 1) for k, d in zip(weight.shape[2:], dilations, strict=True)]
        pads = [(total // 2, total - total // 2) for total in totals]
    else:
        pads = [(p, p) for p in np.broadcast_to(0 if padding == "valid" else padding, axes)]
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    each_axis = zip(x.shape[2:], weight.shape[2:], step, dilations, strict=True)
    positions = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in each_axis]
    channels, outputs_per_group = weight.shape[1], weight.shape[0] // groups
    out = np.zeros((x.shape[0], weight.shape[0], *positions))
    for position in np.ndindex(*weight.shape[2:]):
        along_axes = zip(position, dilations, step, positions, strict=True)
        slices = tuple(slice(i * d, i * d + s * (n - 1) + 1, s) for i, d, s, n in along_axes)
        part = x[(slice(None), slice(None), *slices)]
        for g in range(groups):
            inputs = part[:, g * channels : (g + 1) * channels]
            rows = weight[(slice(g * outputs_per_group, (g + 1) * outputs_per_group), slice(None), *position)]
            out[:, g * outputs_per_group : (g + 1) * outputs_per_group] += np.einsum("oc,nc...->no...", rows, inputs)
    return out + (0 if bias is None else bias.reshape((-1, *(1,) * axes)))


def _size(x: Any, weight: Any, *rest: Any) -> Any:
    largest = np.abs(x).max(initial=0.0) * np.abs(weight).max(initial=0.0)
    return np.maximum(np.abs(rest[-1]), largest * math.sqrt(max(math.prod(weight.shape[1:]), 1)))


def _row(name: str) -> Callable[[Callable[..., Any]], Op]:
    kernels = ("convolve.metal", "depthwise.metal", "matmul.metal")
    row = OpRow("neural", reference=_reference, dtypes=FLOATS, kernels=kernels, size=_size,
                tolerance={"float32": 24.0, "float16": 1.0, "bfloat16": 1.0}, cite=f"PyTorch, ``{name}``")  # fmt: skip
    return lambda function: _Convolution(function, row)


@_row("conv2d")
def conv2d(
    x: Array, weight: Array, /, bias: Array | None = None, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Array:  # fmt: skip
    """Return the sums of products of windows of images with weights: a convolution, in neural networks' terms.

    Parameters
    ----------
    x : Array (N, C, H, W) or (C, H, W)
    weight : Array (O, C / groups, h, w)
    bias : Array (O,), optional
    stride, dilation : int or pair of int
        The step between windows, and the step between the elements of a window.
    padding : int, pair of int, "same" or "valid"
        Zeros around each image; ``same`` keeps its size, for a stride of 1.
    groups : int
        The number of groups of channels; each output uses one group.

    Returns
    -------
    Array (N, O, H', W')
        In the dtype that all promote to; summed in float32. H' = (H + 2 padding - dilation (h - 1) - 1) // stride + 1.

    Raises
    ------
    ValueError
        For shapes that do not fit, or if a window is larger than the padded image.
    """
    return _convolve("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


@_row("conv1d")
def conv1d(
    x: Array, weight: Array, /, bias: Array | None = None, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Array:  # fmt: skip
    """Like `conv2d`, over one axis: x (N, C, L) or (C, L), weight (O, C / groups, l)."""
    return _convolve("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)
