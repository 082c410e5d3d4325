"""Run convolutions as planned: with ``convolve.metal``, or on a GPU as products with windows."""

from __future__ import annotations

import functools
import math
import struct
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array, empty
from ...engine import named
from ...program import Program
from ..planning.convolution_plan import FORMS, Windows, plan_channels, plan_convolution, plan_depthwise
from ..planning.device import LANES, Device, device_of
from ..planning.packed_record import record
from ..planning.product_matrices import Strided
from ..planning.product_plan import plan_windows
from ..planning.threads_per_row import grid_of_threads
from .copying import contiguous_copy, convert, make_contiguous
from .launcher import Launch, is_aligned
from .product_launch import CompiledProduct, compile_plan, start_product
from .programs import compile_templates
from .reduction_launch import tag

__all__ = ["convolve", "convolve_by_channels", "convolve_by_product"]

Shape = tuple[int, ...]

_FLOAT = np.dtype(np.float32)
_WINDOW = struct.Struct("<10I2i2I")  # as in tile_loads.h
_MAX_BYTES = 1 << 26  # lay out at most this many bytes of images at once


class _Part(NamedTuple):
    """Dispatches that convolve part of a batch's images."""

    elements_laid_out: int  # elements of images to lay out first; 0 if the images are read in place
    layout_launch: Launch | None
    sum_launch: Launch


def convolve(x: Array, weight: Array, bias: Array | None, window: Windows, groups: int) -> Array | None:
    """Convolve images.

    Parameters
    ----------
    x : Array (N, C, H, W) or (N, C, W)
    weight : Array (O, C / groups, h, w) or (O, C / groups, w)
        With x's dtype and engine, like `bias`.
    bias : Array (O,) or None
    window : Windows
        Windows that fit into the padded images.
    groups : int

    Returns
    -------
    Array (N, O, H', W') or (N, O, W')
        In x's dtype, with sums in float32; None if an image is too large for the kernel.
    """
    out = empty((x.shape[0], weight.shape[0], *window.positions(x.shape[2:])), x.dtype, x.engine)
    if not out.size:
        return out
    x, weight, bias_array, offsets = _operands(x, weight, bias)
    parts = _parts(x.shape, x.offset, weight.shape, offsets, window, groups, x.dtype, x.device)
    if parts is None:
        return None
    for part in parts:
        images = x
        if part.layout_launch is not None:
            images = empty((part.elements_laid_out,), _FLOAT, x.engine)
            part.layout_launch.start(x, images)
        part.sum_launch.start(images, weight, bias_array, out)
    return out


def _operands(x: Array, weight: Array, bias: Array | None) -> tuple[Array, Array, Any, tuple[int, int]]:
    """Return the images, weights and biases that the kernels read, and the byte offsets of the weights and biases."""
    x, weight = make_contiguous(x), make_contiguous(convert(weight, _FLOAT))
    bias_array: Any = np.zeros(weight.shape[0], np.float32) if bias is None else make_contiguous(convert(bias, _FLOAT))
    return x, weight, bias_array, (weight.offset, 0 if bias is None else bias_array.offset)


def convolve_by_channels(x: Array, weight: Array, bias: Array | None, window: Windows, groups: int) -> Array | None:
    """Convolve as `convolve` does, each channel separately, on a GPU.

    Return None if groups have more than one channel, or the windows are too large.
    """
    out = empty((x.shape[0], weight.shape[0], *window.positions(x.shape[2:])), x.dtype, x.engine)
    if not out.size:
        return out
    x, weight, bias_array, offsets = _operands(x, weight, bias)
    launch = _depthwise(x.shape, x.offset, weight.shape, offsets, window, groups, x.dtype, x.device)
    if launch is None:
        return None
    launch.start(x, weight, bias_array, out)
    return out


