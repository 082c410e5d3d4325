"""Sort rows by the bits of their keys, with ``sort.metal``, or ``sort_serial.metal`` if every thread is a core.

``sort_tiles.metal`` sorts long rows on a GPU.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array, empty
from ...engine import named
from ...engine.base import Engine
from ...program import Program
from ..planning.device import LANES, device_of
from ..planning.packed_record import record
from .copying import contiguous_copy
from .element_bits import as_bits, order_of, width
from .launcher import Launch, dispatch
from .programs import program
from .reduction_launch import Monoid
from .scan_launch import start_scan

__all__ = ["DIGITS", "KEY_LIMIT", "TILE_ROW", "Sorted", "pass_kernels", "radix_pass", "sort_rows"]

DIGITS = 256
KEY_LIMIT = 1 << 31  # the limit on keys in a row
TILE_ROW = 2048  # a row of up to this many keys is sorted as one tile;
_LONG_TILE_ROW = 65536  # … or of up to this many,
_ENOUGH_ROWS = 16  # … if there are at least this many rows
_PLANS = 4096
_UINT = np.dtype(np.uint32)
_COUNTS = Monoid("Sum", "uint", "uint", "uint", "uint")


class _Method(NamedTuple):
    """A method of sorting tiles.

    Attributes
    ----------
    file : str
    lanes : int
        Threads per tile.
    tiles : int
        The number of tiles from which on tiles grow from the smallest to the largest size.
    smallest, largest : int
        Keys per tile.
    """

    file: str
    lanes: int
    tiles: int
    smallest: int
    largest: int


_BY_LANES = _Method("sort.metal", LANES, 512, 2048, 16384)
_SERIAL = _Method("sort_serial.metal", 1, 64, 2048, 262144)


def _method(engine: Engine) -> _Method:
    return _SERIAL if engine.caps.serial else _BY_LANES


class Sorted(NamedTuple):
    """Sorted rows.

    Attributes
    ----------
    keys : Array
        The sorted rows, in the input's dtype.
    indices : Array or None
        The original position of each key in its row, as uint32.
    """

    keys: Array
    indices: Array | None


def sort_rows(x: Array, *, descending: bool = False, indexed: bool = False) -> Sorted:
    """Sort each row of a contiguous array along its last axis; equal keys keep their order."""
    bits = as_bits(x)
    n = x.shape[-1]
    rows = x.size // n if n else 0
    if n >= KEY_LIMIT:
        raise ValueError(f"sort: an axis of {n:,} is too long; at most {KEY_LIMIT - 1:,} elements are sorted.")
    method, device = _method(x.engine), device_of(x.engine.caps)
    lanes = method.lanes
    kernels = program(
        "sort.metal" if n <= LANES else method.file, x.engine,
        KIND=order_of(x.dtype), DESCENDING=descending, INDEXED=indexed,
    )  # fmt: skip
    out = _Buffers(bits, indexed)
    if rows == 0:
        pass
    elif n <= LANES:
        rows_per_group = LANES // n
        dispatch(kernels[f"sort_short_{width(x.dtype)}"], bits, out.keys, n, rows, *out.indices,
                 grid=LANES * -(-rows // rows_per_group), threadgroup=LANES)  # fmt: skip
    elif device.tile_threadgroups and n <= _sort_tile(x.itemsize):
        source = contiguous_copy(bits) if bits.offset else bits
        launch = _tile_rows(x.dtype, rows, n, x.device, descending=descending, indexed=indexed)
        launch.start(source, out.keys, *(out.indices or (None,)))
    elif not device.tile_threadgroups and (n <= TILE_ROW or (rows >= _ENOUGH_ROWS and n <= _LONG_TILE_ROW)):
        second_buffer = _Buffers(bits, indexed)
        dispatch(kernels[f"sort_rows_{width(x.dtype)}"], bits, second_buffer.keys, out.keys, n,
                 *second_buffer.indices, *out.indices,
                 grid=lanes * rows, threadgroup=lanes)  # fmt: skip
    elif device.tile_threadgroups:
        kernels = program(
            "sort_tiles.metal", x.engine, KIND=order_of(x.dtype), DESCENDING=descending, INDEXED=indexed
        )
        source = contiguous_copy(bits) if bits.offset else bits  # a launch binds entire blocks
        _sort_by_passes(functools.partial(_tile_pass, kernels), source, out, rows, n)
    else:
        _sort_by_passes(functools.partial(radix_pass, kernels), bits, out, rows, n)
    return Sorted(out.keys.viewed(out.keys.host.view(x.dtype)), out.indices[0] if indexed else None)


class _Buffers:
    """Allocate memory for the keys of a pass and, if requested, for their indices."""

    def __init__(self, like: Array, indexed: bool) -> None:
        self.keys = empty(like.shape, like.dtype, like.engine)
        self.indices: tuple[Array, ...] = (empty(like.shape, _UINT, like.engine),) if indexed else ()


def _sort_by_passes(sort: Callable[..., Any], bits: Array, out: _Buffers, rows: int, n: int) -> None:
    """Sort long rows. Each digit of 8 bits takes a few dispatches over all tiles of all rows."""
    passes = bits.dtype.itemsize
    second_buffer = _Buffers(bits, bool(out.indices)) if passes > 1 else out
    keys, indices = bits, second_buffer.indices
    for p in range(passes):
        target = out if (passes - p) % 2 else second_buffer
        sort(keys, indices, target.keys, target.indices, rows, n, 8 * p, first=p == 0)
        keys, indices = target.keys, target.indices


def _tile_pass(  # noqa: PLR0913  (as radix_pass)
    kernels: Program, keys: Array, indices: tuple[Array, ...], target: Array, target_indices: tuple[Array, ...],
    rows: int, n: int, shift: int, *, first: bool,
) -> None:  # fmt: skip
    """Run `radix_pass` with threadgroups of many SIMD-groups."""
    steps = _tile_steps(kernels, keys.dtype, rows, n, shift, keys.device, first=first)
    counts = empty((rows, DIGITS * steps.tiles), _UINT, keys.engine)
    steps.counting.start(keys, counts)
    starts = start_scan(counts, 1, _COUNTS, _UINT, initial=True)
    index_arrays = (*indices, *target_indices) or (None, None)  # missing parameters
    steps.scatter.start(keys, target, starts, steps.settings, *index_arrays)


@functools.lru_cache(_PLANS)
def _tile_rows(
    dtype: np.dtype[Any], rows: int, n: int, engine: str, *, descending: bool, indexed: bool
) -> Launch:
    """Compile the kernels that sort rows in threadgroup memory."""
    target = named(engine)
    kernels = program("sort_tiles.metal", target, KIND=order_of(dtype), DESCENDING=descending, INDEXED=indexed)
    keys_per_thread = next(keys for keys in (1, 4, 8, 16) if keys * DIGITS >= n)
    name = f"tile_rows_{width(dtype)}_{keys_per_thread}"
    return Launch(
        kernels[name].binary, (rows * DIGITS, 1, 1), (DIGITS, 1, 1), (np.array([n], np.uint32),),
    ).bind_records(target)  # fmt: skip


class _TileSteps(NamedTuple):
    """The dispatches of a pass, except for the scan between them; `scatter` receives `settings` with its arrays."""

    tiles: int
    counting: Launch
    scatter: Launch
    settings: Any


@functools.lru_cache(_PLANS)
def _tile_steps(
    kernels: Program, dtype: np.dtype[Any], rows: int, n: int, shift: int, engine: str, *, first: bool
) -> _TileSteps:
    """Compile the kernels of a pass."""
    tile = _sort_tile(dtype.itemsize)
    tiles = -(-n // tile)
    settings = record("<5I", n, tile, tiles, shift, first)  # Pass of radix.h
    launch_shape = (tiles * DIGITS, rows, 1), (DIGITS, 1, 1)
    target, bits = named(engine), width(dtype)
    counting = Launch(kernels[f"tile_count_{bits}"].binary, *launch_shape, (settings,)).bind_records(target)
    scatter = Launch(kernels[f"tile_scatter_{bits}"].binary, *launch_shape).bind_records(target)
    return _TileSteps(tiles, counting, scatter, counting.records[0])


def pass_kernels(engine: Engine, *, kind: int, descending: bool, indexed: bool) -> Program:
    """Compile the kernels that `radix_pass` starts."""
    return program(_method(engine).file, engine, KIND=kind, DESCENDING=descending, INDEXED=indexed)


def radix_pass(  # noqa: PLR0913  (everything that a pass needs)
    kernels: Program, keys: Array, indices: tuple[Array, ...], target: Array, target_indices: tuple[Array, ...],
    rows: int, n: int, shift: int, *, first: bool,
) -> Array:  # fmt: skip
    """Sort keys by the 8 bits from `shift` on; return the counts, whose last row has the start of each digit.

    Parameters
    ----------
    kernels : Program
        From `pass_kernels`.
    keys, target : Array
        Unsigned, `rows` × `n`.
    indices, target_indices : tuple of Array
        The values of 32 bits that move with the keys: one array or none.
    shift : int
    first : bool
        Whether the values are the keys' positions in their rows instead of `indices`.

    Returns
    -------
    Array
        ``(rows, tiles + 1, 256)``, uint32.
    """
    method = _method(keys.engine)
    lanes = method.lanes
    tile = max(method.smallest, min(method.largest, n // method.tiles // LANES * LANES))
    tiles = -(-n // tile)
    counts = empty((rows, tiles + 1, DIGITS), _UINT, keys.engine)
    shape = {"n": n, "tile": tile, "tiles": tiles}
    settings = {"shape": shape, "shift": shift, "first": int(first)}
    bits = width(keys.dtype)
    grid = (tiles * lanes, rows)
    dispatch(kernels[f"sort_count_{bits}"], keys, counts, settings, grid=grid, threadgroup=(lanes, 1))
    adders = DIGITS if lanes > 1 else 1
    dispatch(kernels.sort_offsets, counts, shape, grid=adders * rows, threadgroup=adders)
    dispatch(kernels[f"sort_scatter_{bits}"], keys, target, counts, settings, *indices, *target_indices,
             grid=grid, threadgroup=(lanes, 1))  # fmt: skip
    return counts


def _sort_tile(itemsize: int) -> int:
    """Return how many keys a threadgroup of ``sort_tiles.metal`` ranks at once."""
    return 16384 // max(itemsize, 4)
