"""Plan a convolution by ``convolve.metal``: how images are laid out, and which kernel sums them."""

from __future__ import annotations

import itertools
import math
import struct
from typing import Any, NamedTuple

import numpy as np

from ...engine.base import Grid
from .device import LANES
from .packed_record import Record, record

__all__ = [
    "FORMS", "ChannelsPlan", "ConvolutionPlan", "DepthwisePlan", "ImageLayout", "Windows",
    "plan_channels", "plan_convolution", "plan_depthwise",
]  # fmt: skip

_LAYOUT = struct.Struct("<q12I")
_CONVOLUTION = struct.Struct("<6q8I")
_CHANNELS = struct.Struct("<4q16I")
_DEPTHWISE = struct.Struct("<3Q4I2i8I")
_HELD_ELEMENTS = 56  # a thread holds at most this many elements of the image
_ROWS_PER_THREAD = (4, 2, 1)  # positions of a column that a thread computes from them
_SMALL_WINDOW, _MIN_ROWS = 16, 4  # laying out pays off for larger windows; going through rows does not for fewer
_SUMS_PER_WASTED = 8  # wider panels may waste at most one in this many sums
_ELEMENTS_PER_GROUP = 4096  # one SIMD-group lays out this many, or sums this many in one channel
_LARGE_BLOCK, _SMALL_BLOCK = 12, 8  # outputs per SIMD-group
_ENOUGH_TERMS = 512  # from this many products per output, the large block pays off
_ELEMENT_LIMIT = 1 << 31  # the kernels can count this many elements in a group's image

Shape = tuple[int, ...]

# The number of outputs that a SIMD-group sums, and of how many panels: together they fill a processor's registers.
FORMS = {12: (1,), 4: (2, 1), 2: (4, 1), 1: (8, 2)}  # the kernel for 12 also does 8


class Windows(NamedTuple):
    """The geometry of windows over axes: one number per axis, and for padding one before and one after it."""

    size: Shape
    stride: Shape
    dilation: Shape
    padding: tuple[tuple[int, int], ...]

    @property
    def of_one_row(self) -> Windows:
        """The windows as windows over images of one row."""
        return Windows((1, *self.size), (1, *self.stride), (1, *self.dilation), ((0, 0), *self.padding))

    def positions(self, lengths: Shape) -> Shape:
        """Return the number of a window's positions along each axis."""
        return tuple(map(_count, lengths, *self))


class ImageLayout(NamedTuple):
    """The dispatch that lays images out for summing.

    Attributes
    ----------
    kernel : str
        ``lay_1`` or ``lay_2`` for that stride, ``lay_0`` for any.
    layout : tuple of int
        The kernel's first record, except for the images' offset.
    phases : numpy.ndarray of int32
        Its second record.
    elements : int
        Elements of a laid out image.
    grid : tuple of 3 int
        Threads, for one image.
    """

    kernel: str
    layout: tuple[int, ...]
    phases: np.ndarray[Any, np.dtype[np.int32]]
    elements: int
    grid: Grid

    def record(self, offset: int) -> Record:
        """Return the kernel's record for images that begin at an offset."""
        return record(_LAYOUT, offset, *self.layout)


class ConvolutionPlan(NamedTuple):
    """The data of the dispatches.

    Attributes
    ----------
    image_layout : ImageLayout or None
        None if the images are read in place.
    spare : int
        Elements after the last image that may be read.
    rows, panels : int
        Outputs and panels that a SIMD-group sums, which select the kernel.
    image : int
        Elements of an image as the kernel reads it: laid out, or in place.
    size : int
        Elements of one channel of the result.
    lengths : tuple of int
        The kernel's record, except for offsets.
    terms : numpy.ndarray of int64
        The offset of each term's elements from the first position.
    grid : tuple of 3 int
        Threads, for one image.
    """

    image_layout: ImageLayout | None
    spare: int
    rows: int
    panels: int
    image: int
    size: int
    lengths: tuple[int, ...]
    terms: np.ndarray[Any, np.dtype[np.int64]]
    grid: Grid

    def record(self, x: int, weight: int, bias: int, out: int) -> Record:
        """Return the kernel's record for operands at these offsets."""
        return record(_CONVOLUTION, x, self.image, weight, bias, out, self.size, *self.lengths)


