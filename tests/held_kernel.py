"""A dispatch that ends only when it is released, so that tests see what happens meanwhile without a clock."""

from __future__ import annotations

import numpy as np

import metalnb as mnb

__all__ = ["Held"]

TEXT = """#include <metal_stdlib>
using namespace metal;
kernel void held(device atomic_uint* state, device float* y, uint i [[thread_position_in_grid]]) {
    atomic_store_explicit(&state[0], 1u, memory_order_relaxed);
    while (atomic_load_explicit(&state[1], memory_order_relaxed) == 0u);
    y[i] = 2;
}"""


class Held:
    """A dispatch on the engine cpu, which reads NumPy's memory as it runs; afterwards each element of ``y`` is 2."""

    def __init__(self, y: np.ndarray) -> None:
        self.state = np.zeros(2, np.uint32)
        self.dispatch = mnb.compile(TEXT, engine="cpu", checked=True).held.prepare(self.state, y, grid=len(y))

    @property
    def runs(self) -> bool:
        """Whether one of the kernel's threads has started."""
        return bool(self.state[0])

    def let_go(self) -> None:
        """Release the dispatch."""
        self.state[1] = 1
