"""Find the positions of the largest or smallest elements, with ``argreduce.metal``."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array, empty
from ...engine import named
from ...engine.base import Grid
from ...program import Program
from ..planning.arg_reduction_plan import plan_arg_reduction
from ..planning.device import device_of
from ..planning.threads_per_row import grid_of_groups, grid_of_rows, grid_of_threads, threads_for_row
from .launcher import Launch
from .programs import compile_templates
from .reduction_launch import tag

__all__ = ["arg_reduce"]

DType = np.dtype[Any]

_PLANS = 4096
_MAX_STRETCHES = 32  # the most stretches of a column that one thread combines
_UINT = np.dtype(np.uint64)


def arg_reduce(order: str, x: Array, form: tuple[int, int, int], out: Array) -> Array:
    """Find the position of the largest or smallest element of each of outer × width reductions.

    Parameters
    ----------
    order : {"Largest", "Smallest"}
        A functor of ``argreduce.metal``.
    x : Array
        Contiguous.
    form : tuple of int
        (outer, count, width): the middle axis is reduced.
    out : Array
        An int64 array, outer × width, which is filled and returned.
    """
    kernel, first, second, parts, value = _steps(order, x.dtype, x.offset, form, x.device)
    if kernel == "each":
        first.start(x, out)
        return out
    values = empty((max(parts, 1),), value, x.engine)
    if kernel == "rows":
        first.start(x, values, out)
        if second is not None:
            second.start(x, values, out)
        return out
    positions = empty((parts,), _UINT, x.engine)
    first.start(x, values, positions)
    if second is not None:
        second.start(values, positions, out)
    return out


class _Steps(NamedTuple):
    """The one or two dispatches of a plan; `parts` is the number of partial results between them, of dtype `value`."""

    kernel: str
    first: Launch
    second: Launch | None
    parts: int
    value: DType


@functools.lru_cache(_PLANS)
def _steps(order: str, dtype: DType, offset: int, form: tuple[int, int, int], engine: str) -> _Steps:
    """Plan an arg-reduction and compile its kernels."""
    element, target = tag(dtype), named(engine)
    size = 4 if element in {"half", "bfloat16"} else dtype.itemsize
    device = device_of(target.caps)
    plan = plan_arg_reduction(offset // dtype.itemsize, *form, size, device)
    program = _program(order, element, engine)

    def launch(kernel: str, record: Any, grid: Grid, threadgroup: Grid) -> Launch:
        return Launch(program[kernel].binary, grid, threadgroup, (record,)).bind_records(target)

    second = None
    if plan.kernel in {"columns", "down"}:
        lanes = device.waits and plan.parts > _MAX_STRETCHES * plan.outputs
        shape = grid_of_groups(plan.outputs, device) if lanes else grid_of_threads(plan.outputs)
        second = launch("merge_lanes" if lanes else "merge", plan.merge, *shape)
    elif plan.parts:
        threads = threads_for_row(plan.parts // plan.outputs, device)
        shape = grid_of_rows(plan.outputs, threads) if threads else grid_of_groups(plan.outputs, alone=True)
        second = launch("pick_shared" if threads else "pick", plan.record, *shape)
    first = launch(plan.kernel, plan.record, plan.grid, plan.threadgroup)
    return _Steps(plan.kernel, first, second, plan.parts, np.dtype(f"u{size}"))


@functools.cache
def _program(order: str, element: str, engine: str) -> Program:
    value = {"half": "float", "bfloat16": "float"}.get(element, element)
    waits = device_of(named(engine).caps).waits
    elements = dict.fromkeys(("rows", "pick", "each", *(("pick_shared", "down") if waits else ("columns",))), element)
    elements |= dict.fromkeys(("merge", "merge_lanes") if waits else ("merge",), value)
    templates = {name: f"argreduce_{name}<{order}, {element_read}>" for name, element_read in elements.items()}
    return compile_templates("argreduce.metal", templates, engine)
