"""Every thread of the grid runs exactly once in any threadgroup: complete or cut off, flat or with SIMD-groups."""

# ruff: noqa: E501  (MSL)

import itertools
import math

import numpy as np
import pytest

import metalnb as mnb
from metalnb.call.grids import grid_of_shape

# `lanes` uses SIMD-groups, so the engine cpu dispatches its threadgroups as rows.
SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void count1(device atomic_uint* hits, uint i [[thread_position_in_grid]]) {
    atomic_fetch_add_explicit(&hits[i], 1, memory_order_relaxed);
}
kernel void count2(device atomic_uint* hits, uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
    atomic_fetch_add_explicit(&hits[at.y * size.x + at.x], 1, memory_order_relaxed);
}
kernel void count3(device atomic_uint* hits, uint3 at [[thread_position_in_grid]], uint3 size [[threads_per_grid]]) {
    atomic_fetch_add_explicit(&hits[(at.z * size.y + at.y) * size.x + at.x], 1, memory_order_relaxed);
}
"""
RECORD = """
#include <metal_stdlib>
using namespace metal;
kernel void record(device uint* out, uint3 at [[thread_position_in_grid]], uint3 size [[threads_per_grid]],
                   uint3 l [[thread_position_in_threadgroup]], uint3 g [[threadgroup_position_in_grid]],
                   uint3 n [[threads_per_threadgroup]], uint3 d [[dispatch_threads_per_threadgroup]],
                   uint3 groups [[threadgroups_per_grid]], uint t [[thread_index_in_threadgroup]]{inputs}) {{
    device uint* row = out + 20 * ((at.z * size.y + at.y) * size.x + at.x);
    for (int k = 0; k < 3; ++k) {{
        row[k] += at[k]; row[3 + k] += l[k]; row[6 + k] += g[k]; row[9 + k] += n[k]; row[12 + k] += d[k]; row[15 + k] += groups[k];
    }}
    row[18] += t;
    row[19] += {last};
}}
"""
LANES = ", uint lane [[thread_index_in_simdgroup]], uint s [[simdgroup_index_in_threadgroup]]"
GRIDS = [(1,), (31,), (1000,), (1031, 1), (7, 5), (33, 17), (5, 3, 2), (13, 7, 5), (1, 9, 4), (2, 1, 11)]
GROUPS = [None, (1,), (3,), (32,), (256,), (1024,), (4, 3), (32, 32), (2, 3, 4), (64, 4, 4), (1, 1, 8)]


def expected(grid: tuple[int, ...], group: tuple[int, ...]) -> np.ndarray:
    """Return each thread's row, from the definitions (MSL 5.2.3.6)."""
    size, most = ((*t, 1, 1)[:3] for t in (grid, group))
    at = np.stack(np.meshgrid(*map(np.arange, reversed(size)), indexing="ij"), -1)[..., ::-1]
    g, local = np.divmod(at, most)
    n = np.minimum(most, size - g * most)
    t = local[..., 0] + n[..., 0] * (local[..., 1] + n[..., 1] * local[..., 2])
    rest = [np.broadcast_to(v, at.shape) for v in (most, [math.ceil(a / b) for a, b in zip(size, most, strict=True)])]
    return np.concatenate([at, local, g, n, *rest, t[..., None], t[..., None]], -1)


@pytest.mark.parametrize("grid", GRIDS)
def test_every_element_is_written_exactly_once(grid: tuple[int, ...]) -> None:
    program = mnb.compile(SOURCE)
    kernel = program[f"count{len(grid)}"]
    for group in GROUPS:
        if group is None or len(group) <= len(grid):
            hits = np.zeros(grid[::-1], np.uint32)
            kernel(hits, grid=grid, threadgroup=group)
            assert (hits == 1).all(), group


@pytest.mark.parametrize("simd", [False, True])
@pytest.mark.parametrize("grid", GRIDS)
def test_every_thread_has_its_position(grid: tuple[int, ...], simd: bool) -> None:
    text = RECORD.format(inputs=LANES, last="32 * s + lane") if simd else RECORD.format(inputs="", last="t")
    kernel = mnb.compile(text).record
    for group in filter(None, GROUPS):
        out = np.zeros((*(*grid, 1, 1)[2::-1], 20), np.uint32)
        kernel(out, grid=grid, threadgroup=group)
        np.testing.assert_array_equal(out, expected(grid, group), err_msg=str(group))


def test_simdgroups_are_cut_across_the_rows_of_a_threadgroup() -> None:
    """Lane by lane: a SIMD-group's sum is over 32 threads that are consecutive in the threadgroup's order."""
    kernel = mnb.compile("""
#include <metal_stdlib>
using namespace metal;
kernel void sums(device uint* out, uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]], uint t [[thread_index_in_threadgroup]]) {
    out[at.y * size.x + at.x] = simd_sum(t);
}""").sums
    for grid, group in itertools.product([(8, 8), (21, 10), (40, 3)], [(8, 8), (5, 7), (33, 3)]):
        t = expected(grid, group)[0, ..., -1].astype(int)
        n = expected(grid, group)[0, ..., 9:11].prod(-1)
        lane_sums = np.array(
            [sum(range(s - s % 32, min(s - s % 32 + 32, m))) for s, m in zip(t.flat, n.flat, strict=True)]
        )
        np.testing.assert_array_equal(
            kernel(grid=grid, threadgroup=group), lane_sums.reshape(t.shape), err_msg=f"{grid} {group}"
        )


