"""Plan a product: choose the kernels for its shapes and strides.

The kernels are those of ``matmul.metal`` and ``dots.metal``, on a GPU also of ``tiles.metal`` and
``matrix_tiles.metal``.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...engine.base import Grid
from .device import CORES, LANES, Device
from .elementwise_plan import broadcast_strides
from .packed_record import Record, record

__all__ = [
    "DOT", "SMALL", "ProductPlan", "ProductStep", "Strided", "plan_dots", "plan_each_dot", "plan_product",
    "plan_widened", "plan_windows",
]  # fmt: skip

Shape = tuple[int, ...]
Host = np.ndarray[Any, Any]
Starts = np.ndarray[Any, np.dtype[np.int64]]

ROWS = 6  # rows that matmul_panels computes at once
FEW = 4  # rows that matmul_few and dots take
EACH = 8  # dot products that a SIMD-group of pair_dots computes
A, B, C = 0, 1, 2  # indices of a plan's memory; scratch buffers follow

# Where one method becomes slower than another on a two-core AVX-512 CPU; the result is right either way.
SMALL = 1 << 19  # a B of at most this many bytes stays in cache, and …
CLOSE = 1 << 9  # … rows of at most this many are close enough to read a panel in place
SKINNY = 48  # up to this many rows, packing does not pay off
DOT = 64  # from this many terms, a dot product repays the sum over lanes
MANY = 256  # this many dot products keep every SIMD-group busy
BLOCK = 16  # this many panels of rows stay in cache while all of B is read
TALL, ENOUGH = 32, 64  # a SIMD-group computes TALL * ROWS rows of two panels; fewer, if that gives fewer than ENOUGH
GROUPS, LEAST = 64, 1024  # K is split to keep GROUPS SIMD-groups busy, into parts of at least LEAST
STRIP, DEEP = 256, 4096  # K is split so that parts of B, or of A and B, stay in cache while in use


class Tile(NamedTuple):
    """A size of tile on a GPU: its kernels' prefix, its threads, and the part of `tile_places` that it must fill."""

    name: str
    rows: int
    columns: int
    threads: int
    filled: float


TILES = (Tile("", 128, 128, 256, 0.5), Tile("small_", 64, 128, 128, 0))
MATRIX_TILES = (Tile("large_", 128, 256, 256, 1), Tile("", 128, 128, 128, 0.5), Tile("small_", 64, 128, 128, 0))
PIPES = (Tile("", 128, 128, 128, 0.5), Tile("small_", 64, 128, 128, 0))  # matrices with several strips in flight
TILE_TERMS = 256  # a part of K has at least this many products per element
FEW_LINES = 16  # a tile does not pay off for this few rows or columns
SPAN = 128  # a threadgroup of columns.metal has at least this many rows of B,
COLUMN_THREADS = 256  # … and this many threads;
COLUMN_GROUPS = 8  # … this many threadgroups for each of a GPU's places fill the GPU
STRIPS = {2: 32, 4: 8}  # the depth of a tile's strip, by the bytes of an element

# A dtype's name in the kernels, and its accumulator's bytes where that is another. A signed integer is treated as
# unsigned: the bits of a product are the same.
_KINDS = {
    "bool": "bool", "float32": "float", "float16": "half", "bfloat16": "bfloat16",
    "int8": "uchar", "int16": "ushort", "int32": "uint", "int64": "ulong",
    "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong",
}  # fmt: skip
_SIZES = {"bool": 1, "uchar": 1, "ushort": 2, "half": 2, "bfloat16": 2, "uint": 4, "float": 4, "ulong": 8}
_WIDENED = {"half": 4, "bfloat16": 4}
_FLOATS = {"float", *_WIDENED}

_PRODUCT = struct.Struct("6I4q")
_PACKING = struct.Struct("2I2q")
_DOTS = struct.Struct("I4x2q")


class Strided(NamedTuple):
    """An array's layout in its block, in elements."""

    shape: Shape
    strides: Shape
    offset: int

    def without(self, *axes: int) -> Strided:
        """Remove axes of one element."""
        dropped = {d % len(self.shape) for d in axes}
        shape, strides = (
            tuple(v for d, v in enumerate(values) if d not in dropped) for values in (self.shape, self.strides)
        )
        return Strided(shape, strides, self.offset)


