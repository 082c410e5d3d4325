"""Plan a product: choose the kernels for its shapes and strides.

The kernels are those of ``matmul.metal`` and ``dots.metal``, on a GPU also of ``tiles.metal`` and
``matrix_tiles.metal``.
"""

from __future__ import annotations

import struct

import numpy as np

from .device import CORES, LANES, Device
from .elementwise_plan import broadcast_strides
from .packed_record import Record, record
from .product_matrices import A, B, C, Matrices, Shape, Strided, element_starts, factors, matrices_of, pair_starts
from .product_planner import FEW_LINES, KINDS, PRODUCT, SIZES, STRIPS, ProductPlan, ProductPlanner, ProductStep

__all__ = ["plan_dots", "plan_each_dot", "plan_product", "plan_widened", "plan_windows"]

EACH = 8  # dot products that a SIMD-group of pair_dots computes
MANY = 256  # this many dot products keep every SIMD-group busy
_DOTS = struct.Struct("I4x2q")


def plan_product(
    a: Strided, b: Strided, batch: Shape, dtype: str, device: Device = CORES,
    aligned: tuple[bool, bool] = (False, False),
) -> ProductPlan:  # fmt: skip
    """Plan the product of matrices (…, M, K) and (…, K, N), none of the lengths 0, over a batch.

    `aligned` states whether each factor's memory starts at a multiple of 16 bytes.
    """
    first, second = (x._replace(aligned=known) for x, known in zip(factors(a, b, batch), aligned, strict=True))
    return ProductPlanner(dtype, device).product(first, second)


def plan_widened(a: Strided, b: Strided, batch: Shape, dtype: str) -> ProductPlan:
    """Plan such a product of 16-bit floats if `a` was converted to float: contiguous, with at least `ROWS` rows."""
    return ProductPlanner(dtype).multiply_panels(*factors(a, b, batch))


def plan_windows(
    a: Strided, images: Strided, positions: int, window: Record, dtype: str, device: Device, *, aligned: bool,
    channels_last: bool = False,
) -> ProductPlan | None:  # fmt: skip
    """Plan the products of weights (groups, O, K) with the windows of contiguous images (N, groups, C, …).

    Return nothing if a window's element does not have full strips of channels, or if there are few outputs. `positions`
    is the number of positions of a window in an image; `window` is Window in ``tile_loads.h``. With `channels_last`,
    memory has the images as (N, …, groups, C), and strips of them are copied into threadgroup memory.
    """
    batch, groups, channels = images.shape[:3]
    kind = KINDS[dtype]
    if channels % STRIPS[SIZES[kind]] or a.shape[1] < FEW_LINES:
        return None
    image = int(np.prod(images.shape[3:], dtype=np.int64))
    first = matrices_of(A, a, (groups,))._replace(order=np.tile(np.arange(groups), batch), aligned=aligned)
    count = np.arange(batch * groups, dtype=np.int64)
    starts = count * channels * image
    if channels_last:
        starts = count // groups * (groups * channels * image) + count % groups * channels
    second = Matrices(B, a.shape[2], positions, image, 1, images.offset + starts, count, aligned=channels_last)
    return ProductPlanner(dtype, device).multiply_tiles(first, second, window)


def plan_dots(a: Strided, b: Strided, batch: Shape, dtype: str) -> ProductPlan:
    """Plan the dot products of the last axes, both contiguous, over a batch."""
    k = a.shape[-1]
    rows = Strided((*a.shape[:-1], 1, k), (*a.strides[:-1], k, 1), a.offset)
    columns = Strided((*b.shape, 1), (*b.strides, 1), b.offset)
    first, second = matrices_of(A, rows, batch), matrices_of(B, columns, batch)
    if len(first.order) < MANY:
        return ProductPlanner(dtype).run("dots", first, second)
    count = len(first.order)
    packed = record(PRODUCT, count, 1, k, 1, k, 1, 0, 1, 1, 0)
    starts = pair_starts(first, second)
    grid = (-(-count // EACH) * LANES, 1, 1)
    step = ProductStep(f"pair_dots_{KINDS[dtype]}", (A, B, C), (starts, packed), grid, (LANES, 1, 1))
    return ProductPlan((step,), ())


def plan_each_dot(a: Strided, b: Strided, batch: Shape, dtype: str) -> ProductPlan:
    """Plan dot products of last axes that are short or not contiguous: one thread for each."""
    inner = max(range(len(batch)), key=batch.__getitem__, default=-1)
    out, step = [], 1
    for n in reversed(batch):
        out.append(step)
        step *= n
    factors = ((x.offset, broadcast_strides(x.strides[:-1], x.shape[:-1], batch)) for x in (a, b))
    strided = [*factors, (0, tuple(reversed(out)))]
    outer_axes = [d for d in range(len(batch)) if d != inner]
    outer_batch = [batch[d] for d in outer_axes]
    starts = [element_starts(offset, [s[d] for d in outer_axes], outer_batch) for offset, s in strided]
    steps = np.array([s[inner] if batch else 0 for _, s in strided], np.int64)
    count = batch[inner] if batch else 1
    packed = record(_DOTS, a.shape[-1], a.strides[-1], b.strides[-1])
    grid = (count, len(starts[0]), 1)
    records = (np.stack(starts, 1), steps, packed)
    dots = ProductStep(f"each_dot_{KINDS[dtype]}", (A, B, C), records, grid, (min(count, 64), 1, 1))
    return ProductPlan((dots,), ())