def test_barriers_work_in_threadgroups_cut_off_at_the_edge() -> None:
    kernel = mnb.compile("""
#include <metal_stdlib>
using namespace metal;
kernel void reverse(device uint* out, uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]], uint t [[thread_index_in_threadgroup]], uint2 n [[threads_per_threadgroup]]) {
    threadgroup uint tile[256];
    tile[t] = t;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[at.y * size.x + at.x] = tile[n.x * n.y - 1 - t];
}""").reverse
    for grid, group in [((21, 10), (16, 16)), ((300, 1), (256, 1)), ((5, 5), (2, 3))]:
        rows = expected(grid, group)[0]
        n = rows[..., 9:11].prod(-1)
        np.testing.assert_array_equal(kernel(grid=grid, threadgroup=group), n - 1 - rows[..., -1])


@pytest.mark.parametrize("grid", [0, (0,), (0, 5), (5, 0), (3, 2, 0)])
def test_an_empty_grid_runs_nothing(grid: int | tuple[int, ...]) -> None:
    hits = np.zeros(8, np.uint32)
    dims = 1 if isinstance(grid, int) else len(grid)
    mnb.compile(SOURCE)[f"count{dims}"](hits, grid=grid)
    assert not hits.any()


def test_the_grid_that_an_array_gives() -> None:
    program = mnb.compile(SOURCE)
    for shape in [(5,), (4, 5), (3, 4, 5)]:
        hits = np.zeros(shape, np.uint32)
        program[f"count{len(shape)}"](hits)
        assert (hits == 1).all()
    hits = np.zeros((3, 4, 5), np.uint32)
    program.count1(hits)  # a one-dimensional kernel treats any shape as a row
    assert (hits == 1).all()
    flat = np.zeros(7, np.uint32)
    program.count3(flat)
    assert (flat == 1).all()
    assert program.count2(shapes={"hits": (4, 5)}).shape == (4, 5)
    assert program.count2(grid=(4, 5)).shape == (5, 4)


@pytest.mark.parametrize("grid", [(2**20 + 3,), (1025, 1023)])
def test_every_thread_of_a_large_grid_runs_once(grid: tuple[int, ...]) -> None:
    assert (mnb.compile(SOURCE)[f"count{len(grid)}"](grid=grid) == 1).all()


def test_a_launch_in_threadgroups_needs_no_rounding() -> None:
    program = mnb.compile(SOURCE)
    hits = np.zeros(6 * 100, np.uint32)
    ready = program.count1.prepare(hits, groups=6, threadgroup=100)
    assert (ready.grid, ready.threadgroup) == ((600, 1, 1), (100, 1, 1))
    ready.run()
    assert (hits == 1).all()
    made = program.count2(groups=(3, 5), threadgroup=(8, 4))
    assert made.shape == (20, 24)
    assert (made == 1).all()
    assert program.count2.prepare(groups=(3, 5)).grid == (96, 40, 1)  # the default threadgroup is 32 × 8
    with pytest.raises(mnb.LaunchError, match="pass one of them"):
        program.count1(hits, grid=8, groups=1)


def test_sizes_may_be_iterators_and_numbers_of_numpy() -> None:
    program = mnb.compile(SOURCE)
    assert program.count2(grid=map(int, (4, 2)), threadgroup=iter((2, 2))).shape == (2, 4)
    assert program.count2(groups=map(int, (3, 5)), threadgroup=(8, 4)).shape == (20, 24)
    assert program.count2(shapes={"hits": map(int, (2, 4))}).shape == (2, 4)
    for six in (np.array(6), np.int8(6), mnb.asarray(6), np.array([6])):
        assert program.count1(grid=six, threadgroup=np.array(2), shapes={"hits": six}).shape == (6,)
        assert program.count1(groups=six, threadgroup=1).shape == (6,)
    with pytest.raises(mnb.LaunchError, match=r"grid \(4, 2\) has 2 dimensions, .* Declare it uint2"):
        program.count1(grid=map(int, (4, 2)))
    with pytest.raises(mnb.LaunchError, match=r"threadgroup \(1025, 1\) is 1025 threads"):
        program.count1(grid=8, threadgroup=map(int, (1025, 1)))


def test_a_refusal_of_groups_is_about_groups() -> None:
    kernel = mnb.compile(SOURCE).count1
    with pytest.raises(mnb.LaunchError, match=r"groups is 1 to 3 whole numbers of threadgroups, .*; got 1\.5"):
        kernel(groups=1.5)
    words = r"groups=1073741824 of threadgroup \(64,\) is a grid of \(68719476736,\)"
    with pytest.raises(mnb.LaunchError, match=words):
        kernel(groups=2**30, threadgroup=64)


@pytest.mark.parametrize(("width", "shape"), [(1, (2**16, 2**16)), (1, (2**32,)), (2, (2**33, 2)), (2, (2, 2**32))])
def test_a_grid_of_an_array_that_is_too_long_is_refused(width: int, shape: tuple[int, ...]) -> None:
    signature = mnb.compile(SOURCE)[f"count{width}"].signature
    with pytest.raises(mnb.LaunchError, match=rf"count{width}: an array of \d.* below 2\^32. Pass grid="):
        grid_of_shape(signature, shape)
    assert grid_of_shape(signature, (3, 2**32 // 4)) == ((3 * 2**30, 1, 1) if width == 1 else (2**30, 3, 1))