class ProductStep(NamedTuple):
    """One dispatch.

    Attributes
    ----------
    kernel : str
    places : tuple of int
        The memory of its first buffers: 0 and 1 the factors, 2 the product, 3 and up scratch.
    records : tuple of numpy.ndarray
        The buffers after them.
    grid, threadgroup : tuple of 3 int
    load_kinds : tuple of 2 str
        For a kernel of tiles: how the factors are read, in the terms of ``tile_loads.h``.
    """

    kernel: str
    places: tuple[int, ...]
    records: tuple[Host, ...]
    grid: Grid
    threadgroup: Grid
    load_kinds: tuple[str, ...] = ()


class ProductPlan(NamedTuple):
    """Dispatches in order, and the bytes of each scratch buffer."""

    steps: tuple[ProductStep, ...]
    scratch: tuple[int, ...]


class Matrices(NamedTuple):
    """Matrices of the same shape in one memory, in elements.

    Attributes
    ----------
    place : int
    rows, columns : int
    row, column : int
        The strides from one row, and from one column, to the next.
    starts : numpy.ndarray of int64
        The start of each.
    order : numpy.ndarray of int64
        The matrix that each product of the batch uses.
    panel : int
        The stride from one panel of 32 columns to the next.
    aligned : bool
        Whether the memory is aligned for vectors of four.
    """

    place: int
    rows: int
    columns: int
    row: int
    column: int
    starts: Starts
    order: Starts
    panel: int = LANES
    aligned: bool = False

    @property
    def transpose(self) -> Matrices:
        """The same with rows and columns exchanged."""
        return self._replace(rows=self.columns, columns=self.rows, row=self.column, column=self.row)


def plan_product(
    a: Strided, b: Strided, batch: Shape, dtype: str, device: Device = CORES,
    aligned: tuple[bool, bool] = (False, False),
) -> ProductPlan:  # fmt: skip
    """Plan the product of matrices (…, M, K) and (…, K, N), none of the lengths 0, over a batch.

    `aligned` states whether each factor's memory starts at a multiple of 16 bytes.
    """
    first, second = _factors(a, b, batch)
    return _Planner(dtype, device).product(first._replace(aligned=aligned[A]), second._replace(aligned=aligned[B]))


def plan_widened(a: Strided, b: Strided, batch: Shape, dtype: str) -> ProductPlan:
    """Plan such a product of 16-bit floats if `a` was converted to float: contiguous, with at least `ROWS` rows."""
    return _Planner(dtype).multiply_panels(*_factors(a, b, batch))


def plan_windows(
    a: Strided, images: Strided, places: int, window: Record, dtype: str, device: Device, *, aligned: bool,
    channels_last: bool = False,
) -> ProductPlan | None:  # fmt: skip
    """Plan the products of weights (groups, O, K) with the windows of contiguous images (N, groups, C, …).

    Return nothing if a window's element does not have full strips of channels, or if there are few outputs. `places`
    are the positions of a window in an image; `window` is Window in ``tile_loads.h``. With `channels_last`, memory has
    the images as (N, …, groups, C), and strips of them are copied into threadgroup memory.
    """
    batch, groups, channels = images.shape[:3]
    kind = _KINDS[dtype]
    if channels % STRIPS[_SIZES[kind]] or a.shape[1] < FEW_LINES:
        return None
    image = int(np.prod(images.shape[3:], dtype=np.int64))
    first = _matrices(A, a, (groups,))._replace(order=np.tile(np.arange(groups), batch), aligned=aligned)
    count = np.arange(batch * groups, dtype=np.int64)
    starts = count * channels * image
    if channels_last:
        starts = count // groups * (groups * channels * image) + count % groups * channels
    second = Matrices(B, a.shape[2], places, image, 1, images.offset + starts, count, aligned=channels_last)
    return _Planner(dtype, device).multiply_tiles(first, second, window)


