"""``x[key]`` with masks or index arrays, also combined with slices, which is a copy, and ``x[key] = value``.

The semantics are NumPy's.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import asarray, check_engine
from ...arrays.promotion import kind_of
from ...arrays.protocols import is_basic
from ...plurals import quantity
from ..elementwise.elementwise_by_name import BY_NAME
from ..launching.compaction import flat_nonzero, select, select_into
from ..launching.copying import (
    apart_from,
    check_writable,
    contiguous_copy,
    convert,
    copy_into,
    fill_with,
    make_contiguous,
    source_for,
)
from ..launching.element_bits import fault_word
from ..launching.gather import check_indices, gather, indices_of
from ..launching.launcher import dispatch
from ..launching.programs import program
from ..launching.scatter import scatter_into
from .nonzero import along_axes

__all__ = ["assign", "get", "set_items"]

_INT64 = np.dtype(np.int64)


class _IndexPlan(NamedTuple):
    """A resolved key with arrays: a view whose axes `at` … `at + depth - 1` are indexed, and the positions.

    Attributes
    ----------
    view : Array
        The array after the slices, integers and new axes of the key are applied.
    at, depth : int
    flat_indices : Array
        The positions as int64, each counted through all indexed axes.
    result_at : int
        The position of the indexed axes in the result.
    axis : int
        The first indexed axis of the original array, for errors.
    """

    view: Array
    at: int
    depth: int
    flat_indices: Array
    result_at: int
    axis: int


def get(x: Array, key: Any) -> Array:
    """Return a copy of the elements that a key with arrays selects.

    Raises
    ------
    IndexError
        For an index out of bounds, a mask of the wrong shape, or too many indices.
    """
    mask = _mask_of(x, key)
    if mask is not None and mask.shape == x.shape:
        return select(x, mask)
    plan = _plan_index(x, key)
    view, n = plan.view, math.prod(plan.view.shape[plan.at : plan.at + plan.depth])
    lead, tail = view.shape[: plan.at], view.shape[plan.at + plan.depth :]
    rows = make_contiguous(view).reshape((*lead, n, *tail))
    gathered = gather("x[…]", rows, plan.flat_indices, plan.at, label=plan.axis)
    if plan.result_at == plan.at:
        return gathered
    axes = range(plan.at, plan.at + plan.flat_indices.ndim)
    targets = range(plan.result_at, plan.result_at + plan.flat_indices.ndim)
    return contiguous_copy(gathered.viewed(np.moveaxis(gathered.host, axes, targets)))


def put(x: Array, key: Any, value: Any) -> None:
    """Write a value, broadcast and converted, to the elements that a key with arrays selects.

    Raises
    ------
    IndexError
        As for `get`. In that case, nothing is written.
    ValueError
        If the value does not broadcast to the selection.
    """
    mask = _mask_of(x, key)
    if mask is not None and _is_single(value):
        _put_masked(x, mask, value)
        return
    if mask is not None and mask.shape == x.shape and np.ndim(value) == 1 and np.shape(value) != (1,):
        _put_selected(x, mask, value)
        return
    plan = _plan_index(x, key)
    view, depth, rank = plan.view, plan.depth, plan.flat_indices.ndim
    lead, tail = view.shape[: plan.at], view.shape[plan.at + depth :]
    source = source_for("x[…] = value", x, value)
    shape = (*(lead + tail)[: plan.result_at], *plan.flat_indices.shape, *(lead + tail)[plan.result_at :])
    try:
        broadcast_host = np.broadcast_to(source.host, shape)
    except ValueError:
        raise ValueError(f"x[…] = value: shape {source.shape} does not broadcast to {shape}.") from None
    axes = range(plan.result_at, plan.result_at + rank)
    rows = source if source.size == 1 else source.viewed(np.moveaxis(broadcast_host, axes, range(rank)))
    # The indexed axes go first, because the kernel scatters there.
    front_host = np.moveaxis(view.host, range(plan.at, plan.at + depth), range(depth))
    front = view.viewed(front_host)
    flat = make_contiguous(front).reshape((-1 if front.size else math.prod(front_host.shape[:depth]), *lead, *tail))
    values = rows if source.size != 1 else rows.reshape(())
    scatter_into(flat, plan.flat_indices, values, "x[…] = value", axis=plan.axis)
    if flat.block is not x.block:
        copy_into(front, flat.reshape(front.shape))


def _put_masked(x: Array, mask: Array, value: Any) -> None:
    """Write one value to each element whose mask is set, without computing positions."""
    full_mask = mask.viewed(mask.host.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)))
    single = source_for("x[…] = value", x, value).reshape(())
    copy_into(x, BY_NAME["where"](full_mask, convert(single, x.dtype), x))


def _put_selected(x: Array, mask: Array, value: Any) -> None:
    """Write a sequence of values, one for each element whose mask is set."""
    source = source_for("x[…] = value", x, value)
    target = make_contiguous(x)
    select_into(target, apart_from(target, mask), convert(apart_from(target, source), x.dtype))
    if target is not x:
        copy_into(x, target)


def _is_single(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.generic)) or (hasattr(value, "shape") and value.shape == ())


def _mask_of(x: Array, key: Any) -> Array | None:
    """Return the mask if the key is only a mask, checked against the array's first axes."""
    if isinstance(key, tuple):
        if len(key) != 1:
            return None
        key = key[0]
    if isinstance(key, list):
        key = np.asarray(key)
    if not (isinstance(key, (Array, np.ndarray)) and kind_of(key.dtype) == "b" and key.ndim):
        return None
    mask = key if isinstance(key, Array) else asarray(key, device=x.device)
    check_engine(x.engine, "x[mask]", mask)
    _check_mask(mask, x.shape)
    return mask


