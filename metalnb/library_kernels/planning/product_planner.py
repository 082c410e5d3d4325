"""Choose the kernels of a product of matrices: the thresholds, the tile sizes, and the resulting steps."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from ...engine.base import Grid
from .device import CORES, LANES, Device
from .packed_record import Record, record
from .product_matrices import C, Matrices, load_kind, pair_starts, reads_by_four

__all__ = [
    "DOT", "FEW_LINES", "KINDS", "PRODUCT", "SIZES", "SMALL", "STRIPS", "ProductPlan", "ProductPlanner", "ProductStep",
]  # fmt: skip

Host = np.ndarray[Any, Any]

ROWS = 6  # rows that matmul_panels computes at once
FEW = 4  # rows that matmul_few and dots take

# Where one method becomes slower than another on a two-core AVX-512 CPU; the result is right either way.
SMALL = 1 << 19  # a B of at most this many bytes stays in cache, and …
CLOSE = 1 << 9  # … rows of at most this many are close enough to read a panel in place
SKINNY = 48  # up to this many rows, packing does not pay off
DOT = 64  # from this many terms, a dot product repays the sum over lanes
BLOCK = 16  # this many panels of rows stay in cache while all of B is read
TALL, ENOUGH = 32, 64  # a SIMD-group computes TALL * ROWS rows of two panels; fewer, if that gives fewer than ENOUGH
GROUPS, LEAST = 64, 1024  # K is split to keep GROUPS SIMD-groups busy, into parts of at least LEAST
STRIP, DEEP = 256, 4096  # K is split so that parts of B, or of A and B, stay in cache while in use


class Tile(NamedTuple):
    """A tile size on a GPU: its kernels' prefix, its threads, and the part of `tile_threadgroups` that it must fill."""

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
KINDS = {
    "bool": "bool", "float32": "float", "float16": "half", "bfloat16": "bfloat16",
    "int8": "uchar", "int16": "ushort", "int32": "uint", "int64": "ulong",
    "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong",
}  # fmt: skip
SIZES = {"bool": 1, "uchar": 1, "ushort": 2, "half": 2, "bfloat16": 2, "uint": 4, "float": 4, "ulong": 8}
_WIDENED = {"half": 4, "bfloat16": 4}
_FLOATS = {"float", *_WIDENED}

PRODUCT = struct.Struct("6I4q")
_PACKING = struct.Struct("2I2q")


class ProductStep(NamedTuple):
    """One dispatch.

    Attributes
    ----------
    kernel : str
    buffer_indices : tuple of int
        The memory of its first buffers: 0 and 1 the factors, 2 the product, 3 and up scratch.
    records : tuple of numpy.ndarray
        The records, in the buffers after these.
    grid, threadgroup : tuple of 3 int
    load_kinds : tuple of 2 str
        For a kernel of tiles: how the factors are read, in the terms of ``tile_loads.h``.
    """

    kernel: str
    buffer_indices: tuple[int, ...]
    records: tuple[Host, ...]
    grid: Grid
    threadgroup: Grid
    load_kinds: tuple[str, ...] = ()


class ProductPlan(NamedTuple):
    """Dispatches in order, and the bytes of each scratch buffer."""

    steps: tuple[ProductStep, ...]
    scratch: tuple[int, ...]


