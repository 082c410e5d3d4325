"""Puzzles 9 to 18: threads that work together."""

from __future__ import annotations

from typing import Any

import numpy as np

from .inputs import ARG_MAX, SOFTMAX, floats, large_rows, matrices, rectangle, rows, signal, values, vector, vectors
from .puzzle import Puzzle

__all__ = ["PUZZLES"]

_GROUP = 256
_TILE = 8


def _double(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(a, np.float64)


def _softmax(a: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:  # noqa: ARG001  (the kernel's own parameters)
    e = np.exp(_double(a) - _double(a).max(1, keepdims=True))
    return np.asarray(e / e.sum(1, keepdims=True))


def _tiles(n: int) -> tuple[int, int]:
    side = -(-n // _TILE) * _TILE
    return (side, side)


PUZZLES = (
    Puzzle(
        "dot",
        "9 · Dot product",
        "out[0] is the dot product of a and b: multiply them element by element, and add up the products. n is at "
        "most 256, and there is one threadgroup of 256 threads. Store the products in threadgroup memory and add "
        "them in pairs; each step has half as many active threads as the one before, until one sum is left.",
        """kernel void dot(device const float* a, device const float* b, device float* out, constant uint& n,
                uint t [[thread_position_in_threadgroup]]) {
    threadgroup float partial[256];
    // your lines here
}
""",
        vectors,
        lambda a, b, n: np.array([_double(a) @ _double(b)]),
        lambda n: {"grid": _GROUP, "threadgroup": _GROUP},
        sizes=(1, 8, 31, 32, 33, 100, 256),
        hints=(
            "A thread without an element contributes 0.",
            "for (uint step = 128; step > 0; step /= 2) { barrier; if (t < step) partial[t] += partial[t + step]; }",
            "Every thread must reach every barrier, so put the barrier outside the if.",
        ),
    ),
    Puzzle(
        "convolved",
        "10 · Convolution in one dimension",
        "out[i] = a[i] * b[0] + a[i + 1] * b[1] + … over the k elements of b. Elements past the end of a count as 0.",
        """kernel void convolved(device const float* a, device const float* b, device float* out,
                      constant uint& n, constant uint& k, uint i [[thread_position_in_grid]]) {
    // your lines here
}
""",
        signal,
        lambda a, b, n, k: np.correlate(np.concatenate([_double(a), np.zeros(k - 1)]), _double(b), "valid"),
        lambda n: {"grid": n},
        hints=("Loop over j from 0 to k - 1.", "Skip the terms for which i + j is n or more."),
    ),
    Puzzle(
        "running_sum",
        "11 · Prefix sum",
        "out[i] is the sum of a[0] to a[i]. There is one threadgroup of 256 threads, and n is at most 256. In the "
        "first step every thread adds the value 1 place before its own, in the next step the value 2 places before, "
        "then 4, and so on (Hillis and Steele, 1986).",
        """kernel void running_sum(device const float* a, device float* out, constant uint& n,
                        uint t [[thread_position_in_threadgroup]]) {
    threadgroup float sums[256];
    // your lines here
}
""",
        vector,
        lambda a, n: np.cumsum(_double(a)),
        lambda n: {"grid": _GROUP, "threadgroup": _GROUP},
        sizes=(1, 8, 31, 32, 33, 100, 256),
        hints=(
            "Read the earlier value, wait, then write your own: two barriers per step.",
            "float before = t >= step ? sums[t - step] : 0;",
        ),
    ),
    Puzzle(
        "row_sums",
        "12 · Sum along an axis",
        "a has five rows of n elements, and out[r] is the sum of row r. There is one threadgroup of 32 threads for "
        "each row. Rows may be shorter or longer than 32, so each thread first adds up every 32nd element of the "
        "row, if there are any.",
        """kernel void row_sums(device const float* a, device float* out, constant uint& n,
                     uint row [[threadgroup_position_in_grid]],
                     uint t [[thread_position_in_threadgroup]]) {
    threadgroup float partial[32];
    // your lines here
}
""",
        rows,
        lambda a, n: _double(a).sum(1),
        lambda n: {"grid": 5 * 32, "threadgroup": 32},
        sizes=(1, 31, 32, 33, 100, 257),
        shown=64,
        hints=(
            "for (uint i = t; i < n; i += 32) sum += a[row * n + i];",
            "Then add up the 32 sums as a tree, with steps of 16, 8, 4, 2 and 1.",
        ),
    ),
    Puzzle(
        "simd_dot",
        "13 · SIMD-groups",
        "The dot product again, for any n, with one SIMD-group of 32 threads and without threadgroup memory: "
        "simd_sum adds up one value from each thread of a SIMD-group.",
        """kernel void simd_dot(device const float* a, device const float* b, device float* out, constant uint& n,
                     uint lane [[thread_index_in_simdgroup]]) {
    // your lines here
}
""",
        vectors,
        lambda a, b, n: np.array([_double(a) @ _double(b)]),
        lambda n: {"grid": 32, "threadgroup": 32},
        sizes=(1, 31, 32, 33, 100, 1000),
        hints=("Each lane adds up every 32nd product.", "All lanes call simd_sum; one lane writes."),
    ),
    Puzzle(
        "product",
        "14 · Matrix product",
        "out = a b for n × n matrices, through tiles of 8 × 8 in threadgroup memory. In each step the threadgroup "
        "loads one tile of a and one of b and waits; then each thread adds 8 products to its sum; and all wait again "
        "before the next pair of tiles is loaded. The grid is rounded up.",
        """kernel void product(device const float* a, device const float* b, device float* out, constant uint& n,
                    uint2 p [[thread_position_in_grid]],
                    uint2 t [[thread_position_in_threadgroup]]) {
    threadgroup float tile_a[8][8];
    threadgroup float tile_b[8][8];
    // your lines here
}
""",
        matrices,
        lambda a, b, n: _double(a) @ _double(b),
        lambda n: {"grid": _tiles(n), "threadgroup": (_TILE, _TILE)},
        sizes=(1, 7, 8, 9, 20),
        shown=4,
        hints=(
            "for (uint first = 0; first < n; first += 8) { … }",
            "Store 0 where a tile extends past the edge. No thread may return before the last barrier.",
            "tile_a[t.y][t.x] is a[p.y][first + t.x]; tile_b[t.y][t.x] is b[first + t.y][p.x].",
        ),
    ),
    Puzzle(
        "histogram",
        "15 · Histogram",
        "Count how often each of the values 0 to 15 occurs in a. Several threads may update the same counter at "
        "once, so each adds to it with an atomic operation. The counters start at 0.",
        """kernel void histogram(device const uint* a, device atomic_uint* counts,
                      uint i [[thread_position_in_grid]]) {
    // your line here
}
""",
        values,
        lambda a: np.bincount(a, minlength=16).astype(np.uint32),
        lambda n: {"grid": n},
        sizes=(1, 32, 33, 1000),
        out="counts",
        dtype=np.uint32,
        once=False,
        zeroed=True,
        hints=("atomic_fetch_add_explicit(&counts[…], 1, memory_order_relaxed);",),
    ),
    Puzzle(
        "transposed",
        "16 · Transpose",
        "out[x][y] = a[y][x] for a matrix of rows × columns. Use a tile of 32 × 32 in threadgroup memory, so that "
        "adjacent threads both read and write adjacent elements. There is one threadgroup of 32 × 8 threads for each "
        "tile, so each thread loads four elements, eight rows apart. The tiles cover a, and their number is rounded "
        "up.",
        """kernel void transposed(device const float* a, device float* out, constant uint& rows, constant uint& columns,
                       uint2 t [[thread_position_in_threadgroup]],
                       uint2 group [[threadgroup_position_in_grid]]) {
    threadgroup float tile[32][33];  // a 33rd column, so that the elements of a column are in different banks
    // your lines here
}
""",
        rectangle,
        lambda a, rows, columns: a.T,
        lambda n: {"grid": (-(-(n + 3) // 32) * 32, -(-n // 32) * 8), "threadgroup": (32, 8)},
        sizes=(1, 5, 29, 32, 33, 70),
        shown=4,
        hints=(
            "For r = t.y, t.y + 8, …: copy a[group.y * 32 + r][group.x * 32 + t.x] to tile[r][t.x]. Then wait.",
            "In out, the tile starts at column group.y * 32 and row group.x * 32.",
            "out[(group.x * 32 + r) * rows + group.y * 32 + t.x] = tile[t.x][r], guarded.",
        ),
    ),
    Puzzle(
        "softmaxed",
        "17 · Softmax",
        "Each of five rows becomes exp(a[i] - m) / s, where m is the largest element of the row, and s makes the sum "
        "of the row 1. There is one SIMD-group of 32 threads for each row. m is needed because some rows are far "
        "above zero, where exp alone would overflow, and others far below, where it would be 0.",
        """kernel void softmaxed(device const float* a, device float* out, constant uint& n,
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
            "Read the row three times: for the largest element, for the sum, and for the result.",
            "simd_max, then simd_sum: every lane gets the result.",
        ),
        cases=SOFTMAX,
    ),
    Puzzle(
        "first_largest",
        "18 · Arg-max",
        "out[0] is the index of the largest element of a; if several are equal, the first of them. There is one "
        "SIMD-group of 32 threads, for any n. Keep each value together with its index.",
        """kernel void first_largest(device const float* a, device uint* out, constant uint& n,
                          uint lane [[thread_index_in_simdgroup]]) {
    // your lines here
}
""",
        lambda rng, n: {"a": np.round(floats(rng, n)), "n": n},
        lambda a, n: np.array([np.argmax(a)], np.uint32),
        lambda n: {"grid": 32, "threadgroup": 32},
        sizes=(1, 31, 32, 33, 100, 1000),
        dtype=np.uint32,
        hints=(
            "Each lane first finds the largest of every 32nd element.",
            "Then simd_max finds the largest of all. Which lanes have it? Take the simd_min of their indices.",
        ),
        cases=ARG_MAX,
    ),
)
