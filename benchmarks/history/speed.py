"""How long compiling, calls and the library's kernels take on the engine ``cpu``, and the memory of an import.

asv makes an object for each benchmark, calls ``setup``, and measures a method: ``time_`` in seconds, ``peakmem_`` in
bytes. Private names are imported where they are used: a commit that lacks one still has its other figures.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import metalnb as mnb

__all__ = ["Call", "Compile", "Import", "Library", "Vectorizer"]

ENGINE = "cpu"
SAXPY = """
#include <metal_stdlib>
using namespace metal;

kernel void saxpy(device const float* x, device const float* y, device float* out, constant float& a,
                  uint i [[thread_position_in_grid]]) {
    out[i] = a * x[i] + y[i];
}
"""


def saxpy() -> mnb.Kernel:
    return mnb.compile(SAXPY, engine=ENGINE)["saxpy"]


def random_array(*shape: int) -> mnb.Array:
    """Return floats between 0 and 1, always the same ones."""
    return mnb.asarray(np.random.default_rng(0).random(shape, np.float32), device=ENGINE)


class Compile:
    """A kernel that no cache knows: the cell, and its first call."""

    number = 1  # a call for each setup
    warmup_time = 0
    elements = 1000

    def setup(self) -> None:
        self.x = np.ones(self.elements, np.float32)
        saxpy()(self.x, self.x, a=2.0)  # compiles the headers and the runtime, unless they are cached
        new = np.random.default_rng().random()  # the cache also finds a kernel that differs only by its name
        self.cell = SAXPY.replace("+ y[i]", f"+ y[i] + {new}f")

    def time_first_call(self) -> None:
        mnb.compile(self.cell, engine=ENGINE)["saxpy"](self.x, self.x, a=2.0)


class Call:
    """A kernel on 1,000 elements: mostly Python and the dispatch."""

    elements = 1000

    def setup(self) -> None:
        self.saxpy = saxpy()
        self.x, self.out = (np.ones(self.elements, np.float32) for _ in range(2))
        self.time_call()  # compiles it

    def time_call(self) -> None:
        self.saxpy(self.x, self.x, self.out, a=2.0)


class Library:
    """Kernels of the library, and saxpy, on arrays."""

    params = ("saxpy", "sum", "softmax", "matmul", "sort", "conv2d")
    param_names = ("op",)
    side = 1024  # of square matrices

    def setup(self, op: str) -> None:
        shape = (self.side, self.side)
        inputs = {"sum": 1, "softmax": 1, "sort": 1}.get(op, 2)
        shapes = [(4, 8, self.side // 4, self.side // 4), (8, 8, 3, 3)] if op == "conv2d" else [shape] * inputs
        self.arrays = [random_array(*each) for each in shapes]
        self.call = _call(op)
        self.time_op(op)  # compiles it

    def time_op(self, _op: str) -> None:
        self.call(*self.arrays).wait()


def _call(op: str) -> Callable[..., mnb.Array]:
    if op == "saxpy":
        kernel = saxpy()
        return lambda x, y: kernel(x, y, a=2.0)
    function: Callable[..., mnb.Array] = getattr(mnb, op)
    return function


class Vectorizer:
    """From the LLVM IR of one thread of the library's softmax to that of a SIMD-group, without clang."""

    side = 1024

    def setup(self) -> None:
        from metalnb.engine import named
        from metalnb.engine.cpu.lanes.vector_build import vectorize_form
        from metalnb.engine.observation import observe
        from metalnb.engine.vectorizer.simd_forms import form_for

        seen: list[Any] = []
        stop_observing = observe(named(ENGINE), seen.append)
        mnb.softmax(random_array(1, self.side)).wait()
        stop_observing()
        dispatch = seen[0]
        binary = dispatch.binary
        form = form_for(dispatch.grid, dispatch.threadgroup, simd=binary.uses_simdgroup, max_lanes=binary.lanes)
        self.vectorize = functools.partial(vectorize_form, binary.module, form)

    def time_softmax(self) -> None:
        self.vectorize()


class Import:
    """A process that has imported metalnb and compiled nothing."""

    def peakmem_import(self) -> None:
        """Do nothing: the import is above."""
