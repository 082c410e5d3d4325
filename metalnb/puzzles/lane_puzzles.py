"""Puzzles 19 to 27: lanes of a SIMD-group that read each other's registers."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import budgets
from .inputs import IN_ORDER, SEGMENTS, one_array, runs, sorted_blocks, vector, whole_numbers, x_and_c
from .puzzle import LaunchOptions, Puzzle

__all__ = ["PUZZLES"]

_LANES = 32
_WHOLE_GROUPS = (32, 64, 96, 256)  # sizes that are multiples of 32


def _double(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(a, np.float64)


def _blocks(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return a.reshape(-1, _LANES)


def _block_sums(a: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    return np.asarray(_blocks(np.pad(_double(a), (0, -n % _LANES))).sum(1))


def _farthest(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    indices = np.abs(_blocks(a)).argmax(1)
    return np.take_along_axis(_blocks(a), indices[:, None], 1)[:, 0]


def _partition(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    blocks = [a[start : start + _LANES] for start in range(0, a.size, _LANES)]
    return np.concatenate([part for block in blocks for part in (block[block > 0], block[~(block > 0)])])


def _segmented_sums(a: np.ndarray[Any, Any], heads: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    out = _double(a).copy()
    for i in range(1, a.size):
        if i % _LANES and not heads[i]:
            out[i] += out[i - 1]
    return out


def _launch_of(n: int) -> LaunchOptions:
    return {"grid": n, "threadgroup": min(n, 64)}


def _launch_rounded_up(n: int) -> LaunchOptions:
    return {"grid": -(-n // 128) * 128, "threadgroup": 128}


PUZZLES = (
    Puzzle(
        "turned_round",
        "19 · Shuffle",
        "Reverse each block of 32: out[0] is a[31], out[1] is a[30], …, out[32] is a[63]. Puzzle 7 does this through "
        "threadgroup memory. The lanes of a SIMD-group can instead read each other's registers, with simd_shuffle: "
        "each thread reads its own element and writes its own. The length is a multiple of 32.",
        """kernel void turned_round(device const float* a, device float* out,
                         uint i [[thread_position_in_grid]],
                         uint lane [[thread_index_in_simdgroup]]) {
    // your line here
}
""",
        one_array,
        lambda a: _blocks(a)[:, ::-1].reshape(-1),
        _launch_of,
        sizes=_WHOLE_GROUPS,
        shown=32,
        hints=(
            "Every lane provides a value, and names the lane that it reads from.",
            "simd_shuffle(a[i], …): first the value provided, then the number of the lane to read, from 0 to 31.",
        ),
        budgets=(budgets.lanes_only,),
    ),
    Puzzle(
        "block_sums",
        "20 · Sum of a SIMD-group",
        "out[0] is the sum of the first 32 elements of a, out[1] that of the next 32, and so on. Threadgroups have 128 "
        "threads, which are four SIMD-groups, and the grid is rounded up: the last block may be short, and some "
        "SIMD-groups have no element at all. Use simd_sum and no threadgroup memory.",
        """kernel void block_sums(device const float* a, device float* out, constant uint& n,
                       uint i [[thread_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]]) {
    // your lines here
}
""",
        vector,
        _block_sums,
        _launch_rounded_up,
        sizes=(1, 8, 31, 32, 33, 100, 257),
        shown=64,
        hints=(
            "A lane without an element contributes 0, and all lanes call simd_sum.",
            "One lane of each SIMD-group writes: which one has an element if any lane does?",
            "The block's number is i / 32.",
        ),
        budgets=(budgets.lanes_only,),
    ),
    Puzzle(
        "differences",
        "21 · Neighbors",
        "out[i] = a[i + 1] - a[i], and 0 for the last element. Read each element only once, or nearly so: a lane "
        "reads its own, and gets the next one from its neighbor with simd_shuffle_down. One lane of each SIMD-group "
        "has no such neighbor. The grid is rounded up to threadgroups of 128.",
        """kernel void differences(device const float* a, device float* out, constant uint& n,
                        uint i [[thread_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
    // your lines here
}
""",
        vector,
        lambda a, n: np.append(np.diff(_double(a)), 0),
        _launch_rounded_up,
        sizes=(1, 8, 31, 32, 33, 100, 257),
        shown=40,
        hints=(
            "float next = simd_shuffle_down(own, 1); outside any if, because an inactive lane provides no value.",
            "Lane 31 reads a[i + 1] itself, if there is one.",
        ),
        budgets=(budgets.lanes_only, budgets.reads("a", 1.1)),
    ),
    Puzzle(
        "farthest",
        "22 · Reduction by shuffles",
        "out[0] is the element that is farthest from 0 among the first 32, with its sign: of 3, -5 and 4 it is -5. "
        "out[1] is that of the next 32, and so on. There is no function for this, so do it in five rounds: each lane "
        "compares its value with that of the lane 16 places later, and keeps the farther one; then 8, 4, 2 and 1 "
        "places. The length is a multiple of 32.",
        """kernel void farthest(device const float* a, device float* out,
                     uint i [[thread_position_in_grid]],
                     uint lane [[thread_index_in_simdgroup]]) {
    // your lines here
}
""",
        one_array,
        _farthest,
        _launch_of,
        sizes=_WHOLE_GROUPS,
        shown=32,
        hints=(
            "for (ushort gap = 16; gap > 0; gap /= 2) { float other = simd_shuffle_down(best, gap); … }",
            "Lanes near the end read nothing useful, which does no harm: only lane 0 writes its result.",
        ),
        budgets=(budgets.lanes_only, budgets.reads("a", 1)),
    ),
    Puzzle(
        "in_order",
        "23 · A vote",
        "out[0] is 1 if the first 32 elements are in order, each at least as large as the one before it; else 0. "
        "out[1] is the same for the next 32, and so on. Each lane compares its own element with its neighbor's, and "
        "simd_all returns whether this is true in all lanes. The length is a multiple of 32.",
        """kernel void in_order(device const float* a, device uint* out,
                     uint i [[thread_position_in_grid]],
                     uint lane [[thread_index_in_simdgroup]]) {
    // your lines here
}
""",
        sorted_blocks,
        lambda a: np.asarray((np.diff(_blocks(a), axis=1) >= 0).all(1), np.uint32),
        _launch_of,
        sizes=_WHOLE_GROUPS,
        cases=IN_ORDER,
        shown=32,
        dtype=np.uint32,
        hints=(
            "simd_shuffle_down returns the neighbor's element; the last lane, which has none, gets its own.",
            "simd_all(own <= next), by all lanes; then lane 0 writes.",
        ),
        budgets=(budgets.lanes_only, budgets.reads("a", 1)),
    ),
    Puzzle(
        "partitioned",
        "24 · Ballot",
        "In each block of 32 elements, move those above 0 to the front and the others after them; both keep their "
        "order. simd_ballot gives every lane the answers of all lanes to a question, one bit per lane: "
        "uint(simd_vote::vote_t(simd_ballot(…))). From the bits below its own, a lane computes its new index. There "
        "is a thread for each element, and the last block may be short.",
        """kernel void partitioned(device const float* a, device float* out,
                        uint i [[thread_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
    // your lines here
}
""",
        whole_numbers,
        _partition,
        _launch_of,
        shown=32,
        hints=(
            "(1u << lane) - 1 has the bits of the lanes before this one; popcount counts bits.",
            "An element above 0 goes to index popcount(votes & below) of the block, any other after all of these.",
            "Of the lanes before it, lane - popcount(votes & below) have no element above 0.",
        ),
        budgets=(budgets.lanes_only, budgets.reads("a", 1)),
    ),
    Puzzle(
        "polynomial",
        "25 · Broadcast",
        "out[i] = c[0] + c[1] x[i] + c[2] x[i]² + … + c[31] x[i]³¹. A SIMD-group loads the 32 coefficients once, one "
        "in each lane, and simd_broadcast(value, lane) passes each of them to all lanes. The grid is rounded up: a "
        "lane without an x still has a coefficient that the others need.",
        """kernel void polynomial(device const float* x, device const float* c, device float* out,
                       constant uint& n,
                       uint i [[thread_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]]) {
    // your lines here
}
""",
        x_and_c,
        lambda x, c, n: np.polynomial.polynomial.polyval(_double(x), _double(c)),
        _launch_rounded_up,
        sizes=(1, 8, 31, 32, 33, 100, 257),
        shown=32,
        hints=(
            "Use Horner's method, from the end: sum = sum * x + c[31], then c[30], …",
            "All lanes must execute every broadcast: no lane may return before the last one.",
            "for (ushort k = 32; k-- > 0;) sum = sum * own + simd_broadcast(mine, k);",
        ),
        budgets=(budgets.lanes_only, budgets.reads("c", 384 // _LANES)),
    ),
    Puzzle(
        "scanned",
        "26 · Prefix sums",
        "out[i] is the sum of a[0] to a[i], for n up to 256, by one threadgroup of 256. Puzzle 11 passes 16 "
        "barriers; one is enough. simd_prefix_inclusive_sum gives each lane the sum of its SIMD-group's values up to "
        "its own. The last lane writes the total to threadgroup memory, and then each SIMD-group adds the totals of "
        "those before it.",
        """kernel void scanned(device const float* a, device float* out, constant uint& n,
                    uint t [[thread_position_in_threadgroup]],
                    uint lane [[thread_index_in_simdgroup]],
                    uint simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup float totals[8];
    // your lines here
}
""",
        vector,
        lambda a, n: np.cumsum(_double(a)),
        lambda n: {"grid": 256, "threadgroup": 256},
        sizes=(1, 8, 31, 32, 33, 100, 256),
        shown=64,
        hints=(
            "A thread without an element contributes 0 and does not return early.",
            "Lane 31 has the sum of its SIMD-group: if (lane == 31) totals[simd] = own;",
            "There are eight totals: simd_sum(lane < simd ? totals[lane] : 0) adds those of the SIMD-groups before.",
        ),
        budgets=(budgets.barriers(1),),
    ),
    Puzzle(
        "segmented",
        "27 · Segmented sums",
        "Each block of 32 elements of a is divided into runs: heads[i] is 1 where a new run begins, and a block's "
        "first element always begins one. out[i] is the sum from the start of i's run up to a[i]. Find your run's "
        "start with a ballot, then add up with simd_shuffle_up, 1, 2, 4, 8 and 16 lanes back, but never from before "
        "the start. The length is a multiple of 32.",
        """kernel void segmented(device const float* a, device const uint* heads,
                      device float* out,
                      uint i [[thread_position_in_grid]],
                      uint lane [[thread_index_in_simdgroup]]) {
    // your lines here
}
""",
        runs,
        _segmented_sums,
        _launch_of,
        sizes=_WHOLE_GROUPS,
        cases=SEGMENTS,
        shown=32,
        hints=(
            "uint votes = uint(simd_vote::vote_t(simd_ballot(heads[i] != 0))) | 1; has a bit for each start.",
            "The highest bit up to your own is your start: 31 - clz(votes & (0xFFFFFFFF >> (31 - lane))).",
            "float before = simd_shuffle_up(sum, gap); for all lanes; then add it if lane >= start + gap.",
        ),
        budgets=(budgets.lanes_only, budgets.reads("a", 1)),
    ),
)
