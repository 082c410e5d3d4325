"""How many lanes a kernel runs in: the threads of a SIMD-group that share vector registers, 32, 16 or 8.

`max_lanes` decides once for a kernel, by the registers that its values need; `lanes_for_rows` decides for a dispatch,
by the length of a threadgroup's rows.
"""

from __future__ import annotations

from .vector_code.vector_target import WIDEST, VectorTarget

__all__ = ["SIMDGROUP", "lanes_for_rows", "max_lanes"]

SIMDGROUP = 32  # threads (MSL 4.4.1)


def max_lanes(live_bits: int, target: VectorTarget, *, uses_simdgroup: bool) -> int:
    """Return the largest number of lanes that a kernel should run in.

    If a thread's values exceed the registers, LLVM spills them; with fewer lanes each value takes fewer registers.
    With AVX2 a SHA-256 ran 2.6 times as fast in 8 lanes as in 32; but `gelu`, `exp` and an n-body kernel,
    whose values need up to twice the registers of 16 lanes, ran no slower in 16 than in 8.

    Parameters
    ----------
    live_bits : int
        See `register_pressure.live_bits`.
    target : VectorTarget
    uses_simdgroup : bool
        Whether the kernel uses its SIMD-group, or has barriers: with fewer lanes, these would mean more coroutines to
        switch between.
    """
    capacity = target.bits * target.registers
    if uses_simdgroup or SIMDGROUP * live_bits < capacity:
        return SIMDGROUP
    return 16 if 16 * live_bits < 2 * capacity or target.bits == WIDEST else 8


def lanes_for_rows(x: int) -> int:
    """Return the best number of lanes for a threadgroup's rows of `x` threads."""
    if x > SIMDGROUP:  # the most lanes that a row fills, if any
        return next((lanes for lanes in (SIMDGROUP, 16, 8) if x % lanes == 0), SIMDGROUP)
    if x <= 8:
        return 8
    if x <= 16:
        return 16
    return 8 if x % 8 == 0 and x < SIMDGROUP else SIMDGROUP  # 24 threads fill 8 lanes, and would not fill 32
