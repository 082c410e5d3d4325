"""Puzzles 1 to 8: one thread per element, guards, two dimensions, threadgroups."""

from __future__ import annotations

from typing import Any

import numpy as np

from .puzzle import Puzzle

__all__ = ["PUZZLES"]

_GROUP = 8


def _one_array(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"a": _floats(rng, n)}


def _two_arrays(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"a": _floats(rng, n), "b": _floats(rng, n)}


def _counted_array(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"a": _floats(rng, n), "n": n}


def _square(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"a": _floats(rng, (n, n)), "n": n}


def _row_and_column(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"a": _floats(rng, n), "b": _floats(rng, n + 1), "n": n}


def _floats(rng: np.random.Generator, shape: Any) -> np.ndarray[Any, Any]:
    return np.asarray(rng.normal(0, 3, shape), np.float32)


def _round_up(n: int, step: int = _GROUP) -> int:
    return -(-n // step) * step


PUZZLES = (
    Puzzle(
        "add_ten",
        "1 · Map",
        "Add 10 to each element of a. There is one thread per element: thread i reads a[i] and writes out[i].",
        """kernel void add_ten(device const float* a, device float* out,
                    uint i [[thread_position_in_grid]]) {
    // your line here
}
""",
        _one_array,
        lambda a: a + 10,
        lambda n: {"grid": n},
        hints=("One line is enough: out[…] = a[…] + 10;", "The index is i on both sides."),
    ),
    Puzzle(
        "zip_add",
        "2 · Zip",
        "Add a and b, element by element. Each thread reads from two buffers and writes to one.",
        """kernel void zip_add(device const float* a, device const float* b, device float* out,
                    uint i [[thread_position_in_grid]]) {
    // your line here
}
""",
        _two_arrays,
        lambda a, b: a + b,
        lambda n: {"grid": n},
        hints=("Use the same index for a and for b.",),
    ),
    Puzzle(
        "guarded",
        "3 · Guard",
        "Add 10 again. This time the grid is rounded up to whole threadgroups of 8, so it has more threads than a "
        "has elements. The number of elements is n. The other threads must not read or write anything.",
        """kernel void guarded(device const float* a, device float* out, constant uint& n,
                    uint i [[thread_position_in_grid]]) {
    // your line here
}
""",
        _counted_array,
        lambda a, n: a + 10,
        lambda n: {"grid": _round_up(n + 1), "threadgroup": _GROUP},
        shown=6,
        hints=("Which threads have an element?", "if (i < n) { … }"),
    ),
    Puzzle(
        "map_2d",
        "4 · Map in two dimensions",
        "Add 10 to an n × n matrix, which is stored row by row. The grid has two dimensions, and both are rounded up "
        "as before: p.x is the column, p.y the row.",
        """kernel void map_2d(device const float* a, device float* out, constant uint& n,
                   uint2 p [[thread_position_in_grid]]) {
    // your lines here
}
""",
        _square,
        lambda a, n: a + 10,
        lambda n: {"grid": (_round_up(n, 4), _round_up(n, 4)), "threadgroup": (4, 4)},
        sizes=(1, 3, 4, 5, 17),
        shown=3,
        hints=(
            "Row y starts at element y * n.",
            "Guard both p.x and p.y: an x past the end of a row is an element of the next row.",
        ),
    ),
    Puzzle(
        "broadcast",
        "5 · Broadcast",
        "Make a table of sums: out[y][x] = a[x] + b[y]. a has n elements and b has n + 1, so out has n + 1 rows of n "
        "elements. The grid has exactly one thread for each element of out.",
        """kernel void broadcast(device const float* a, device const float* b, device float* out, constant uint& n,
                      uint2 p [[thread_position_in_grid]]) {
    // your line here
}
""",
        _row_and_column,
        lambda a, b, n: a[None, :] + b[:, None],
        lambda n: {"grid": (n, n + 1)},
        sizes=(1, 3, 8, 17),
        shown=3,
        hints=(
            "p.x indexes a, and p.y indexes b.",
            "A row of out has n elements, so the element is out[p.y * n + p.x].",
        ),
    ),
    Puzzle(
        "in_groups",
        "6 · Threadgroups",
        "Add 10 again, but without a thread's position in the grid. You only get the number of its threadgroup, its "
        "position in the threadgroup, and the number of threads in a whole threadgroup.",
        """kernel void in_groups(device const float* a, device float* out,
                      uint group [[threadgroup_position_in_grid]],
                      uint t [[thread_position_in_threadgroup]],
                      uint size [[dispatch_threads_per_threadgroup]]) {
    // your lines here
}
""",
        _one_array,
        lambda a: a + 10,
        lambda n: {"grid": n, "threadgroup": min(n, _GROUP)},
        shown=16,
        hints=("How many threads are in the threadgroups before this one?", "i = group * size + t"),
    ),
    Puzzle(
        "mirrored",
        "7 · Threadgroup memory",
        "Reverse each block of 8: out[0] is a[7], out[1] is a[6], …, out[8] is a[15]. Use threadgroup memory: each "
        "thread stores its own element there, all threads wait at a barrier, and then each reads another thread's "
        "element. The length is a multiple of 8.",
        """kernel void mirrored(device const float* a, device float* out,
                     uint i [[thread_position_in_grid]],
                     uint t [[thread_position_in_threadgroup]]) {
    threadgroup float tile[8];
    // your lines here
}
""",
        _one_array,
        lambda a: a.reshape(-1, _GROUP)[:, ::-1].reshape(-1),
        lambda n: {"grid": n, "threadgroup": _GROUP},
        sizes=(8, 16, 64, 256),
        shown=16,
        hints=(
            "tile[t] = a[i]; stores the element.",
            "threadgroup_barrier(mem_flags::mem_threadgroup); waits for the other threads.",
            "The other thread's element is tile[7 - t].",
        ),
    ),
    Puzzle(
        "pooled",
        "8 · Pooling",
        "Each element of out is the sum of three elements of a: a[i - 2] + a[i - 1] + a[i]. For the first two "
        "elements of out there are fewer than three: add up those that exist.",
        """kernel void pooled(device const float* a, device float* out,
                   uint i [[thread_position_in_grid]]) {
    // your lines here
}
""",
        _one_array,
        lambda a: np.convolve(np.asarray(a, np.float64), np.ones(3))[: a.size],
        lambda n: {"grid": n},
        hints=("i is unsigned: i - 2 at i = 0 is a huge number, not -2.", "if (i >= 1) sum += a[i - 1];"),
    ),
)
