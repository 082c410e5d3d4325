"""Plan attention: choose the kernels for its shapes and the device.

``attention.metal`` has one query per lane; ``attention_matrices.metal`` is for hardware that multiplies matrices,
``attention_tiles.metal`` for GPUs without it, and ``attention_parts.metal`` for few queries over many keys.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ...engine.base import Grid
from .device import LANES, Device
from .packed_record import Record, record

__all__ = ["AttentionShape", "AttentionStep", "plan_attention"]

_LARGEST_HEAD = 256  # most numbers in a query or a value on a GPU, and in both together on a CPU
_RECORD = struct.Struct("<5Q9If")
_MEMORY = 32768  # bytes of threadgroup memory for tiles of keys and values
_TILES = (64, 48, 32, 16)  # keys per tile
_RING = 3  # tiles in the ring, as in attention_matrices.metal
_FEW_QUERIES, _MANY_KEYS = 8, 256  # if at most 8 queries share at least 256 keys, parts repay a second kernel
_BUSY = 16  # SIMD-groups that keep a few cores busy
_PART, _SIDES = 64, 8  # fewest keys in a part; numbers of a key per lane
_ENOUGH_KEYS = 64  # from this many keys, rounded weights are as good as exact ones, and a tile pays off
_WIDE_ENOUGH = 64  # up to this many numbers in a row, a SIMD-group has registers for 32 queries
_SIDE = 64  # queries and keys per tile in attention_tiles.metal


class AttentionShape(NamedTuple):
    """The shape of a call.

    Attributes
    ----------
    heads : int
        The query's heads, over all leading axes.
    query_heads_per_key_head : int
        How many of the query's heads share a head of key and value.
    queries, keys, head_size, value_size : int
        L, S, E and V.
    kind : {"float", "half", "bfloat16"}
    masked, causal : bool
    mask_pitch : int
        The distance from one head's mask to the next.
    starts : tuple of 4 int
        The offsets of q, k, v and the mask in their memory, in elements.
    scale : float
    rows_aligned : bool
        Whether the rows of keys and values begin at multiples of 16 bytes.
    """

    heads: int
    query_heads_per_key_head: int
    queries: int
    keys: int
    head_size: int
    value_size: int
    kind: str
    masked: bool
    causal: bool
    mask_pitch: int
    starts: tuple[int, int, int, int]
    scale: float
    rows_aligned: bool


class AttentionStep(NamedTuple):
    """One dispatch.

    Attributes
    ----------
    file, template : str
        The file and the template of the kernel.
    arguments : str
        The memory of its first buffers: q, k, v, m the mask, o the result, p the parts.
    packed : numpy.ndarray
        The record, in the buffer after these.
    grid, threadgroup : tuple of 3 int
    parts : int
        The number of floats that it writes for parts.
    """

    file: str
    template: str
    arguments: str
    packed: Record
    grid: Grid
    threadgroup: Grid
    parts: int = 0


def plan_attention(s: AttentionShape, device: Device) -> tuple[AttentionStep, ...]:
    """Plan attention; return an empty plan if no kernel takes rows of this width, so that it must use products."""
    matrices = s.kind.removesuffix("16") in device.matrices
    fits = max(s.head_size, s.value_size) <= _LARGEST_HEAD
    own_kernels = (device.waits or matrices) and fits
    by_parts = fits and (own_kernels or s.kind == "float")
    if by_parts and s.query_heads_per_key_head * s.queries <= _FEW_QUERIES and s.keys >= _MANY_KEYS:
        return _parts(s, device)
    if own_kernels and matrices and s.keys >= _ENOUGH_KEYS and (keys := _tile(s)):
        return (_matrices(s, keys),)
    if own_kernels and device.waits:
        return (_tiles(s),)
    if s.head_size + s.value_size > _LARGEST_HEAD:
        return ()
    blocks = -(-s.queries // LANES)
    template = f"attend<{s.kind}, {s.head_size}, {s.value_size}, {_bool_text(s.masked)}>"
    return (AttentionStep(
        "attention.metal", template, "qkvmo", _pack(s, query_blocks=blocks), *_grid_of_groups(s.heads * blocks, LANES),
    ),)  # fmt: skip


def _padded_sizes(s: AttentionShape) -> tuple[int, int]:
    """Return the lengths of a key and of a value, padded to full pairs of matrices."""
    return -(-s.head_size // 16) * 16, -(-s.value_size // 16) * 16


def _tile(s: AttentionShape) -> int:
    """Return how many keys or values a tile has, if a ring of them fits into threadgroup memory, or 0 if too few."""
    row = (max(_padded_sizes(s)) + 8) * (4 if s.kind == "float" else 2)
    return next((n for n in _TILES if _RING * n * row <= _MEMORY), 0)


def _matrices(s: AttentionShape, keys: int) -> AttentionStep:
    kind = s.kind.removesuffix("16")
    head_size, value_size = _padded_sizes(s)
    tile_rows = 4 if max(head_size, value_size) <= _WIDE_ENOUGH else 2
    blocks = -(-s.queries // (32 * tile_rows))
    flags = f"{_bool_text(s.masked)}, {_bool_text(s.rows_aligned)}"
    template = f"attend_matrices<{kind}, {head_size}, {value_size}, {keys}, {tile_rows}, {flags}>"
    return AttentionStep(
        "attention_matrices.metal", template, "qkvmo", _pack(s, query_blocks=blocks),
        *_grid_of_groups(s.heads * blocks, 128),
    )


def _tiles(s: AttentionShape) -> AttentionStep:
    value_size = next(n for n in (64, 128, 256) if n >= s.value_size)
    blocks = -(-s.queries // _SIDE)
    template = f"attend_tiles<{s.kind}, {value_size}, {_bool_text(s.masked)}, {_bool_text(s.rows_aligned)}>"
    return AttentionStep(
        "attention_tiles.metal", template, "qkvmo", _pack(s, query_blocks=blocks),
        *_grid_of_groups(s.heads * blocks, 128),
    )


def _parts(s: AttentionShape, device: Device) -> tuple[AttentionStep, ...]:
    side, numbers, wide = _lanes_of_key(s, device)
    queries_of_keys = s.query_heads_per_key_head * s.queries
    rows = next(n for n in (1, 2, 4) if n >= min(queries_of_keys, 4))
    groups = s.heads // s.query_heads_per_key_head * -(-queries_of_keys // rows)
    resident_groups = device.simd_groups if device.waits else _BUSY
    parts = max(1, min(resident_groups // groups, s.keys // _PART))
    part_length = -(-s.keys // parts)
    parts = -(-s.keys // part_length)
    packed = _pack(s, key_parts=parts, part_length=part_length)
    flags = f"{_bool_text(s.masked)}, {_bool_text(wide)}"
    template = f"attend_part<{s.kind}, {side}, {numbers}, {rows}, {flags}>"
    count = s.heads * s.queries
    return (
        AttentionStep("attention_parts.metal", template, "qkvmp", packed, *_grid_of_groups(groups * parts, LANES),
                      count * parts * (s.value_size + 2)),
        AttentionStep("attention_parts.metal", f"attend_together<{s.kind}>", "po", packed,
                      *_grid_of_groups(count, LANES)),
    )  # fmt: skip


def _lanes_of_key(s: AttentionShape, device: Device) -> tuple[int, int, bool]:
    """Return how many lanes share a key, how many numbers each has, and whether these are adjacent.

    A GPU loads eight numbers per lane at once; a vector register holds one number per lane.
    """
    width = max(s.head_size, s.value_size)
    if not device.waits:
        return LANES, -(-width // LANES), False
    side = 1
    while side * _SIDES < width:
        side *= 2
    return side, _SIDES, s.rows_aligned


def _pack(s: AttentionShape, *, query_blocks: int = 0, key_parts: int = 0, part_length: int = 0) -> Record:
    sizes = (s.queries, s.keys, s.head_size, s.value_size, s.query_heads_per_key_head)
    divisions = (query_blocks, key_parts, part_length)
    return record(_RECORD, *s.starts, s.mask_pitch, *sizes, int(s.causal), *divisions, s.scale)


def _grid_of_groups(count: int, threads: int) -> tuple[Grid, Grid]:
    return (count * threads, 1, 1), (threads, 1, 1)


def _bool_text(flag: bool) -> str:
    return "true" if flag else "false"
