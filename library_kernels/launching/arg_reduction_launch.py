"""The place of the largest or smallest element: ``argreduce.metal``."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...engine.base import Grid
from ...program import Program
from ..planning.arg_reduction_plan import ArgReductionPlan, plan_arg_reduction
from ..planning.cuts import device_of, grid_of_groups, grid_of_rows, grid_of_threads, threads_for_row
from .launcher import Launch
from .programs import instantiated
from .reduction_launch import tag

__all__ = ["arg_reduced"]

_UINT = np.dtype(np.uint64)


def arg_reduced(order: str, x: Array, form: tuple[int, int, int], out: Array) -> Array:
    """Find where the largest or smallest element of each of outer × width reductions is.

    Parameters
    ----------
    order : {"Largest", "Smallest"}
        A functor of ``argreduce.metal``.
    x : Array
        Contiguous.
    form : tuple of int
        (outer, count, width): the middle axis is reduced.
    out : Array
        int64, outer × width: filled and returned.
    """
    element = tag(x.dtype)
    value = 4 if element in {"half", "bfloat16"} else x.dtype.itemsize
    plan = plan_arg_reduction(x.offset // x.dtype.itemsize, *form, value, device_of(x.engine.caps))
    _run(plan, _program(order, element, x.device), x, out, np.dtype(f"u{value}"))
    return out


def _run(plan: ArgReductionPlan, program: Program, x: Array, out: Array, value: Any) -> None:
    def launch(kernel: str, record: Any, grid: Grid, threadgroup: Grid) -> Launch:
        return Launch(program[kernel].binary, grid, threadgroup, (record,))

    engine, outputs = x.engine, plan.outputs
    first = launch(plan.kernel, plan.record, plan.grid, plan.threadgroup)
    if plan.kernel == "each":
        first.start(x, out)
        return
    values = empty((max(plan.found, 1),), value, engine)
    if plan.kernel == "rows":
        first.start(x, values, out)
        if plan.found:
            threads = threads_for_row(plan.found // outputs, device_of(engine.caps))
            kernel = "pick_shared" if threads else "pick"
            form = grid_of_rows(outputs, threads) if threads else grid_of_groups(outputs, alone=True)
            launch(kernel, plan.record, *form).start(x, values, out)
        return
    places = empty((plan.found,), _UINT, engine)
    first.start(x, values, places)
    launch("merge", plan.merge, *grid_of_threads(outputs)).start(values, places, out)


@functools.cache
def _program(order: str, element: str, engine: str) -> Program:
    value = {"half": "float", "bfloat16": "float"}.get(element, element)
    of = {"rows": element, "pick": element, "pick_shared": element, "columns": element, "each": element, "merge": value}
    templates = {name: f"argreduce_{name}<{order}, {read}>" for name, read in of.items()}
    return instantiated("argreduce.metal", templates, engine)