def _check_mask(mask: Array, shape: tuple[int, ...]) -> None:
    if mask.shape != shape[: mask.ndim]:
        rule = f"the mask must have the shape of the array's first axes, {shape[: mask.ndim]}"
        raise IndexError(f"x[mask]: {rule}; got {mask.shape}.")


def _plan_index(x: Array, key: Any) -> _IndexPlan:
    x, key = _resolve_scalar_masks(x, key if isinstance(key, tuple) else (key,))
    parts = _expand(x, key)
    arrays = [p for p in parts if isinstance(p, Array)]
    axes = [d for d, p in enumerate(parts) if isinstance(p, Array)]
    basic = [slice(None) if isinstance(p, Array) else p for p in parts]  # the view keeps indexed axes in full
    is_adjacent = axes[-1] - axes[0] + 1 == len(axes)
    view = x.viewed(x.host[tuple(basic)])
    first = axes[0]
    if not is_adjacent:
        view = view.viewed(np.moveaxis(view.host, axes, range(len(axes))))
        first = 0
    axes_of_x = [sum(p is not None for p in parts[:d]) for d in axes]  # the same axes, as numbered in x
    flat_indices = _combine(arrays, view.shape[first : first + len(axes)], axes_of_x)
    return _IndexPlan(view, first, len(axes), flat_indices, first, axes_of_x[0])


def _resolve_scalar_masks(x: Array, key: tuple[Any, ...]) -> tuple[Array, tuple[Any, ...]]:
    """Turn 0-d masks into index arrays. Each adds an axis of one element, which the mask keeps or drops."""
    answers = [_scalar_mask(p) for p in key]
    if not any(b is not None for b in answers):
        return x, key
    _check_axis_count(x, key)
    lead: list[Any] = []
    for part, answer in zip(key, answers, strict=True):
        lead += [None] if answer is not None else [part] if part is Ellipsis else [slice(None)] * _axes_used(part)
    widened = x.viewed(x.host[(*lead, ...) if Ellipsis not in lead else tuple(lead)])
    return widened, tuple(p if b is None else np.zeros(int(b), np.int64) for p, b in zip(key, answers, strict=True))


def _scalar_mask(part: Any) -> bool | None:
    """Return the value of a 0-d mask; None for any other part of a key."""
    if isinstance(part, (bool, np.bool_)):
        return bool(part)
    is_mask = isinstance(part, (Array, np.ndarray)) and not part.ndim and kind_of(part.dtype) == "b"
    return bool(part) if is_mask else None


def _check_axis_count(x: Array, key: tuple[Any, ...]) -> int:
    """Return the number of axes that a key indexes; refuse a key that indexes more axes than the array has."""
    count = sum(map(_axes_used, key))
    if count > x.ndim:
        axes_text = quantity(x.ndim, "axis", "axes")
        raise IndexError(f"x[…]: {quantity(count, 'index', 'indices')} for an array of {axes_text}.")
    return count


