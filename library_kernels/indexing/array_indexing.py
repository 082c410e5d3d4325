"""``x[key]`` where it is not a view, and ``x[key] = value``: masks, index arrays, and their combinations with slices.

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
from ..elementwise.by_name import BY_NAME
from ..launching.bits import fault_word
from ..launching.compaction import flat_nonzero, select_into, selected
from ..launching.copying import contiguous, converted, copied, copy_into, fill_with, given_for, writable
from ..launching.gather import check, gather, indices_of
from ..launching.launcher import dispatch
from ..launching.programs import program
from ..launching.scatter import write
from .nonzero import along_axes

__all__ = ["assign", "get", "set_items"]

_INT64 = np.dtype(np.int64)


class _IndexPlan(NamedTuple):
    """A resolved index by arrays: a view whose axes `at` … `at + depth - 1` are indexed, and the positions on them.

    Attributes
    ----------
    view : Array
        The array after all slices, integers and new axes.
    at, depth : int
    places : Array
        int64, counted through the indexed axes.
    result_at : int
        The position of the indexed axes in the result.
    axis : int
        The array's first indexed axis, for errors.
    """

    view: Array
    at: int
    depth: int
    places: Array
    result_at: int
    axis: int


def get(x: Array, key: Any) -> Array:
    """Return the elements that a key with arrays selects: always a copy.

    Raises
    ------
    IndexError
        For an index out of bounds, a mask of the wrong shape, or too many indices.
    """
    mask = _mask_of(x, key)
    if mask is not None and mask.shape == x.shape:
        return selected(x, mask)
    plan = _planned(x, key)
    view, n = plan.view, math.prod(plan.view.shape[plan.at : plan.at + plan.depth])
    before, after = view.shape[: plan.at], view.shape[plan.at + plan.depth :]
    rows = contiguous(view).reshape((*before, n, *after))
    found = gather("x[…]", rows, plan.places, plan.at, label=plan.axis)
    if plan.result_at == plan.at:
        return found
    axes = range(plan.at, plan.at + plan.places.ndim)
    return copied(found.viewed(np.moveaxis(found.host, axes, range(plan.result_at, plan.result_at + plan.places.ndim))))


def put(x: Array, key: Any, value: Any) -> None:
    """Write a value, broadcast and converted, to the elements that a key with arrays selects.

    Raises
    ------
    IndexError
        As for `get`; nothing is written then.
    ValueError
        If the value's shape does not broadcast.
    """
    mask = _mask_of(x, key)
    if mask is not None and _is_single(value):
        _put_masked(x, mask, value)
        return
    if mask is not None and mask.shape == x.shape and np.ndim(value) == 1 and np.shape(value) != (1,):
        _put_selected(x, mask, value)
        return
    plan = _planned(x, key)
    view, depth, rank = plan.view, plan.depth, plan.places.ndim
    before, after = view.shape[: plan.at], view.shape[plan.at + depth :]
    given = given_for("x[…] = value", x, value)
    shape = (*(before + after)[: plan.result_at], *plan.places.shape, *(before + after)[plan.result_at :])
    try:
        spread = np.broadcast_to(given.host, shape)
    except ValueError:
        raise ValueError(f"x[…] = value: shape {given.shape} does not broadcast to {shape}.") from None
    axes = range(plan.result_at, plan.result_at + rank)
    rows = given if given.size == 1 else given.viewed(np.moveaxis(spread, axes, range(rank)))
    # The indexed axes go first, because the kernel scatters there.
    turned = np.moveaxis(view.host, range(plan.at, plan.at + depth), range(depth))
    front = view.viewed(turned)
    flat = contiguous(front).reshape((-1 if front.size else math.prod(turned.shape[:depth]), *before, *after))
    write(flat, plan.places, rows if given.size != 1 else rows.reshape(()), "x[…] = value", axis=plan.axis)
    if flat.block is not x.block:
        copy_into(front, flat.reshape(front.shape))


def _put_masked(x: Array, mask: Array, value: Any) -> None:
    """Write one value where a mask is set, without computing the positions."""
    wide = mask.viewed(mask.host.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)))
    single = given_for("x[…] = value", x, value).reshape(())
    copy_into(x, BY_NAME["where"](wide, converted(single, x.dtype), x))


def _put_selected(x: Array, mask: Array, value: Any) -> None:
    """Write one value for each element whose mask is set."""
    given = given_for("x[…] = value", x, value)
    target = contiguous(x)
    select_into(target, mask, converted(given, x.dtype))
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
        raise IndexError(f"x[mask]: the mask has shape {mask.shape}; the array has {shape[: mask.ndim]} there.")


def _planned(x: Array, key: Any) -> _IndexPlan:
    x, key = _answered(x, key if isinstance(key, tuple) else (key,))
    parts = _expanded(x, key)
    arrays = [p for p in parts if isinstance(p, Array)]
    axes = [d for d, p in enumerate(parts) if isinstance(p, Array)]
    basic = [slice(None) if isinstance(p, Array) else p for p in parts]  # an indexed axis is kept complete in the view
    together = axes[-1] - axes[0] + 1 == len(axes)
    view = x.viewed(x.host[tuple(basic)])
    at = axes[0]
    if not together:
        view = view.viewed(np.moveaxis(view.host, axes, range(len(axes))))
        at = 0
    known = [sum(p is not None for p in parts[:d]) for d in axes]  # their numbers in x
    places = _combined(arrays, view.shape[at : at + len(axes)], known)
    return _IndexPlan(view, at, len(axes), places, at, known[0])


def _answered(x: Array, key: tuple[Any, ...]) -> tuple[Array, tuple[Any, ...]]:
    """Turn 0-d masks into index arrays: each adds an axis of one element, which it keeps or drops."""
    bare = [_bare(p) for p in key]
    if not any(b is not None for b in bare):
        return x, key
    if sum(map(_axes_used, key)) > x.ndim:
        raise IndexError(f"x[…]: {sum(map(_axes_used, key))} indices for an array of {x.ndim} axes.")
    lead: list[Any] = []
    for part, answer in zip(key, bare, strict=True):
        lead += [None] if answer is not None else [part] if part is Ellipsis else [slice(None)] * _axes_used(part)
    wide = x.viewed(x.host[(*lead, ...) if Ellipsis not in lead else tuple(lead)])
    return wide, tuple(p if b is None else np.zeros(int(b), np.int64) for p, b in zip(key, bare, strict=True))


def _bare(part: Any) -> bool | None:
    """Return the value of a 0-d mask; None for any other part of a key."""
    if isinstance(part, (bool, np.bool_)):
        return bool(part)
    bare = isinstance(part, (Array, np.ndarray)) and not part.ndim and kind_of(part.dtype) == "b"
    return bool(part) if bare else None


def _expanded(x: Array, key: tuple[Any, ...]) -> list[Any]:
    """Expand a key to one part for every axis, without an ellipsis, with masks and lists as index arrays."""
    used = sum(map(_axes_used, key))
    if used > x.ndim:
        raise IndexError(f"x[…]: {used} indices for an array of {x.ndim} axes.")
    whole = [slice(None)] * (x.ndim - used)
    parts: list[Any] = []
    axis = 0
    for part in (*key, *(() if any(p is Ellipsis for p in key) else (Ellipsis,))):
        parts += whole if part is Ellipsis else _indices(x, part, axis)
        axis += len(whole) if part is Ellipsis else _axes_used(part)
    return parts


def _axes_used(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    given = part if isinstance(part, (Array, slice)) else np.asarray(part)
    return 1 if isinstance(given, slice) or kind_of(given.dtype) != "b" else given.ndim


def _indices(x: Array, part: Any, axis: int) -> list[Any]:
    """Return a part of a key as slices and index arrays, for the axes from `axis`."""
    if part is None or isinstance(part, slice):
        return [part]
    given = part if isinstance(part, Array) else np.asarray(part)
    if kind_of(given.dtype) == "b":
        mask = given if isinstance(given, Array) else asarray(given, device=x.device)
        check_engine(x.engine, "x[mask]", mask)
        _check_mask(mask, x.shape[axis:])
        return list(along_axes(flat_nonzero("x[mask]", mask), mask.shape))
    if given.size == 0 and not isinstance(part, Array):
        given = np.asarray(given, np.int64)
    if kind_of(given.dtype) not in "iu":
        raise IndexError(f"x[…]: indices are integers, slices, ..., None and masks; got {given.dtype}.")
    return [indices_of("x[…]", given, x.engine)]


def _combined(arrays: list[Array], shape: tuple[int, ...], axes: list[int]) -> Array:
    """Turn an index for each axis into one position, counted through these axes; all are checked."""
    if len(arrays) == 1:
        return arrays[0]
    try:
        common = np.broadcast_shapes(*(a.shape for a in arrays))
    except ValueError:
        shapes = " and ".join(str(a.shape) for a in arrays)
        raise IndexError(f"x[…]: index arrays of shapes {shapes} do not broadcast.") from None
    engine = arrays[0].engine
    places = empty(common, _INT64, engine)
    stride = math.prod(shape)
    for d, (indices, n) in enumerate(zip(arrays, shape, strict=True)):
        stride //= max(n, 1)
        whole = contiguous(indices) if indices.shape == common else copied(indices, common)
        if places.size:
            fault = fault_word(engine)
            kernel = program("gather.metal", engine, ALONE=True).combine_indices
            dispatch(kernel, whole, places, n, stride, int(d == 0), fault, grid=places.size)
            check("x[…]", fault, whole, n, axes[d])
    return places


def set_items(x: Array, key: Any, value: Any) -> None:
    """Write a value, broadcast and converted, to the elements that a key selects: ``x[key] = value``."""
    writable("x[…] = value", x)
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
    writable("x[…] = value", part)
    if isinstance(value, (bool, int, float)):
        fill_with(part, value)
        return
    given = given_for("x[…] = value", part, value)
    surplus = max(given.ndim - part.ndim, 0)
    shape = given.shape[surplus:]
    if any(n != 1 for n in given.shape[:surplus]) or not _broadcasts(shape, part.shape):
        raise ValueError(f"x[…] = value: shape {given.shape} does not broadcast to {part.shape}.")
    if surplus:  # as NumPy allows
        given = Array(given.block, given.dtype, shape, given.strides[surplus:], given.offset)
    copy_into(part, copied(given) if _overlap(part, given) else given)


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return all(n in {1, m} for n, m in zip(reversed(shape), reversed(to), strict=False))


def _overlap(part: Array, given: Array) -> bool:
    """Return whether writing `part` may change elements of `given` that are still to be read."""
    same = (part.offset, part.strides, part.shape, part.dtype) == (
        given.offset,
        given.strides,
        given.shape,
        given.dtype,
    )
    if part.block is given.block:
        return not same and np.may_share_memory(part.host, given.host)
    return part.block.shared and given.block.shared and np.may_share_memory(part.host, given.host)