class _Axis(NamedTuple):
    """An axis in phases: the phase p of stride s is the elements p, p + s, p + 2 s, … of the padded axis."""

    phases: tuple[int, ...]  # the phases that a window reads
    starts: tuple[tuple[int, int], ...]  # for each element of a window, its phase and its offset there
    full: int  # the number of a phase's elements that windows reach
    least: int  # fewer if the next row's zeros serve as padding


def _count(n: int, size: int, stride: int, dilation: int, padding: tuple[int, int]) -> int:
    """Return the number of a window's positions along an axis."""
    return (n + sum(padding) - dilation * (size - 1) - 1) // stride + 1


def _axis(n: int, size: int, stride: int, dilation: int, padding: tuple[int, int]) -> _Axis:
    reads = [divmod(k * dilation, stride) for k in range(size)]
    phases = tuple(sorted({phase for _, phase in reads}))
    starts = tuple((phases.index(phase), position) for position, phase in reads)
    positions = _count(n, size, stride, dilation, padding)
    length = positions + reads[-1][0]
    ends = -(-(n + padding[0]) // stride)  # from here there are zeros in each phase, and …
    begins = padding[0] // stride  # … up to here
    return _Axis(phases, starts, length, min(length, max(ends, length - begins, positions)))


def plan_convolution(
    x: Shape, weight: Shape, geometry: Windows, groups: int, *, is_contiguous_float32: bool
) -> ConvolutionPlan | None:
    """Plan the convolution of images (C, H, W) with weights (O, C / groups, h, w), none of them empty.

    Return None if an image is too large for the kernels.
    """
    outputs, channels = weight[:2]
    row_axis, column_axis = itertools.starmap(_axis, zip(x[1:], *geometry, strict=True))
    positions = geometry.positions(x[1:])
    columns = column_axis.least
    plane = row_axis.full * columns + column_axis.full - columns  # with the zeros that follow the last row
    phases = list(itertools.product(range(len(row_axis.phases)), range(len(column_axis.phases))))
    image = channels * len(phases) * plane
    if image >= _ELEMENT_LIMIT:
        return None

    last = (positions[0] - 1) * columns + positions[1]
    outputs_per_group = outputs // groups
    rows = next(r for r in FORMS if r <= outputs_per_group or (r == _LARGE_BLOCK and outputs_per_group >= _SMALL_BLOCK))
    blocks, rows_of_blocks = _blocks(outputs_per_group, channels * math.prod(geometry.size), rows)
    sums = last * _SUMS_PER_WASTED // (_SUMS_PER_WASTED - 1)
    panels = next((w for w in FORMS[rows] if -(-last // (w * LANES)) * w * LANES <= sums), FORMS[rows][-1])
    is_unpadded = not any(map(any, geometry.padding)) and geometry.stride == (1, 1)
    in_place = is_contiguous_float32 and is_unpadded and last >= panels * LANES
    image_layout = None if in_place else _image_layout(x, geometry, row_axis, column_axis, columns, plane)
    last = max(last, panels * LANES)
    starts = itertools.product(row_axis.starts, column_axis.starts)
    window = [(i * len(column_axis.phases) + j) * plane + y * columns + z for (i, y), (j, z) in starts]
    terms = np.add.outer(
        np.arange(channels, dtype=np.int64) * (len(phases) * plane), np.array(window, np.int64),
    ).reshape(-1)  # fmt: skip
    lengths = (len(terms), outputs_per_group, groups, *positions, columns, last, rows_of_blocks)
    grid = (-(-last // (panels * LANES)) * LANES, blocks, groups)
    return ConvolutionPlan(
        image_layout=image_layout, spare=panels * LANES, rows=rows, panels=panels, image=image,
        size=math.prod(positions), lengths=lengths, terms=terms, grid=grid,
    )  # fmt: skip


class ChannelsPlan(NamedTuple):
    """The dispatch of a convolution whose groups have one channel each.

    Attributes
    ----------
    stride : int
        The kernel's fixed stride; 0: any.
    lengths : tuple of int
        The kernel's record, except for offsets.
    grid : tuple of 3 int
        Threads, for one image.
    """

    stride: int
    lengths: tuple[int, ...]
    grid: Grid

    def record(self, x: int, weight: int, bias: int, out: int) -> Record:
        """Return the kernel's record for operands at these offsets."""
        return record(_CHANNELS, x, weight, bias, out, *self.lengths, 0)


def plan_channels(x: Shape, weight: Shape, window: Windows, groups: int) -> ChannelsPlan | None:
    """Plan the convolution of images (C, H, W) with weights (O, 1, h, w); None if another kernel suits it better."""
    (rows, columns), outputs = window.positions(x[1:]), weight[0]
    if weight[1] != 1 or math.prod(window.size) > _SMALL_WINDOW or columns < LANES // 2 or rows < _MIN_ROWS:
        return None
    rows_per_group = max(1, min(rows, _ELEMENTS_PER_GROUP // columns))
    (top, _), (padding_left, _) = window.padding
    lengths = (x[1], x[2], columns, rows, weight[3], weight[2], *reversed(window.stride), *reversed(window.dilation),
               padding_left, top, outputs, outputs // groups, rows_per_group)  # fmt: skip
    stride = window.stride[1] if window.stride[1] <= 2 else 0
    return ChannelsPlan(stride, lengths, (-(-rows // rows_per_group) * LANES, outputs, 1))


class DepthwisePlan(NamedTuple):
    """The dispatch of a depthwise convolution on a GPU.

    Attributes
    ----------
    template_arguments : tuple of int
        The arguments of the kernel's template.
    lengths : tuple of int
        The kernel's record, except for offsets.
    threads : int
        For one image.
    """

    template_arguments: tuple[int, ...]
    lengths: tuple[int, ...]
    threads: int

    def record(self, x: int, weight: int, bias: int) -> Record:
        """Return the kernel's record for operands at these offsets."""
        return record(_DEPTHWISE, x, weight, bias, *self.lengths)


def plan_depthwise(x: Shape, weight: Shape, window: Windows, groups: int) -> DepthwisePlan | None:
    """Plan the convolution of images (C, H, W) with weights (O, 1, h, w) on a GPU; None if the windows are too large.

    Positions of a column share elements if their windows overlap.
    """
    if weight[1] != 1:
        return None
    (height, width), (stride_y, stride_x), (dilation_y, dilation_x) = window.size, window.stride, window.dilation
    (rows, columns), outputs = window.positions(x[1:]), weight[0]
    reach = (height - 1) * dilation_y + 1
    overlap = stride_y < reach and rows > 1
    choices = (n for n in (_ROWS_PER_THREAD if overlap else (1,)) if n <= rows)
    rows_per_thread = next((n for n in choices if ((n - 1) * stride_y + reach) * width <= _HELD_ELEMENTS), 0)
    if not rows_per_thread:
        return None
    (top, _), (padding_left, _) = window.padding
    blocks = -(-rows // rows_per_thread)
    lengths = (
        x[2], x[1], columns, rows, padding_left, top, stride_x, stride_y, dilation_x, dilation_y, outputs,
        outputs // groups, blocks, 0,
    )  # fmt: skip
    return DepthwisePlan((width, height, rows_per_thread, stride_y, dilation_y), lengths, outputs * blocks * columns)


def _blocks(outputs: int, terms: int, rows: int) -> tuple[int, int]:
    """Return how many SIMD-groups sum the outputs of a panel, and how many of these sum `rows`, the others 8."""
    if rows < _LARGE_BLOCK:
        return -(-outputs // rows), -(-outputs // rows)
    most_large = outputs // _LARGE_BLOCK if terms >= _ENOUGH_TERMS else 0
    result = [(-(-(outputs - n * _LARGE_BLOCK) // _SMALL_BLOCK), n) for n in range(most_large + 1)]
    # Outputs summed twice count, and reading x once counts as two more outputs.
    small, large = min(result, key=lambda m: m[0] * (_SMALL_BLOCK + 2) + m[1] * (_LARGE_BLOCK + 2))
    return small + large, large


def _image_layout(
    x: Shape, window: Windows, row_axis: _Axis, column_axis: _Axis, columns: int, plane: int
) -> ImageLayout:
    channels, height, width = x
    phases = np.array(list(itertools.product(row_axis.phases, column_axis.phases)), np.int32)
    stride = window.stride[1] if window.stride[1] <= 2 else 0
    (top, _), (padding_left, _) = window.padding
    rows = -(-plane // columns)
    rows_per_group = max(1, min(rows, _ELEMENTS_PER_GROUP // columns))
    layout = (height, width, columns, plane, top, padding_left, *window.stride, len(phases), rows_per_group, rows, 0)
    grid = (-(-rows // rows_per_group) * LANES, channels * len(phases), 1)
    return ImageLayout(f"lay_{stride}", layout, phases, channels * len(phases) * plane, grid)
