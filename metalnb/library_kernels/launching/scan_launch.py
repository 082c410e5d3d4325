"""Run scans (running sums and products) along an axis, with ``scan.metal``."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array, empty
from ...engine import named
from ...engine.base import Grid
from ...program import Program
from ..planning.device import device_of
from ..planning.scan_plan import plan_scan, threads_of_totals
from ..planning.threads_per_row import grid_of_rows, grid_of_threads
from .launcher import Launch, is_aligned, no_value
from .programs import compile_templates
from .reduction_launch import ACCUMULATORS, Monoid

__all__ = ["start_scan"]

DType = np.dtype[Any]

_PLANS = 4096
_MAX_TOTALS = 256  # the most totals of a column that one thread scans


def start_scan(x: Array, axis: int, monoid: Monoid, result: DType, *, initial: bool) -> Array:
    """Combine each element of a contiguous array with all elements before it along an axis.

    Parameters
    ----------
    x : Array
    axis : int
    monoid : Monoid
        Its `element` must be x's dtype, and its `result` the dtype `result`.
    result : numpy.dtype
    initial : bool
        Whether the result begins with the identity, which makes it longer by one element.

    Returns
    -------
    Array
    """
    count = x.shape[axis]
    outer, width = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    out = empty((*x.shape[:axis], count + initial, *x.shape[axis + 1 :]), result, x.engine)
    if 0 in out.shape or count == 0:
        return out
    engine = x.engine
    steps = _steps(monoid, x.offset // x.itemsize, (outer, count, width), engine.name, initial=initial)
    totals = empty((steps.totals,), ACCUMULATORS[monoid.acc], engine)
    if steps.reduce is not None and steps.totals_scan is not None:
        steps.reduce.start(x, no_value(engine.name), totals)
        steps.totals_scan.start(totals)
    last = steps.wide_scan if steps.wide_scan is not None and is_aligned(x) else steps.scan
    last.start(x, totals, out)
    return out


class _Steps(NamedTuple):
    """The dispatches of a plan: without stretches only the last, `scan`, or `wide_scan` if memory is aligned."""

    totals: int
    reduce: Launch | None
    totals_scan: Launch | None
    scan: Launch
    wide_scan: Launch | None


@functools.lru_cache(_PLANS)
def _steps(monoid: Monoid, offset: int, form: tuple[int, int, int], engine: str, *, initial: bool) -> _Steps:
    """Plan a scan and compile its kernels."""
    width = form[2]
    target = named(engine)
    device = device_of(target.caps)
    plan = plan_scan(offset, *form, ACCUMULATORS[monoid.acc].itemsize, initial, device)
    program = _program(monoid, engine)

    def launch(kernel: str, record: Any, grid: Grid, threadgroup: Grid) -> Launch:
        return Launch(program[kernel].binary, grid, threadgroup, (record,)).bind_records(target)

    reduce = totals_scan = None
    if plan.totals is not None:
        reduce = launch(f"totals_{plan.kernel}", plan.totals, plan.grid, plan.threadgroup)
        if device.waits and (width == 1 or plan.parts > _MAX_TOTALS):
            totals_scan = launch("totals_shared", plan.record, *grid_of_rows(plan.scans, threads_of_totals(plan.parts)))
        else:
            totals_scan = launch("totals", plan.record, *grid_of_threads(plan.scans))
    scan = launch(plan.kernel, plan.record, plan.grid, plan.threadgroup)
    wide_scan = launch("rows_wide", plan.record, plan.grid, plan.threadgroup) if plan.wide else None
    return _Steps(plan.scans * plan.parts, reduce, totals_scan, scan, wide_scan)


@functools.cache
def _program(monoid: Monoid, engine: str) -> Program:
    waits = device_of(named(engine).caps).waits
    sideways = "down" if waits else "columns"
    scans = ["totals", "rows", sideways, *(("totals_shared", "rows_wide") if waits else ())]
    templates = {name: f"scan_{name}<{monoid.msl_name}>" for name in scans}
    templates |= {f"totals_{name}": f"reduce_{name}<First<{monoid.msl_name}>>" for name in ("rows", sideways)}
    return compile_templates("scan.metal", templates, engine, definitions=monoid.text)