def _expand(x: Array, key: tuple[Any, ...]) -> list[Any]:
    """Expand a key so that it has a part for every axis: no ellipsis, and index arrays for masks and lists."""
    count = _check_axis_count(x, key)
    rest = [slice(None)] * (x.ndim - count)
    parts: list[Any] = []
    axis = 0
    for part in (*key, *(() if any(p is Ellipsis for p in key) else (Ellipsis,))):
        parts += rest if part is Ellipsis else _indices(x, part, axis)
        axis += len(rest) if part is Ellipsis else _axes_used(part)
    return parts


def _axes_used(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    index = part if isinstance(part, (Array, slice)) else np.asarray(part)
    return 1 if isinstance(index, slice) or kind_of(index.dtype) != "b" else index.ndim


def _indices(x: Array, part: Any, axis: int) -> list[Any]:
    """Return a part of a key as slices and index arrays for the axes that begin at `axis`."""
    if part is None or isinstance(part, slice):
        return [part]
    index = part if isinstance(part, Array) else np.asarray(part)
    if kind_of(index.dtype) == "b":
        mask = index if isinstance(index, Array) else asarray(index, device=x.device)
        check_engine(x.engine, "x[mask]", mask)
        _check_mask(mask, x.shape[axis:])
        return list(along_axes(flat_nonzero("x[mask]", mask), mask.shape))
    if index.size == 0 and not isinstance(part, Array):
        index = np.asarray(index, np.int64)
    if kind_of(index.dtype) not in "iu":
        raise IndexError(f"x[…]: indices must be integers, slices, ..., None or masks; got {index.dtype}.")
    return [indices_of("x[…]", index, x.engine)]


def _combine(arrays: list[Array], shape: tuple[int, ...], axes: list[int]) -> Array:
    """Combine an index for each axis into one position, counted through these axes; check every index."""
    if len(arrays) == 1:
        return arrays[0]
    try:
        shape_of_all = np.broadcast_shapes(*(a.shape for a in arrays))
    except ValueError:
        shapes = " and ".join(str(a.shape) for a in arrays)
        raise IndexError(f"x[…]: index arrays of shapes {shapes} do not broadcast.") from None
    engine = arrays[0].engine
    flat_indices = empty(shape_of_all, _INT64, engine)
    stride = math.prod(shape)
    for d, (indices, n) in enumerate(zip(arrays, shape, strict=True)):
        stride //= max(n, 1)
        is_full = indices.shape == shape_of_all
        full_indices = make_contiguous(indices) if is_full else contiguous_copy(indices, shape_of_all)
        if flat_indices.size:
            fault = fault_word(engine)
            kernel = program("gather.metal", engine, ALONE=True).combine_indices
            dispatch(kernel, full_indices, flat_indices, n, stride, int(d == 0), fault, grid=flat_indices.size)
            check_indices("x[…]", fault, full_indices, n, axes[d])
    return flat_indices


def set_items(x: Array, key: Any, value: Any) -> None:
    """Write a value, broadcast and converted, to the elements that a key selects: ``x[key] = value``."""
    check_writable("x[…] = value", x)
    if is_basic(key):
        assign(x[key], value)
    else:
        put(x, key, value)


def assign(part: Array, value: Any) -> None:
    """Write a value, broadcast and converted, into a view.

    Raises
    ------
    ValueError
        If the value's shape does not broadcast to the view's, or elements of the view share memory.
    ArgumentError
        For an array of another engine.
    OverflowError
        If an integer array cannot represent a Python integer.
    """
    check_writable("x[…] = value", part)
    if isinstance(value, (bool, int, float)):
        fill_with(part, value)
        return
    source = source_for("x[…] = value", part, value)
    surplus = max(source.ndim - part.ndim, 0)
    shape = source.shape[surplus:]
    if any(n != 1 for n in source.shape[:surplus]) or not _can_broadcast(shape, part.shape):
        raise ValueError(f"x[…] = value: shape {source.shape} does not broadcast to {part.shape}.")
    if surplus:  # NumPy allows leading axes of one element
        source = Array(source.block, source.dtype, shape, source.strides[surplus:], source.offset)
    copy_into(part, apart_from(part, source))


def _can_broadcast(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return all(n in {1, m} for n, m in zip(reversed(shape), reversed(to), strict=False))
