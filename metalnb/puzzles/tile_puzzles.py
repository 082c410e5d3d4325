"""Puzzles 28 to 34: tiles in threadgroup memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import budgets
from .inputs import SOFTMAX, counted_values, large_rows, matrices, rectangle, square, vector
from .puzzle import LaunchOptions, Puzzle

__all__ = ["PUZZLES"]

_GROUPS = 4  # threadgroups of the histogram


def _double(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(a, np.float64)


def _smooth(a: np.ndarray[Any, Any], rows: int, columns: int) -> np.ndarray[Any, Any]:
    padded = np.pad(_double(a), 1)
    return np.asarray(sum(padded[y : y + rows, x : x + columns] for y in range(3) for x in range(3))) / 9


def _window_sums(a: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    sums = np.concatenate([[0], np.cumsum(_double(a))])
    positions = np.arange(n)
    return np.asarray(sums[np.minimum(positions + 9, n)] - sums[np.maximum(positions - 8, 0)])


def _softmax(a: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:  # noqa: ARG001  (the kernel's own parameters)
    e = np.exp(_double(a) - _double(a).max(1, keepdims=True))
    return np.asarray(e / e.sum(1, keepdims=True))


def _tiles(n: int, side: int) -> LaunchOptions:
    """Return the launch: threadgroups of 8 × 8 for square tiles that cover n × n."""
    return {"grid": (-(-n // side) * 8, -(-n // side) * 8), "threadgroup": (8, 8)}


PUZZLES = (
    Puzzle(
        "smoothed",
        "28 · Stencil",
        "out[y][x] is the mean of the 3 × 3 elements of a around a[y][x]; elements outside a count as 0. Use a tile, "
        "so that a threadgroup fetches each element once rather than nine times: threadgroups are 8 × 8, and the tile "
        "has one more element on each side. The grid covers a and is rounded up.",
        """kernel void smoothed(device const float* a, device float* out,
                     constant uint& rows, constant uint& columns,
                     uint2 p [[thread_position_in_grid]],
                     uint2 t [[thread_position_in_threadgroup]],
                     uint2 group [[threadgroup_position_in_grid]]) {
    threadgroup float tile[10][10];
    // your lines here
}
""",
        rectangle,
        _smooth,
        lambda n: {"grid": (-(-(n + 3) // 8) * 8, -(-n // 8) * 8), "threadgroup": (8, 8)},
        sizes=(1, 5, 8, 9, 20),
        shown=4,
        hints=(
            "64 threads copy 100 elements: for (uint i = t.y * 8 + t.x; i < 100; i += 64) { … }",
            "Element i is in the tile's row i / 10; in a that is row int(group.y * 8 + i / 10) - 1, which may be -1.",
            "Store 0 for elements outside. After the barrier the thread's own element is tile[t.y + 1][t.x + 1].",
        ),
    ),
    Puzzle(
        "window_sums",
        "29 · Halo",
        "out[i] is the sum of the 17 elements a[i - 8] to a[i + 8]; elements outside a count as 0. A threadgroup of 64 "
        "needs 64 + 16 elements: its own, and a halo of 8 on each side. Copy each of them to threadgroup memory once, "
        "then add up from there. The grid is rounded up.",
        """kernel void window_sums(device const float* a, device float* out, constant uint& n,
                        uint i [[thread_position_in_grid]],
                        uint t [[thread_position_in_threadgroup]],
                        uint group [[threadgroup_position_in_grid]]) {
    threadgroup float tile[80];
    // your lines here
}
""",
        vector,
        _window_sums,
        lambda n: {"grid": -(-n // 64) * 64, "threadgroup": 64},
        sizes=(1, 8, 63, 64, 65, 200, 640),
        shown=64,
        hints=(
            "64 threads copy 80 elements: for (uint k = t; k < 80; k += 64) { … }",
            "tile[k] is a[group * 64 + k - 8], which may be before the start: compute the index as an int.",
            "After the barrier the window of thread t begins at tile[t].",
        ),
        budgets=(budgets.reads("a", 1.25),),
    ),
    Puzzle(
        "free_of_conflicts",
        "30 · Banks",
        "Transpose an n × n matrix, with n a multiple of 32, in threadgroups of 32 × 8, as in puzzle 16; but declare "
        "the tile yourself. Threadgroup memory has 32 banks of 4 bytes: its element w is in bank w % 32, and lanes "
        "that access different elements of one bank take turns. Write and read the tile without taking turns.",
        """kernel void free_of_conflicts(device const float* a, device float* out,
                              constant uint& n,
                              uint2 t [[thread_position_in_threadgroup]],
                              uint2 group [[threadgroup_position_in_grid]]) {
    // your lines here
}
""",
        square,
        lambda a, n: a.T,
        lambda n: {"grid": (n, n // 4), "threadgroup": (32, 8)},
        sizes=(32, 64, 96),
        shown=32,
        hints=(
            "Lanes that read a column of tile[32][32] are 32 elements apart: all in one bank.",
            "What if a row had one more element?",
            "Or keep the tile's size, and rotate each row by its number: tile[r][(c + r) % 32].",
        ),
        budgets=(budgets.coalesced, budgets.banks),
    ),
    Puzzle(
        "blocked",
        "31 · Blocks in registers",
        "out = a b for n × n matrices. In puzzle 14 a thread reads two numbers from threadgroup memory for each "
        "product. Let each thread compute 2 × 2 elements of out: then four numbers are enough for four products. A "
        "threadgroup of 8 × 8 threads computes a tile of 16 × 16 elements; the tiles cover out, and those at the edge "
        "may extend beyond it.",
        """kernel void blocked(device const float* a, device const float* b, device float* out,
                    constant uint& n,
                    uint2 t [[thread_position_in_threadgroup]],
                    uint2 group [[threadgroup_position_in_grid]]) {
    threadgroup float tile_a[16][16];
    threadgroup float tile_b[16][16];
    // your lines here
}
""",
        matrices,
        lambda a, b, n: _double(a) @ _double(b),
        lambda n: _tiles(n, 16),
        sizes=(1, 7, 16, 17, 40),
        shown=8,
        hints=(
            "64 threads copy 256 elements of each tile: for (uint e = t.y * 8 + t.x; e < 256; e += 64) { … }",
            "A thread's elements are rows t.y and t.y + 8 of the tile, columns t.x and t.x + 8.",
            "float a0 = tile_a[t.y][k], a1 = tile_a[t.y + 8][k]; likewise b0, b1; then four sums.",
        ),
        budgets=(budgets.shared_reads(1.05), budgets.reads("a", 3)),
    ),
    Puzzle(
        "double_buffered",
        "32 · Double buffering",
        "out = a b for n × n matrices through tiles of 8 × 8, as in puzzle 14. There each step passes two barriers, "
        "one before the tiles are read and one before they are overwritten. With two pairs of tiles, used alternately, "
        "one barrier per step is enough. The grid is rounded up.",
        """kernel void double_buffered(device const float* a, device const float* b,
                            device float* out,
                            constant uint& n,
                            uint2 p [[thread_position_in_grid]],
                            uint2 t [[thread_position_in_threadgroup]]) {
    threadgroup float tile_a[2][8][8];
    threadgroup float tile_b[2][8][8];
    // your lines here
}
""",
        matrices,
        lambda a, b, n: _double(a) @ _double(b),
        lambda n: _tiles(n, 8),
        sizes=(1, 7, 8, 9, 40),
        shown=4,
        hints=(
            "Which pair is current? first / 8 % 2, or a variable that alternates between 0 and 1.",
            "Copy, wait, add up; then copy into the other pair of tiles, which is no longer read.",
            "Does any thread still read the pair of the step before last? No: all have passed a barrier since.",
        ),
        budgets=(budgets.barriers(6), budgets.reads("a", 5)),
    ),
    Puzzle(
        "online",
        "33 · Online softmax",
        "The softmax of five rows again, one SIMD-group for each. Puzzle 17 goes over a row three times. Do it in two "
        "passes: find the largest element m and the sum s of exp(a[i] - m) together. When a larger m turns up, the sum "
        "so far is too large by a factor that you know (Milakov and Gimelshein, 2018).",
        """kernel void online(device const float* a, device float* out, constant uint& n,
                   uint row [[threadgroup_position_in_grid]],
                   uint lane [[thread_index_in_simdgroup]]) {
    // your lines here
}
""",
        large_rows,
        _softmax,
        lambda n: {"grid": 5 * 32, "threadgroup": 32},
        sizes=(1, 31, 32, 33, 100),
        shown=32,
        hints=(
            "When m becomes larger, s becomes s * exp(m - larger) + exp(v - larger).",
            "Each lane has its own m. Before simd_sum adds the lanes' sums, scale them to a common m.",
            "A lane without an element has a very small m, such as -1e30, and s = 0.",
        ),
        cases=SOFTMAX,
        budgets=(budgets.reads("a", 2),),
    ),
    Puzzle(
        "private_bins",
        "34 · Private histograms",
        "Count how often each of the values 0 to 15 is in a, with few updates of device memory. Each of four "
        "threadgroups of 64 counts its part in its own 16 counters, in threadgroup memory, and adds these to counts at "
        "the end. A thread takes every 256th element: for (uint k = i; k < n; k += 256). The counters in device memory "
        "start at 0; those in threadgroup memory are uninitialized.",
        """kernel void private_bins(device const uint* a, device atomic_uint* counts,
                         constant uint& n,
                         uint i [[thread_position_in_grid]],
                         uint t [[thread_position_in_threadgroup]]) {
    threadgroup atomic_uint own[16];
    // your lines here
}
""",
        counted_values,
        lambda a, n: np.bincount(a, minlength=16).astype(np.uint32),
        lambda n: {"grid": _GROUPS * 64, "threadgroup": 64},
        sizes=(1, 32, 33, 1000, 5000),
        shown=64,
        out="counts",
        dtype=np.uint32,
        once=False,
        zeroed=True,
        hints=(
            "Three parts with a barrier after each of the first two: set to 0, count, add up.",
            "atomic_store_explicit(&own[t], 0, memory_order_relaxed); by the first 16 threads.",
            "At the end thread t < 16 adds atomic_load_explicit(&own[t], memory_order_relaxed) to counts[t].",
        ),
        budgets=(budgets.atomics(16),),
    ),
)