class ProductPlanner:
    """Collects the steps of a product of matrices."""

    def __init__(self, dtype: str, device: Device = CORES) -> None:
        self.device = device
        self.kind = KINDS[dtype]
        self.size = SIZES[self.kind]
        self.wide = False
        self.steps: list[ProductStep] = []
        self.scratch: list[int] = []

    def product(self, a: Matrices, b: Matrices) -> ProductPlan:
        """Choose the kernel."""
        is_along = a.column == b.row == 1  # both are contiguous along K
        if (b.columns == 1 and not is_along) or (a.rows == 1 and is_along):
            a, b = b.transpose, a.transpose  # C is a vector: its transpose has the same layout
        if is_along and min(a.rows, b.columns) <= LANES // 2 and a.columns >= DOT:
            reads_four = reads_by_four(a) and reads_by_four(b.transpose)
            is_wide = self.device.tile_threadgroups and self.kind in _FLOATS and reads_four
            return self.run("wide_dots" if is_wide else "dots", a, b)
        neighbors = b.column == 1 or b.columns == 1
        if self.device.tile_threadgroups and min(a.rows, b.columns) > FEW_LINES and self.kind != "ulong":
            return self.multiply_tiles(a, b)
        if self.device.tile_threadgroups and neighbors and b.columns > LANES and a.rows <= FEW_LINES:
            return self.columns(a, b)
        close = b.rows * b.columns * self.size <= SMALL or b.row * self.size <= CLOSE
        if neighbors and b.columns > LANES and a.rows <= (FEW if close else SKINNY):
            return self.run("matmul_few", a, b)
        if neighbors and close:
            return self.run("matmul", a, b)
        is_along = a.column == 1 and a.rows >= ROWS and self.kind != "ulong" and not self.device.tile_threadgroups
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
        is_wide = self.kind in _FLOATS and reads_by_four(b)
        rows = 1 if m == 1 or self.kind == "ulong" else FEW
        vector_width = 2 if self.kind == "ulong" else 8 if is_wide and rows == 1 and self.size == 2 else 4
        strips, down = -(-n // (vector_width * LANES)), -(-m // rows)
        splits = max(1, min(COLUMN_GROUPS * self.device.tile_threadgroups // (strips * down * batch), k // SPAN))
        depth = -(-k // (splits * LANES)) * LANES
        shape = (-(-k // depth), depth, 1, b.panel)
        grid = (strips * COLUMN_THREADS, down, shape[0] * batch)
        return self._multiply(f"columns_{'wide_' * is_wide}{rows}", a, b, shape, grid, COLUMN_THREADS)

    def multiply_tiles(self, a: Matrices, b: Matrices, window: Record | None = None) -> ProductPlan:
        """Add the kernel whose threadgroups compute one tile each; for windows, B is the start of the images."""
        m, n, k, batch = a.rows, b.columns, a.columns, len(a.order)
        matrices, places = self.kind in _WIDENED, self.device.tile_threadgroups
        vector_width = 8 if matrices else 4
        load_kinds = (load_kind(a, vector_width), load_kind(b.transpose, vector_width) if window is None else "WINDOWS")
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
        load_kinds: tuple[str, ...] = (), more: tuple[Host, ...] = (),
    ) -> ProductPlan:  # fmt: skip
        """Add a kernel, and one to sum its parts of K; `split`: splits, depth, blocks, step along B's columns."""
        m, n, k, batch = a.rows, b.columns, a.columns, len(a.order)
        splits = split[0]
        packed = record(PRODUCT, m, n, k, *split[:3], a.row, a.column, b.row, split[3])
        parts, suffix = C, self.kind
        if splits > 1:
            parts = self._scratch(batch * splits * m * n * _WIDENED.get(self.kind, self.size))
            suffix = f"{self.kind}_parts" if self.kind in _WIDENED else self.kind
        if self.wide:
            suffix = "float" if splits > 1 else f"float_{self.kind}"
        buffer_indices = (a.buffer_index, b.buffer_index, parts)
        self._add(f"{name}_{suffix}", buffer_indices, (pair_starts(a, b), packed, *more), grid, threads, load_kinds)
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
        splits = min((2 * self.device.tile_threadgroups or GROUPS) // groups, k // LEAST)
        if name == "matmul_few" and m > FEW:
            splits = max(splits, k // STRIP)
        terms = DEEP // 2 if name == "matmul_panels" else DEEP  # its panels have twice the columns
        if name in ("matmul", "matmul_panels") and k >= 2 * terms and 4 * m * n * (k // terms) <= k * (m + n):
            splits = max(splits, k // terms)
        depth = -(-k // (max(splits, 1) * LANES)) * LANES
        return -(-k // depth), depth

    def _pack_panels(self, b: Matrices, name: str) -> Matrices:
        """Copy matrices into panels of 32 columns."""
        count, panels, panel = len(b.starts), -(-b.columns // LANES), b.rows * LANES
        buffer_index = self._scratch(count * panels * panel * self.size)
        packed = record(_PACKING, b.rows, b.columns, b.row, b.column)
        rows, abreast = 64, 1
        if b.column == 1 or b.columns == 1:
            name, rows, abreast = f"{name}_rows", 32, 8
        grid = (-(-panels // abreast) * LANES, -(-b.rows // rows), count)
        self._add(name, (b.buffer_index, buffer_index), (b.starts, packed), grid, LANES)
        starts = np.arange(count, dtype=np.int64) * (panels * panel)
        return b._replace(buffer_index=buffer_index, row=LANES, column=1, starts=starts, panel=panel)

    def _scratch(self, nbytes: int) -> int:
        self.scratch.append(nbytes)
        return C + len(self.scratch)

    def _add(
        self, kernel: str, buffer_indices: tuple[int, ...], records: tuple[Host, ...], grid: Grid, threads: int,
        load_kinds: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.steps.append(ProductStep(kernel, buffer_indices, records, grid, (threads, 1, 1), load_kinds))