@functools.lru_cache(256)
def _depthwise(
    x: Shape, offset: int, weight: Shape, offsets: tuple[int, int], window: Windows, groups: int, dtype: np.dtype[Any],
    device: str,
) -> Launch | None:  # fmt: skip
    if len(weight) == 3:
        window, x, weight = window.of_one_row, (*x[:2], 1, x[2]), (*weight[:2], 1, weight[2])
    plan = plan_depthwise(x[1:], weight, window, groups)
    if plan is None or plan.threads * x[0] >= 1 << 32:
        return None
    template = f"depthwise<{tag(dtype)}, {', '.join(map(str, plan.template_arguments))}>"
    binary = compile_templates("depthwise.metal", {"depthwise": template}, device)["depthwise"].binary
    packed = plan.record(offset // dtype.itemsize, offsets[0] // 4, offsets[1] // 4)
    return Launch(binary, *grid_of_threads(plan.threads * x[0]), (packed,)).bind_records(named(device))


def convolve_by_product(x: Array, weight: Array, window: Windows, groups: int) -> Array | None:
    """Convolve as `convolve` does, without a bias, by a matrix product.

    Its second factor is read from the images in place. Return None if there are too few outputs, or the channels do not
    fill whole strips.
    """
    outputs, channels = weight.shape[0], weight.shape[1]
    out = empty((x.shape[0], outputs, *window.positions(x.shape[2:])), x.dtype, x.engine)
    if not out.size:
        return out
    device = device_of(x.engine.caps)
    # Put channels last, so that all channels of one window element are adjacent.
    channel_last = contiguous_copy(weight.viewed(np.moveaxis(weight.host, 1, -1)))
    weights_aligned = is_aligned(channel_last)
    last = device.copies and weights_aligned and x.itemsize == 2 and not channels % LANES
    shape, x = x.shape, contiguous_copy(x.viewed(np.moveaxis(x.host, 1, -1))) if last else make_contiguous(x)
    product = _windows(
        shape, x.offset, (outputs, channels), window, groups, x.dtype, device, x.device, is_aligned=weights_aligned,
        channels_last=last,
    )  # fmt: skip
    if product is None:
        return None
    start_product(product, channel_last, x, out)
    return out


@functools.lru_cache(256)
def _windows(  # noqa: PLR0913  (everything that determines a plan)
    shape: tuple[int, ...], offset: int, lines: tuple[int, int], geometry: Windows, groups: int, dtype: np.dtype[Any],
    device: Device, engine: str, *, is_aligned: bool, channels_last: bool,
) -> CompiledProduct | None:  # fmt: skip
    if len(shape) == 3:  # one axis is treated as images of one row
        geometry, shape = geometry.of_one_row, (*shape[:2], 1, shape[2])
    outputs, channels = lines
    image, terms = shape[2:], channels * math.prod(geometry.size)
    positions = geometry.positions(image)
    padding_before = tuple(p for p, _ in geometry.padding)
    pairs = (image, positions, geometry.size, geometry.stride, geometry.dilation, padding_before)
    numbers = (v for pair in pairs for v in reversed(pair))
    window = record(_WINDOW, *numbers, channels, groups * channels)
    weights = Strided((groups, outputs // groups, terms), (outputs // groups * terms, terms, 1), 0)
    images = Strided((shape[0], groups, channels, *image), (), offset // dtype.itemsize)
    settings = (math.prod(positions), window, dtype.name, device)
    plan = plan_windows(weights, images, *settings, aligned=is_aligned, channels_last=channels_last)
    return None if plan is None else compile_plan(plan, named(engine))


@functools.lru_cache(256)
def _parts(
    x: Shape, offset: int, weight: Shape, offsets: tuple[int, int], window: Windows, groups: int, dtype: np.dtype[Any],
    device: str,
) -> tuple[_Part, ...] | None:  # fmt: skip
    """Prepare the dispatches; `offsets` are the offsets of the weights and of the biases, in bytes."""
    if len(weight) == 3:
        window, x, weight = window.of_one_row, (*x[:2], 1, x[2]), (*weight[:2], 1, weight[2])
    engine, kernels = named(device), _program(tag(dtype), device)
    channels_plan = plan_channels(x[1:], weight, window, groups)
    if channels_plan is not None and engine.caps.serial:
        packed = channels_plan.record(offset // dtype.itemsize, offsets[0] // 4, offsets[1] // 4, 0)
        binary = kernels[f"convolve_channels_{channels_plan.stride}"].binary
        grid = (channels_plan.grid[0], channels_plan.grid[1] * x[0], 1)
        return (_Part(0, None, Launch(binary, grid, (LANES, 1, 1), (packed,)).bind_records(engine)),)
    plan = plan_convolution(x[1:], weight, window, groups, is_contiguous_float32=dtype == _FLOAT)
    if plan is None:
        return None
    image_layout = plan.image_layout
    batch, image, result = x[0], math.prod(x[1:]), weight[0] * plan.size
    step = batch if image_layout is None else min(batch, max(1, _MAX_BYTES // (4 * image_layout.elements)))
    parts = []
    for first in range(0, batch, step):
        count = min(step, batch - first)
        begin, laid_out, lay_launch = offset // dtype.itemsize + first * image, 0, None
        if image_layout is not None:
            grid = (image_layout.grid[0], image_layout.grid[1] * count, 1)
            records = (image_layout.record(begin), image_layout.phases)
            lay_launch = Launch(kernels[image_layout.kernel].binary, grid, (LANES, 1, 1), records).bind_records(engine)
            begin, laid_out = 0, count * image_layout.elements + plan.spare
        packed = plan.record(begin, offsets[0] // 4, offsets[1] // 4, first * result)
        grid = (*plan.grid[:2], plan.grid[2] * count)
        binary = kernels[f"convolve_{plan.rows}_{plan.panels}"].binary
        sum_launch = Launch(binary, grid, (LANES, 1, 1), (packed, plan.terms)).bind_records(engine)
        parts.append(_Part(laid_out, lay_launch, sum_launch))
    return tuple(parts)


@functools.cache
def _program(element: str, engine: str) -> Program:
    templates = {f"{name}_{s}": f"{name}<{element}, {s}>" for name in ("lay", "convolve_channels") for s in range(3)}
    for rows, panel_counts in FORMS.items():
        templates |= {f"convolve_{rows}_{n}": f"convolve<{element}, {rows}, {n}>" for n in panel_counts}
    return compile_templates("convolve.metal", templates, engine)
