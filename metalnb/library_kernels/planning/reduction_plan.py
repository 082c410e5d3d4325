"""Split a reduction into dispatches: from shape, strides and axes to the records of ``reduce.metal``."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...engine.base import Grid
from .device import LANES, Device
from .long_row_splits import FEW_TERMS, TILE_BYTES, Split, split_columns, split_down, split_rows
from .packed_record import Record, record
from .threads_per_row import grid_of_groups, grid_of_rows, grid_of_threads, takes_rows, threads_for_row

__all__ = ["Axis", "ReductionStep", "axes_of_view", "merge_axes", "packed_reduction", "plan_reduction"]

_BLOCK = 4096  # a SIMD-group adds up this many elements before it updates the total; a stretch is a multiple
_ENOUGH_REDUCTIONS = 512  # from this many reductions, a thread takes more than a few elements by itself
_LAID_OUT = 1024  # narrow rows are laid end to end up to this many columns

_FORMAT = struct.Struct("<4q7If")


class Axis(NamedTuple):
    """An axis of a view: its length, its stride in elements, and whether it is reduced."""

    length: int
    stride: int
    is_reduced: bool


class ReductionStep(NamedTuple):
    """One dispatch.

    Attributes
    ----------
    kernel : {"rows", "rows_shared", "columns", "down", "each"}
    record : numpy.ndarray
        The bytes of the kernel's ``Reduction``.
    grid, threadgroup : tuple of 3 int
    outputs : int
        Elements that it writes, contiguous.
    """

    kernel: str
    record: Record
    grid: Grid
    threadgroup: Grid
    outputs: int


class _Form(NamedTuple):
    """A reduction in the kernels' form: outer × length × width, with a unit stride in one of the last two."""

    offset: int
    outer: int
    outer_pitch: int
    length: int
    pitch: int
    width: int


def plan_reduction(
    axes: Sequence[Axis], offset: int, size: int, scale: float, device: Device, *, has_center: bool
) -> tuple[ReductionStep, ...] | None:
    """Plan a commutative reduction of a view.

    Parameters
    ----------
    axes : sequence of Axis
    offset : int
        The offset of the first element, in elements.
    size : int
        Bytes of a total.
    scale : float
        The number passed to `finish`.
    device : Device
    has_center : bool
        Whether each reduction has its own value for `load`.

    Returns
    -------
    tuple of ReductionStep, or None
        None if the view must first be copied: its kept axes, then the reduced ones, contiguous.
    """
    axes, offset = _forward(axes, offset)
    kept_axes = merge_axes(a for a in axes if not a.is_reduced)
    reduced_axes = merge_axes(
        sorted((a for a in axes if a.is_reduced), key=lambda a: -a.stride),
    ) or [Axis(1, 1, is_reduced=True)]  # fmt: skip
    if len(reduced_axes) > 1:
        return None if has_center else _plan_passes(axes, offset, size, scale, device)
    form = _form(kept_axes, reduced_axes[0], offset)
    return None if form is None else _steps(form, size, scale, device, has_center=has_center)


def axes_of_view(shape: Iterable[int], strides: Iterable[int], reduced: Iterable[int]) -> list[Axis]:
    """Return the axes of a view that have more than one element; strides are in elements."""
    reduced_set = set(reduced)
    return [Axis(n, s, i in reduced_set) for i, (n, s) in enumerate(zip(shape, strides, strict=True)) if n != 1]


def merge_axes(axes: Iterable[Axis]) -> list[Axis]:
    """Merge neighboring axes that are contiguous with each other."""
    result: list[Axis] = []
    for a in axes:
        if result and result[-1].stride == a.length * a.stride:
            result[-1] = Axis(result[-1].length * a.length, a.stride, a.is_reduced)
        else:
            result.append(a)
    return result


def _forward(axes: Sequence[Axis], offset: int) -> tuple[list[Axis], int]:
    """Walk reduced axes forward, since their order does not matter."""
    result = []
    for a in axes:
        if a.is_reduced and a.stride < 0:
            offset += (a.length - 1) * a.stride
            result.append(Axis(a.length, -a.stride, is_reduced=True))
        else:
            result.append(a)
    return result, offset


def _plan_passes(
    axes: list[Axis], offset: int, size: int, scale: float, device: Device
) -> tuple[ReductionStep, ...] | None:
    """Reduce axes that do not merge, in several passes: those with the least stride first."""
    pending = sorted((i for i, a in enumerate(axes) if a.is_reduced), key=lambda i: axes[i].stride)
    this_pass = {pending[0]}
    reach = axes[pending[0]]
    for i in pending[1:]:
        if axes[i].stride != reach.length * reach.stride:
            break
        this_pass.add(i)
        reach = axes[i]
    first_axes = [a._replace(is_reduced=i in this_pass) for i, a in enumerate(axes)]
    first = plan_reduction(first_axes, offset, size, scale, device, has_center=False)
    if first is None:
        return None
    pitch, remaining = 1, []
    for a in reversed([a for i, a in enumerate(axes) if i not in this_pass]):
        remaining.append(a._replace(stride=pitch))
        pitch *= a.length
    other_axes = plan_reduction(remaining[::-1], 0, size, scale, device, has_center=False)
    return None if other_axes is None else first + other_axes


