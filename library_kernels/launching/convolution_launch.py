"""Run convolutions by their plans: ``convolve.metal``, and as products with windows on a GPU."""

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
from ..planning.device import LANES, Device, device_of, grid_of_threads
from ..planning.packed_record import record
from ..planning.product_plan import Strided, plan_windows
from .copying import contiguous, converted, copied
from .launcher import Launch, aligned
from .product_launch import CompiledProduct, compiled, run
from .programs import instantiated
from .reduction_launch import tag

__all__ = ["by_channels", "convolved", "multiplied"]

Shape = tuple[int, ...]

_FLOAT = np.dtype(np.float32)
_WINDOW = struct.Struct("<10I2i2I")  # as in tile_loads.h
_MOST = 1 << 26  # lay out at most this many bytes of images at once


class _Part(NamedTuple):
    """Dispatches that convolve part of a batch's images."""

    laid: int  # elements of images that are laid out first; 0 if they are summed in place
    lay: Launch | None
    sum: Launch


def convolved(x: Array, weight: Array, bias: Array | None, over: Windows, groups: int) -> Array | None:
    """Convolve images.

    Parameters
    ----------
    x : Array (N, C, H, W) or (N, C, W)
    weight : Array (O, C / groups, h, w) or (O, C / groups, w)
        With x's dtype and engine, as is `bias`.
    bias : Array (O,) or None
    over : Windows
        Windows that fit into the padded images.
    groups : int

    Returns
    -------
    Array (N, O, H', W') or (N, O, W')
        In x's dtype, summed in float32; None if an image is too large for the kernel.
    """
    out = empty((x.shape[0], weight.shape[0], *over.places(x.shape[2:])), x.dtype, x.engine)
    if not out.size:
        return out
    x, weight, given, at = _operands(x, weight, bias)
    parts = _parts(x.shape, x.offset, weight.shape, at, over, groups, x.dtype, x.device)
    if parts is None:
        return None
    for part in parts:
        images = x
        if part.lay is not None:
            images = empty((part.laid,), _FLOAT, x.engine)
            part.lay.start(x, images)
        part.sum.start(images, weight, given, out)
    return out


def _operands(x: Array, weight: Array, bias: Array | None) -> tuple[Array, Array, Any, tuple[int, int]]:
    """Return images, weights and biases as the kernels read them, and the byte offsets of the last two."""
    x, weight = contiguous(x), contiguous(converted(weight, _FLOAT))
    given: Any = np.zeros(weight.shape[0], np.float32) if bias is None else contiguous(converted(bias, _FLOAT))
    return x, weight, given, (weight.offset, 0 if bias is None else given.offset)


def by_channels(x: Array, weight: Array, bias: Array | None, over: Windows, groups: int) -> Array | None:
    """Convolve as `convolved` does, each channel separately, on a GPU; None if groups have several channels."""
    out = empty((x.shape[0], weight.shape[0], *over.places(x.shape[2:])), x.dtype, x.engine)
    if not out.size:
        return out
    x, weight, given, at = _operands(x, weight, bias)
    launch = _depthwise(x.shape, x.offset, weight.shape, at, over, groups, x.dtype, x.device)
    if launch is None:
        return None
    launch.start(x, weight, given, out)
    return out


