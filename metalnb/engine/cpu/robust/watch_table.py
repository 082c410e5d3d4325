"""The table that a watched kernel is given: words of 64 bits, of which the kernel writes those of faults.

Behind the words named here each argument has two, its address and its bytes; then each access that is checked has as
many as a SIMD-group has lanes. There a fault is recorded in a single word, so that no two threads' can mix: `WRONG`,
the thread's number in the grid, and the element; each of the last two only up to a limit.
"""

from __future__ import annotations

__all__ = ["ELEMENTS", "GRID", "LANES", "SIZES", "STOP", "STOPPED", "THREADS", "WRONG"]

STOP = 0  # `STOPPED` when the kernel is to end, else 0: loops look for it at the index that they find there
STOPPED = 1
GRID = 1  # two words: threads along x, and along y
SIZES = 4  # of each argument

LANES = 32
WRONG = 1 << 63
ELEMENTS = 1 << 33
THREADS = 1 << 30