def _form(kept_axes: list[Axis], reduced_axes: Axis, offset: int) -> _Form | None:
    if len(kept_axes) > 2:
        return None
    inner = kept_axes[-1] if kept_axes and kept_axes[-1].stride == 1 else None
    outer = kept_axes[:-1] if inner else kept_axes
    if len(outer) > 1:
        return None
    length, pitch = (outer[0].length, outer[0].stride) if outer else (1, 0)
    if inner is None and reduced_axes.stride != 1 and reduced_axes.length > FEW_TERMS:
        return None  # the elements are far apart: a SIMD-group would gather them one by one
    return _Form(offset, length, pitch, reduced_axes.length, reduced_axes.stride, inner.length if inner else 1)


def _steps(
    form: _Form, size: int, scale: float, device: Device, *, has_center: bool
) -> tuple[ReductionStep, ...] | None:
    steps: list[ReductionStep] = []
    while True:
        if form.width > 1 or form.pitch != 1:
            result = _reduce_columns_in_tiles(form, size, scale, device, has_center=has_center)
        elif form.length < FEW_TERMS:
            result = _reduce_each(form, scale, has_center=has_center)
        else:
            result = _reduce_rows(form, scale, device, has_center=has_center)
        if result is None:
            return None
        step, rest = result
        steps.append(step)
        if rest is None:
            return tuple(steps)
        form = rest


PlannedStep = tuple[ReductionStep, _Form | None]


def _reduce_rows(form: _Form, scale: float, device: Device, *, has_center: bool) -> PlannedStep:
    """Reduce rows, each split into stretches."""
    if takes_rows(form.length, form.outer, device):
        one_stretch = Split(form.length, form.length, 1)
        packed = _pack_form(form._replace(pitch=form.outer_pitch), one_stretch, scale, about=int(has_center))
        shape = grid_of_rows(form.outer, threads_for_row(form.length, device))
        return ReductionStep("rows_shared", packed, *shape, form.outer), None
    stretches = split_rows(form.length, form.outer, _BLOCK, device)
    grid, threadgroup = grid_of_groups(form.outer * stretches.parts, device)
    packed = _pack_form(form._replace(pitch=form.outer_pitch), stretches, scale, about=int(has_center))
    step = ReductionStep("rows", packed, grid, threadgroup, form.outer * stretches.parts)
    return step, _partial_form(form, stretches.parts)


def _reduce_columns_in_tiles(
    form: _Form, size: int, scale: float, device: Device, *, has_center: bool
) -> PlannedStep | None:
    """Reduce columns, a tile of them per stretch of rows. Contiguous narrow rows are treated as one wide row."""
    rows_together = _LAID_OUT // form.width
    if not has_center and rows_together > 1 and form.pitch == form.width and form.length >= 4 * rows_together:
        count = -(-form.length // rows_together)
        width = rows_together * form.width
        tail = form.length * form.width - (count - 1) * width
        wide_form = form._replace(length=count, pitch=width, width=width)
        step, _ = _columns(wide_form, size, scale, device, has_center=False, tail=tail)
        return step, _partial_form(form, step.outputs // form.outer // form.width)
    if form.width < LANES:
        if form.length <= FEW_TERMS or (form.outer * form.width >= _ENOUGH_REDUCTIONS and form.length <= _BLOCK):
            return _reduce_each(form, scale, has_center=has_center)
        if has_center:
            return None
    return _columns(form, size, scale, device, has_center=has_center, tail=form.width)


def _columns(form: _Form, size: int, scale: float, device: Device, *, has_center: bool, tail: int) -> PlannedStep:
    if device.waits:
        down = split_down(form.length, form.outer * form.width, device)
        packed = _pack_form(form, down, scale, about=form.width if has_center else 0, tail=tail)
        outputs = form.outer * down.parts * form.width
        return ReductionStep("down", packed, *grid_of_threads(outputs), outputs), _partial_form(form, down.parts)
    tiles = -(-form.width * size // TILE_BYTES)
    stretches = split_columns(form.length, form.outer * tiles, device.tile_rows, device.tile_groups)
    grid, threadgroup = grid_of_groups(form.outer * tiles * stretches.parts, alone=True)
    packed = _pack_form(form, stretches, scale, about=form.width if has_center else 0, tail=tail, tiles=tiles)
    step = ReductionStep("columns", packed, grid, threadgroup, form.outer * stretches.parts * form.width)
    return step, _partial_form(form, stretches.parts)


def _reduce_each(form: _Form, scale: float, *, has_center: bool) -> PlannedStep:
    packed = _pack_form(form, Split(form.length, form.length, 1), scale, about=int(has_center))
    outputs = form.outer * form.width
    return ReductionStep("each", packed, *grid_of_threads(outputs), outputs), None


def _partial_form(form: _Form, parts: int) -> _Form | None:
    """Return the reduction over the partial results of `parts` stretches, or None if there is only one."""
    return None if parts == 1 else _Form(0, form.outer, parts * form.width, parts, form.width, form.width)


def _pack_form(
    form: _Form, stretches: Split, scale: float, *, about: int, tail: int = 1, tiles: int = 1
) -> Record:  # fmt: skip
    return packed_reduction(
        form.offset, form.outer_pitch, form.pitch, form.length, stretches, form.width,
        about=about, tail=tail, tiles=tiles, scale=scale,
    )  # fmt: skip


def packed_reduction(  # noqa: PLR0913  (the fields of ``Reduction``)
    offset: int, outer_pitch: int, pitch: int, count: int, stretches: Split, width: int,
    *, about: int = 0, tail: int | None = None, tiles: int = 1, scale: float = 1,
) -> Record:  # fmt: skip
    """Return the bytes of ``Reduction`` in reduce.metal."""
    return record(
        _FORMAT, offset, outer_pitch, pitch, about, count, stretches.stretch, stretches.rest, stretches.parts, width,
        width if tail is None else tail, tiles, scale,
    )  # fmt: skip
