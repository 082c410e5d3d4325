"""Run products of matrices and of vectors as planned."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.promotion import is_float
from ...engine import named
from ...engine.base import Engine
from ...program import Program
from ..planning.device import CORES, LANES, Device, device_of
from ..planning.product_matrices import Strided
from ..planning.product_plan import plan_dots, plan_each_dot, plan_product, plan_widened
from ..planning.product_planner import DOT, SMALL, ProductPlan, ProductStep
from .copying import contiguous_copy, convert, make_contiguous
from .launcher import Launch, is_aligned
from .programs import program, program_with_macros

__all__ = ["CompiledProduct", "compile_plan", "dot_products", "product", "start_product"]

Shape = tuple[int, ...]
Make = Callable[..., ProductPlan]

_BYTE = np.dtype(np.uint8)
_FLOAT = np.dtype(np.float32)
_WIDENED = 1 << 24  # from this many multiplications on, conversion to float pays off
_OFTEN = 512  # from this many columns of B on, a large A is made contiguous first
_PLANS = 1024
_FORMS = ("matrix_pipes", "matrix_tiles", "tiles")  # the files whose kernels compute tiles
_FILES = (("dot", "dots.metal"), ("columns", "columns.metal"))
_LARGEST_KEPT_PLAN = 1024  # a larger plan takes much memory, and little time to make compared with its products


class CompiledProduct(NamedTuple):
    """The launches, each with the indices of its buffers (see `ProductStep`), and the bytes of each scratch buffer."""

    steps: tuple[tuple[Launch, tuple[int, ...]], ...]
    scratch: tuple[int, ...]


def product(a: Array, b: Array, batch: Shape) -> Array:
    """Multiply matrices.

    Parameters
    ----------
    a : Array (…, M, K)
    b : Array (…, K, N)
        With a's dtype and engine.
    batch : tuple of int
        What the leading axes broadcast to.

    Returns
    -------
    Array (*batch, M, N)
        In the factors' dtype. Integers wrap; float16 and bfloat16 are summed in float32 and rounded once.
    """
    m, k, n = *a.shape[-2:], b.shape[-1]
    out = empty((*batch, m, n), a.dtype, a.engine)
    if not out.size or not k:
        return _zeros(out)
    if _repays_widening(a, b, m * k * n, min(m, n)):
        a = convert(a, _FLOAT)
        start_product(_plan_for(plan_widened, a, b, batch), a, b, out)
        return out
    if m * k * a.itemsize > SMALL and n >= _OFTEN and a.strides[-1] != a.itemsize and 0 not in a.strides:
        a = contiguous_copy(a)
    if m == n == 1:
        _start_dots(_drop_axis(a, -2), _drop_axis(b, -1), batch, out)
    else:
        start_product(_plan_for(plan_product, a, b, batch), a, b, out)
    return out


def _repays_widening(a: Array, b: Array, steps: int, least: int) -> bool:
    """Return whether to convert 16-bit floats to float first; by block, a CPU takes up to 1.9 times as long."""
    is_large = steps >= _WIDENED and least >= LANES
    return is_large and a.itemsize == 2 and is_float(a.dtype) and a.engine.caps.serial and not (a.repeats or b.repeats)


def dot_products(a: Array, b: Array, batch: Shape) -> Array:
    """Return the dot products along the last axes.

    Parameters
    ----------
    a, b : Array (…, K)
        Of one dtype and engine.
    batch : tuple of int
        What the leading axes broadcast to.

    Returns
    -------
    Array (*batch)
        As for `product`.
    """
    out = empty(batch, a.dtype, a.engine)
    if not out.size or not a.shape[-1]:
        return _zeros(out)
    _start_dots(a, b, batch, out)
    return out


def _start_dots(a: Array, b: Array, batch: Shape, out: Array) -> None:
    is_contiguous = a.strides[-1] == b.strides[-1] == a.itemsize
    if a.shape[-1] >= DOT and (is_contiguous or out.size < LANES):
        a, b = (x if x.strides[-1] == x.itemsize else make_contiguous(x) for x in (a, b))
        start_product(_plan_for(plan_dots, a, b, batch), a, b, out)
    else:
        start_product(_plan_for(plan_each_dot, a, b, batch), a, b, out)


def _zeros(out: Array) -> Array:
    if out.size:
        out.block.settle()
        out.host[...] = 0
        out.block.flush()
    return out


def _drop_axis(x: Array, axis: int) -> Array:
    """Remove an axis of one element."""
    strided = Strided(x.shape, x.strides, x.offset).without(axis)
    return Array(x.block, x.dtype, strided.shape, strided.strides, x.offset)


def _plan_for(make: Make, a: Array, b: Array, batch: Shape) -> CompiledProduct:
    plan_cached = _cached_plan if math.prod(batch) <= _LARGEST_KEPT_PLAN else _cached_plan.__wrapped__
    operands = (Strided(x.shape, x.strides, x.offset) for x in (a, b))
    engine = a.engine
    device = device_of(engine.caps) if make is plan_product else CORES
    vectors = (is_aligned(a), is_aligned(b)) if device.tile_threadgroups else ()
    return plan_cached(make, *operands, batch, (a.dtype, b.dtype), device, vectors, engine.name)


@functools.lru_cache(maxsize=_PLANS)
def _cached_plan(
    make: Make, a: Strided, b: Strided, batch: Shape, dtypes: tuple[np.dtype[Any], ...], device: Device,
    alignments: tuple[bool, ...], engine_name: str,
) -> CompiledProduct:  # fmt: skip
    engine = named(engine_name)
    first, second = (
        Strided(x.shape, tuple(s // dtype.itemsize for s in x.strides), x.offset // dtype.itemsize)
        for x, dtype in zip((a, b), dtypes, strict=True)
    )
    return compile_plan(
        make(first, second, batch, dtypes[1].name, *((device, alignments) if alignments else ())), engine,
    )  # fmt: skip


def compile_plan(plan: ProductPlan, engine: Engine) -> CompiledProduct:
    """Compile a plan's steps."""
    steps = []
    for step in plan.steps:
        binary = _program(step, engine)[step.kernel].binary
        launch = Launch(binary, step.grid, step.threadgroup, step.records).bind_records(engine)
        steps.append((launch, step.buffer_indices))
    return CompiledProduct(tuple(steps), plan.scratch)


def start_product(compiled_plan: CompiledProduct, a: Array, b: Array, out: Array) -> None:
    """Start a compiled plan's dispatches."""
    memory = [a, b, out, *(empty((nbytes,), _BYTE, out.engine) for nbytes in compiled_plan.scratch)]
    for launch, buffer_indices in compiled_plan.steps:
        launch.start_on(tuple([memory[index] for index in buffer_indices]))


def _program(step: ProductStep, engine: Engine) -> Program:
    if step.load_kinds:
        file = f"{next(form for form in _FORMS if form in step.kernel)}.metal"
        windows = {"B_WINDOWS": "1"} if step.load_kinds[1] == "WINDOWS" else {}
        return program_with_macros(file, engine.name, A_WAY=step.load_kinds[0], B_WAY=step.load_kinds[1], **windows)
    file = next((file for name, file in _FILES if name in step.kernel), "matmul.metal")
    return program(file, engine)