def plan_dots(a: Strided, b: Strided, batch: Shape, dtype: str) -> ProductPlan:
    """Plan the dot products of the last axes, both contiguous, over a batch."""
    k = a.shape[-1]
    rows = Strided((*a.shape[:-1], 1, k), (*a.strides[:-1], k, 1), a.offset)
    columns = Strided((*b.shape, 1), (*b.strides, 1), b.offset)
    first, second = _matrices(A, rows, batch), _matrices(B, columns, batch)
    if len(first.order) < MANY:
        return _Planner(dtype).run("dots", first, second)
    count = len(first.order)
    packed = record(_PRODUCT.pack(count, 1, k, 1, k, 1, 0, 1, 1, 0))
    starts = _pairs(first, second)
    grid = (-(-count // EACH) * LANES, 1, 1)
    step = ProductStep(f"pair_dots_{_KINDS[dtype]}", (A, B, C), (starts, packed), grid, (LANES, 1, 1))
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
    starts = [_places(offset, [s[d] for d in outer_axes], outer_batch) for offset, s in strided]
    steps = np.array([s[inner] if batch else 0 for _, s in strided], np.int64)
    count = batch[inner] if batch else 1
    packed = record(_DOTS.pack(a.shape[-1], a.strides[-1], b.strides[-1]))
    grid = (count, len(starts[0]), 1)
    records = (np.stack(starts, 1), steps, packed)
    dot_step = ProductStep(f"each_dot_{_KINDS[dtype]}", (A, B, C), records, grid, (min(count, 64), 1, 1))
    return ProductPlan((dot_step,), ())


def _factors(a: Strided, b: Strided, batch: Shape) -> tuple[Matrices, Matrices]:
    if all(n == 1 for n in b.shape[:-2]) and (rows := _as_rows(a)) is not None:
        a, b, batch = rows, b.without(*range(len(b.shape) - 2)), ()  # one B for all: the batch only adds rows
    return _matrices(A, a, batch), _matrices(B, b, batch)


def _as_rows(a: Strided) -> Strided | None:
    """View a batch of matrices as one with all their rows, if the rows are evenly spaced."""
    axes = [d for d, n in enumerate(a.shape[:-1]) if n != 1]
    for outer, inner in itertools.pairwise(axes):
        if a.strides[outer] != a.strides[inner] * a.shape[inner]:
            return None
    count = int(np.prod(a.shape[:-1], dtype=np.int64))
    return Strided((count, a.shape[-1]), (a.strides[axes[-1]] if axes else 0, a.strides[-1]), a.offset)


def _matrices(place: int, x: Strided, batch: Shape) -> Matrices:
    lead = x.shape[:-2]
    rows, columns = x.shape[-2:]
    row, column = x.strides[-2:]
    starts = _places(x.offset, x.strides[:-2], lead)
    order = np.arange(len(starts)).reshape(lead)
    if lead != batch:
        order = np.broadcast_to(order, batch)
    return Matrices(place, rows, columns, row, column, starts, order.reshape(-1))


def _places(offset: int, strides: Sequence[int], shape: Sequence[int]) -> Starts:
    """Return the offset of each element of a shape, last axis fastest."""
    result = np.array([offset], np.int64)
    for n, stride in zip(shape, strides, strict=True):
        result = (result[:, None] + np.arange(n, dtype=np.int64) * stride).reshape(-1)
    return result


def _pairs(a: Matrices, b: Matrices) -> Starts:
    """Return the offsets of each product's two factors, interleaved."""
    result = np.empty((len(a.order), 2), np.int64)
    for i, x in enumerate((a, b)):
        result[:, i] = x.starts if len(x.starts) == len(x.order) else x.starts[x.order]
    return result


class _Planner:
    """Collects the steps of a product of matrices."""

    def __init__(self, dtype: str, device: Device = CORES) -> None:
        self.device = device
        self.kind = _KINDS[dtype]
        self.size = _SIZES[self.kind]
        self.wide = False
        self.steps: list[ProductStep] = []
        self.scratch: list[int] = []

    def product(self, a: Matrices, b: Matrices) -> ProductPlan:
        """Choose the kernel."""
        is_along = a.column == b.row == 1  # both are contiguous along K
        if (b.columns == 1 and not is_along) or (a.rows == 1 and is_along):
            a, b = b.transpose, a.transpose  # C is a vector: its transpose has the same layout
        if is_along and min(a.rows, b.columns) <= LANES // 2 and a.columns >= DOT:
            reads_four = _reads_by_four(a) and _reads_by_four(b.transpose)
            is_wide = self.device.tile_places and self.kind in _FLOATS and reads_four
            return self.run("wide_dots" if is_wide else "dots", a, b)
        neighbors = b.column == 1 or b.columns == 1
        if self.device.tile_places and min(a.rows, b.columns) > FEW_LINES and self.kind != "ulong":
            return self.multiply_tiles(a, b)
        if self.device.tile_places and neighbors and b.columns > LANES and a.rows <= FEW_LINES:
            return self.columns(a, b)
        close = b.rows * b.columns * self.size <= SMALL or b.row * self.size <= CLOSE
        if neighbors and b.columns > LANES and a.rows <= (FEW if close else SKINNY):
            return self.run("matmul_few", a, b)
        if neighbors and close:
            return self.run("matmul", a, b)
        is_along = a.column == 1 and a.rows >= ROWS and self.kind != "ulong" and not self.device.tile_places
        return self.run("matmul_panels" if is_along else "matmul", a, self._pack_panels(b, f"pack_{self.size}"))

    def multiply_panels(self, a: Matrices, b: Matrices) -> ProductPlan:
        """Multiply after `a` was converted to float; `b` is converted as it is packed, and the result is rounded."""
        self.size, self.wide = _WIDENED[self.kind], True
        return self.run("matmul_panels", a, self._pack_panels(b, f"pack_{self.kind}"))

    def run(self, name: str, a: Matrices, b: Matrices) -> ProductPlan:
        """Add the kernel that multiplies, and the one that adds up the parts of K."""
        m, n, k, batch = a.rows, b.columns, a.columns, len(a.order)
        x, y, blocks = self._threadgroups(name, m, n, batch)
        splits, depth = self._split(name, m, n, k, x * y * blocks * batch)
        step = b.column if "dots" in name else b.panel
        grid = (x * LANES, y, blocks * splits * batch)
        return self._multiply(name, a, b, (splits, depth, blocks, step), grid, LANES)

    def columns(self, a: Matrices, b: Matrices) -> ProductPlan:
        """Add the kernel whose threadgroups take a strip of B's columns and a part of K; on a GPU."""
        m, n, k, batch = a.rows, b.columns, a.columns, len(a.order)
        is_wide = self.kind in _FLOATS and _reads_by_four(b)
        rows = 1 if m == 1 or self.kind == "ulong" else FEW
        columns_per_lane = 2 if self.kind == "ulong" else 8 if is_wide and rows == 1 and self.size == 2 else 4
        strips, down = -(-n // (columns_per_lane * LANES)), -(-m // rows)
        splits = max(1, min(COLUMN_GROUPS * self.device.tile_places // (strips * down * batch), k // SPAN))
        depth = -(-k // (splits * LANES)) * LANES
        shape = (-(-k // depth), depth, 1, b.panel)
        grid = (strips * COLUMN_THREADS, down, shape[0] * batch)
        return self._multiply(f"columns_{'wide_' * is_wide}{rows}", a, b, shape, grid, COLUMN_THREADS)

    def multiply_tiles(self, a: Matrices, b: Matrices, window: Record | None = None) -> ProductPlan:
        """Add the kernel whose threadgroups compute one tile each; for windows, B is the start of the images."""
        m, n, k, batch = a.rows, b.columns, a.columns, len(a.order)
        matrices, places = self.kind in _WIDENED, self.device.tile_places
        vector_length = 8 if matrices else 4
        b_kind = _load_kind(b.transpose, vector_length) if window is None else "WINDOWS"
        load_kinds = (_load_kind(a, vector_length), b_kind)
        form, sizes = self._tiles(load_kinds, is_piped=window is None or b.aligned)
        for tile in sizes:
            tiles = -(-m // tile.rows) * -(-n // tile.columns) * batch
            if tiles >= tile.filled * places and 2 * m > tile.rows:
                break
        splits = max(1, min(places // tiles, k // TILE_TERMS))
        depth = -(-k // (splits * LANES)) * LANES
        shape = (-(-k // depth), depth, 1, b.column)
        grid = (tiles // batch * tile.threads, 1, shape[0] * batch)
        constants = () if window is None else (window,)
        return self._multiply(f"{tile.name}{form}", a, b, shape, grid, tile.threads, load_kinds, constants)

    def _tiles(self, load_kinds: tuple[str, str], *, is_piped: bool) -> tuple[str, tuple[Tile, ...]]:
        """Return the kernels that read factors in this way, and the sizes of their tiles."""
        if self.kind not in _WIDENED:
            return "tiles", TILES
        is_piped = is_piped and self.device.copies and "ANY" not in load_kinds
        if "WINDOWS" in load_kinds and not is_piped:
            return "matrix_tiles", MATRIX_TILES[-1:]
        return ("matrix_pipes", PIPES) if is_piped else ("matrix_tiles", MATRIX_TILES)

    def _multiply(
        self, name: str, a: Matrices, b: Matrices, split: tuple[int, int, int, int], grid: Grid, threads: int,
        load_kinds: tuple[str, ...] = (), records: tuple[Host, ...] = (),
    ) -> ProductPlan:  # fmt: skip
        """Add a kernel, and one to sum its parts of K; `split`: splits, depth, blocks, step along B's columns."""
        m, n, k, batch = a.rows, b.columns, a.columns, len(a.order)
        splits = split[0]
        packed = record(_PRODUCT.pack(m, n, k, *split[:3], a.row, a.column, b.row, split[3]))
        parts, suffix = C, self.kind
        if splits > 1:
            parts = self._scratch(batch * splits * m * n * _WIDENED.get(self.kind, self.size))
            suffix = f"{self.kind}_parts" if self.kind in _WIDENED else self.kind
        if self.wide:
            suffix = "float" if splits > 1 else f"float_{self.kind}"
        places = (a.place, b.place, parts)
        self._add(f"{name}_{suffix}", places, (_pairs(a, b), packed, *records), grid, threads, load_kinds)
        if splits > 1:
            count = np.array([splits], np.uint32)
            self._add(f"add_parts_{self.kind}", (parts, C), (count,), (m * n, batch, 1), min(m * n, 64))
        return ProductPlan(tuple(self.steps), tuple(self.scratch))

    def _threadgroups(self, name: str, m: int, n: int, batch: int) -> Grid:
        """Return the threadgroups along x and y, and blocks of rows; 64-bit sums fill the registers twice as fast."""
        rows, panels = (6, 4) if self.kind == "ulong" else (12, 8)
        if "dots" in name:
            return -(-m // FEW), -(-n // 2), 1
        if name == "matmul_few":
            return -(-m // FEW), -(-n // (LANES * panels)), 1
        if name == "matmul_panels":
            column_tiles, down = -(-n // (2 * LANES)), -(-m // ROWS)
            return column_tiles, 1, -(-down // max(1, min(TALL, column_tiles * down * batch // ENOUGH)))
        row_tiles = -(-m // rows)
        blocks = -(-row_tiles // BLOCK)
        return -(-row_tiles // blocks), -(-n // LANES), blocks

    def _split(self, name: str, m: int, n: int, k: int, groups: int) -> tuple[int, int]:
        """Split K into parts; return their number and length."""
        splits = min((2 * self.device.tile_places or GROUPS) // groups, k // LEAST)
        if name == "matmul_few" and m > FEW:
            splits = max(splits, k // STRIP)
        is_deep = DEEP // 2 if name == "matmul_panels" else DEEP  # its panels have twice the columns
        if name in ("matmul", "matmul_panels") and k >= 2 * is_deep and 4 * m * n * (k // is_deep) <= k * (m + n):
            splits = max(splits, k // is_deep)
        depth = -(-k // (max(splits, 1) * LANES)) * LANES
        return -(-k // depth), depth

    def _pack_panels(self, b: Matrices, name: str) -> Matrices:
        """Copy matrices into panels of 32 columns."""
        count, panels, panel = len(b.starts), -(-b.columns // LANES), b.rows * LANES
        place = self._scratch(count * panels * panel * self.size)
        packed = record(_PACKING.pack(b.rows, b.columns, b.row, b.column))
        rows, abreast = 64, 1
        if b.column == 1 or b.columns == 1:
            name, rows, abreast = f"{name}_rows", 32, 8
        grid = (-(-panels // abreast) * LANES, -(-b.rows // rows), count)
        self._add(name, (b.place, place), (b.starts, packed), grid, LANES)
        starts = np.arange(count, dtype=np.int64) * (panels * panel)
        return b._replace(place=place, row=LANES, column=1, starts=starts, panel=panel)

    def _scratch(self, nbytes: int) -> int:
        self.scratch.append(nbytes)
        return C + len(self.scratch)

    def _add(
        self, kernel: str, places: tuple[int, ...], records: tuple[Host, ...], grid: Grid, threads: int,
        load_kinds: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.steps.append(ProductStep(kernel, places, records, grid, (threads, 1, 1), load_kinds))


def _is_aligned_for(x: Matrices, vector_length: int, *numbers: int) -> bool:
    """Return whether a factor is aligned for reads of vectors of this length, and these numbers are multiples of it."""
    return x.aligned and not any(n % vector_length for n in numbers) and not (x.starts % vector_length).any()


def _reads_by_four(x: Matrices) -> bool:
    """Return whether the lines of a factor, whose elements are neighbors, may be read four at a time."""
    lines = (x.row,) if x.rows > 1 else ()
    return _is_aligned_for(x, 4, x.columns, *lines)


def _load_kind(x: Matrices, vector_length: int) -> str:
    """Return how the lines of a factor, rows of A or columns of B, are read: see ``tile_loads.h``."""
    if x.column == 1 and _is_aligned_for(x, vector_length, x.columns, x.row):
        return "WIDE_ALONG"
    return "WIDE_ACROSS" if x.row == 1 and _is_aligned_for(x, vector_length, x.rows, x.column) else "ANY"
