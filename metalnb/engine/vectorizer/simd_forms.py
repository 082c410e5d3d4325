"""The forms of a kernel: the number of lanes, and how a threadgroup's threads map to them.

A SIMD-group is 32 threads in the order of their index in the threadgroup (MSL 4.4.1). In the form *rows*, lanes are
neighbors along x, while y and z are uniform. A kernel that uses its SIMD-group has this form if the rows of its
threadgroups consist of full SIMD-groups, or if there is only one row; any other kernel also takes it if a row has at
least 8 threads. Otherwise the form is *flat*: x, y and z are computed for each lane. A flat SIMD-group may still
consist of whole short rows, such as two rows of 16 threads, in which lanes are neighbors along x. A kernel that does
not use its SIMD-group may run in fewer lanes, as many as a short row has.
"""

from __future__ import annotations

from dataclasses import dataclass

from .lane_count import SIMDGROUP, lanes_for_rows
from .shape_analysis.lane_shapes import BOTH, LaneShape

__all__ = ["SimdForm", "form_for", "position_shapes", "row_position_shapes"]

_MIN_LANES = 8  # least number of lanes worth a vector
_ROW_LENGTHS = (16, 8)  # threads in a row that is part of a SIMD-group


@dataclass(frozen=True, slots=True)
class SimdForm:
    """A form of a kernel.

    Attributes
    ----------
    width : int
        The number of lanes.
    flat : bool
        Whether each lane has its own x, y and z.
    full : bool
        Whether every lane is active at the start, in every threadgroup.
    grid_aligned, index_aligned : bool
        Whether lane 0's x in the grid, or its index in the threadgroup, is a multiple of `width`.
    row : int
        In a flat form, the length of the rows of lanes that are neighbors along x, each starting at a multiple of
        it; 0 if the length varies.
    """

    width: int
    flat: bool
    full: bool
    grid_aligned: bool
    index_aligned: bool
    row: int = 0

    def __str__(self) -> str:
        words = (f"flat {self.row}" if self.flat else "rows", "full" if self.full else "partial")
        return f"{self.width} {' '.join(words)} {self.grid_aligned:d}{self.index_aligned:d}"


Grid = tuple[int, int, int]


def form_for(grid: Grid, threadgroup: Grid, *, simd: bool, max_lanes: int = SIMDGROUP) -> SimdForm:
    """Return the fastest form for a dispatch.

    Parameters
    ----------
    grid, threadgroup : tuple of 3 int
        Threads, x first.
    simd : bool
        Whether the kernel uses its SIMD-group.
    max_lanes : int, optional
        The maximum number of lanes for a kernel that does not use its SIMD-group.
    """
    x, y, z = threadgroup
    sizes = {x, grid[0] % x or x}
    is_line = y == z == 1
    if simd:
        width = SIMDGROUP
        has_rows = is_line or all(size % SIMDGROUP == 0 for size in sizes)
    else:
        width = min(lanes_for_rows(x), max_lanes)
        has_rows = is_line or x >= _MIN_LANES
    if not has_rows:
        is_even = all(g % t == 0 for g, t in zip(grid, threadgroup, strict=True))
        width = SIMDGROUP if simd else max_lanes
        row = next((r for r in _ROW_LENGTHS if r < width and all(size % r == 0 for size in sizes)), 0)
        full = is_even and x * y * z % width == 0
        return SimdForm(width, flat=True, full=full, grid_aligned=False, index_aligned=True, row=row)
    full = all(size % width == 0 for size in sizes)
    even = x % width == 0 or grid[0] <= x  # with one threadgroup along x, its first thread is the grid's
    return SimdForm(width, flat=False, full=full, grid_aligned=even, index_aligned=is_line or full)


def position_shapes(form: SimdForm) -> dict[str, LaneShape]:
    """Return the shape of each of a thread's positions, by the call that returns it."""
    lane = LaneShape(1, 1 << 32, BOTH)
    aligned = LaneShape(1, form.width, BOTH)
    unaligned = LaneShape(1)
    uniform = LaneShape(0, 1, BOTH)
    if form.flat:
        varying = LaneShape(None)
        shapes = dict.fromkeys(("grid_x", "grid_y", "grid_z", "group_x", "group_y", "group_z"), varying)
        shapes |= {"index": aligned}
    else:
        shapes = {
            "group_x": aligned,
            "grid_x": aligned if form.grid_aligned else unaligned,
            "index": aligned if form.index_aligned else unaligned,
        }
        shapes |= dict.fromkeys(("grid_y", "grid_z", "group_y", "group_z"), uniform)
    shapes |= {"lane": lane, "simdgroup": uniform, "threads_here": uniform}
    return {f"metalnb_{name}": shape for name, shape in shapes.items()}


def row_position_shapes(form: SimdForm) -> dict[str, LaneShape]:
    """Return the shapes of the same positions within one short row of lanes."""
    consecutive = LaneShape(1, form.row, BOTH)
    uniform = LaneShape(0, 1, BOTH)
    names = ("grid_y", "grid_z", "group_y", "group_z", "simdgroup", "threads_here")
    shapes = dict.fromkeys(("grid_x", "group_x", "index", "lane"), consecutive) | dict.fromkeys(names, uniform)
    return {f"metalnb_{name}": shape for name, shape in shapes.items()}