@functools.lru_cache(256)
def _depthwise(
    x: Shape, offset: int, weight: Shape, at: tuple[int, int], over: Windows, groups: int, dtype: np.dtype[Any],
    device: str,
) -> Launch | None:  # fmt: skip
    if len(weight) == 3:
        over, x, weight = over.of_one_row, (*x[:2], 1, x[2]), (*weight[:2], 1, weight[2])
    plan = plan_depthwise(x[1:], weight, over, groups)
    if plan is None or plan.threads * x[0] >= 1 << 32:
        return None
    template = f"depthwise<{tag(dtype)}, {', '.join(map(str, plan.told))}>"
    binary = instantiated("depthwise.metal", {"depthwise": template}, device)["depthwise"].binary
    told = plan.record(offset // dtype.itemsize, at[0] // 4, at[1] // 4)
    return Launch(binary, *grid_of_threads(plan.threads * x[0]), (told,)).kept(named(device))


def multiplied(x: Array, weight: Array, over: Windows, groups: int) -> Array | None:
    """Convolve as `convolved` does, without a bias: weights times windows, whose elements are read from the images.

    None if no kernel takes these: few outputs, or channels that do not fill strips.
    """
    outputs, own = weight.shape[0], weight.shape[1]
    out = empty((x.shape[0], outputs, *over.places(x.shape[2:])), x.dtype, x.engine)
    if not out.size:
        return out
    device = device_of(x.engine.caps)
    laid = copied(weight.viewed(np.moveaxis(weight.host, 1, -1)))  # a window's element, with all its channels
    whole = aligned(laid)
    last = device.copies and whole and x.itemsize == 2 and not own % LANES
    shape, x = x.shape, copied(x.viewed(np.moveaxis(x.host, 1, -1))) if last else contiguous(x)
    made = _windows(
        shape, x.offset, (outputs, own), over, groups, x.dtype, device, x.device, whole=whole, last=last,
    )  # fmt: skip
    if made is None:
        return None
    run(made, laid, x, out)
    return out


@functools.lru_cache(256)
def _windows(  # noqa: PLR0913  (everything that determines a plan)
    shape: tuple[int, ...], offset: int, lines: tuple[int, int], over: Windows, groups: int, dtype: np.dtype[Any],
    device: Device, engine: str, *, whole: bool, last: bool,
) -> CompiledProduct | None:  # fmt: skip
    if len(shape) == 3:  # one axis: images of one row
        over, shape = over.of_one_row, (*shape[:2], 1, shape[2])
    outputs, own = lines
    image, terms = shape[2:], own * math.prod(over.size)
    places = over.places(image)
    before = tuple(p for p, _ in over.padding)
    numbers = (v for pair in (image, places, over.size, over.stride, over.dilation, before) for v in reversed(pair))
    window = record(_WINDOW.pack(*numbers, own, groups * own))
    weights = Strided((groups, outputs // groups, terms), (outputs // groups * terms, terms, 1), 0)
    images = Strided((shape[0], groups, own, *image), (), offset // dtype.itemsize)
    told = (math.prod(places), window, dtype.name, device)
    plan = plan_windows(weights, images, *told, aligned=whole, channels_last=last)
    return None if plan is None else compiled(plan, named(engine))


@functools.lru_cache(256)
def _parts(
    x: Shape, offset: int, weight: Shape, at: tuple[int, int], over: Windows, groups: int, dtype: np.dtype[Any],
    device: str,
) -> tuple[_Part, ...] | None:  # fmt: skip
    """Prepare the dispatches; `at` are the offsets of the weights and of the biases, in bytes."""
    if len(weight) == 3:
        over, x, weight = over.of_one_row, (*x[:2], 1, x[2]), (*weight[:2], 1, weight[2])
    engine, kernels = named(device), _program(tag(dtype), device)
    single = plan_channels(x[1:], weight, over, groups)
    if single is not None and engine.caps.serial:
        told = single.record(offset // dtype.itemsize, at[0] // 4, at[1] // 4, 0)
        binary = kernels[f"convolve_channels_{single.stride}"].binary
        grid = (single.grid[0], single.grid[1] * x[0], 1)
        return (_Part(0, None, Launch(binary, grid, (LANES, 1, 1), (told,)).kept(engine)),)
    plan = plan_convolution(x[1:], weight, over, groups, as_it_lies=dtype == _FLOAT)
    if plan is None:
        return None
    laying = plan.laying
    batch, image, result = x[0], math.prod(x[1:]), weight[0] * plan.size
    step = batch if laying is None else min(batch, max(1, _MOST // (4 * laying.elements)))
    made = []
    for first in range(0, batch, step):
        count = min(step, batch - first)
        begin, laid, lay = offset // dtype.itemsize + first * image, 0, None
        if laying is not None:
            grid = (laying.grid[0], laying.grid[1] * count, 1)
            records = (laying.record(begin), laying.phases)
            lay = Launch(kernels[laying.kernel].binary, grid, (LANES, 1, 1), records).kept(engine)
            begin, laid = 0, count * laying.elements + plan.spare
        told = plan.record(begin, at[0] // 4, at[1] // 4, first * result)
        grid = (*plan.grid[:2], plan.grid[2] * count)
        binary = kernels[f"convolve_{plan.rows}_{plan.panels}"].binary
        made.append(_Part(laid, lay, Launch(binary, grid, (LANES, 1, 1), (told, plan.terms)).kept(engine)))
    return tuple(made)


@functools.cache
def _program(element: str, engine: str) -> Program:
    templates = {f"{name}_{s}": f"{name}<{element}, {s}>" for name in ("lay", "convolve_channels") for s in range(3)}
    for rows, several in FORMS.items():
        templates |= {f"convolve_{rows}_{n}": f"convolve<{element}, {rows}, {n}>" for n in several}
    return instantiated("convolve.metal", templates, engine)
