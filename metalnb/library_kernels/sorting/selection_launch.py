"""Select the first elements of each row's order: ``radix_select.metal``, or ``few_select.metal`` for a few on a CPU.

A long row is split into parts that yield candidates, until a single part remains.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...engine import named
from ..launching.element_bits import as_bits, order_of, width
from ..launching.launcher import Launch
from ..launching.programs import program
from ..launching.radix_sort import KEY_LIMIT, TILE_ROW
from ..planning.device import LANES, Device, device_of
from ..planning.packed_record import record

__all__ = ["select_rows"]

_PLANS = 4096
_SELECTED = 1024  # a threadgroup of radix_select.metal selects at most this many keys,
_FEW = LANES  # … and a SIMD-group of few_select.metal this many
_PART = 4096  # a part of a row for one threadgroup has at least this many keys, and at least
_PART_RATIO = 16  # … this many times the number selected
_CORES = 2  # a row is shared by at least this many cores
_UINT = np.dtype(np.uint32)
_LONG_INT = np.dtype(np.int64)


def select_rows(x: Array, k: int, *, descending: bool) -> tuple[Array, Array] | None:
    """Return the first k of each row's sorted order and their positions as int64, or None if a sort is as fast.

    Parameters
    ----------
    x : Array (…, n)
        Contiguous and not empty.
    k : int
        At least 1.
    descending : bool
    """
    n = x.shape[-1]
    device = device_of(x.engine.caps)
    if k > _SELECTED or n >= KEY_LIMIT or not _repays_selection(k, n, device):
        return None
    keys, candidates = as_bits(x), None
    rows = x.size // n
    order = (order_of(x.dtype), descending)
    parts_wanted = 2 * (device.tile_threadgroups or _CORES)
    while (parts := min(-(-parts_wanted // rows), n // max(_PART, _PART_RATIO * k))) > 1:
        keys, candidates = _select(keys, candidates, (rows, n, k, parts), order, _UINT)
        n = parts * k
    keys, positions = _select(keys, candidates, (rows, n, k, 1), order, _LONG_INT)
    shape = (*x.shape[:-1], k)
    return keys.viewed(keys.host.view(x.dtype)).reshape(shape), positions.reshape(shape)


def _repays_selection(k: int, n: int, device: Device) -> bool:
    """Return whether selecting is faster than sorting: on a CPU the selected elements' positions cost k² per row."""
    if device.waits or k <= _FEW:
        return n > max(LANES, 2 * k)
    return n > TILE_ROW and k * k <= 8 * n


def _select(
    keys: Array, candidates: Array | None, shape: tuple[int, int, int, int], order: tuple[int, bool],
    index: np.dtype[Any],
) -> tuple[Array, Array]:  # fmt: skip
    """Select from rows of keys, split into parts: `shape` is rows, keys of a row, k, parts."""
    rows, _, k, parts = shape
    are_candidates = candidates is not None
    launch = _selection(
        keys.dtype, shape, keys.offset, order, index, keys.device, are_candidates=are_candidates,
    )  # fmt: skip
    selected_keys, positions = (empty((rows, parts * k), dtype, keys.engine) for dtype in (keys.dtype, index))
    launch.start(keys, keys if candidates is None else candidates, selected_keys, positions)
    return selected_keys, positions


@functools.lru_cache(_PLANS)
def _selection(
    dtype: np.dtype[Any], shape: tuple[int, int, int, int], offset: int, order: tuple[int, bool],
    index: np.dtype[Any], engine: str, *, are_candidates: bool,
) -> Launch:  # fmt: skip
    rows, n, k, parts = shape
    few = not device_of(named(engine).caps).waits and k <= _FEW
    file = "few_select.metal" if few else "radix_select.metal"
    kernels = program(file, named(engine), KIND=order[0], DESCENDING=order[1])
    name = f"{'select' if index == _LONG_INT else 'candidates'}_{width(dtype)}"
    settings = record("<Q4I", offset // dtype.itemsize, n, k, parts, are_candidates)
    threads = LANES if few else 1024 if n // parts > 2 * _PART else 256
    grid = (rows * parts * threads, 1, 1)
    return Launch(kernels[name].binary, grid, (threads, 1, 1), (settings,)).bind_records(named(engine))
