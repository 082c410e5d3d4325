"""Running sums and products along an axis: ``scan.metal``."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...program import Program
from ..planning.cuts import device_of, grid_of_rows, grid_of_threads
from ..planning.scan_plan import plan_scan, threads_of_totals
from .launcher import Launch, aligned
from .programs import instantiated
from .reduction_launch import ACCUMULATORS, Monoid

__all__ = ["scanned"]

DType = np.dtype[Any]

_NO_VALUE = np.zeros(1, np.float32)


def scanned(x: Array, axis: int, monoid: Monoid, result: DType, *, initial: bool) -> Array:
    """Combine each element of a contiguous array with all before it along an axis.

    Parameters
    ----------
    x : Array
    axis : int
    monoid : Monoid
        Its `element` is x's dtype, its `result` the dtype `result`.
    result : numpy.dtype
    initial : bool
        Whether the identity comes first: one element more.

    Returns
    -------
    Array
    """
    count = x.shape[axis]
    outer = int(np.prod(x.shape[:axis], dtype=np.int64))
    width = int(np.prod(x.shape[axis + 1 :], dtype=np.int64))
    out = empty((*x.shape[:axis], count + initial, *x.shape[axis + 1 :]), result, x.engine)
    if 0 in out.shape or count == 0:
        return out
    engine = x.engine
    acc = ACCUMULATORS[monoid.acc]
    device = device_of(engine.caps)
    plan = plan_scan(x.offset // x.itemsize, outer, count, width, acc.itemsize, initial, device)
    program = _program(monoid, engine.name)
    totals = empty((plan.scans * plan.parts,), acc, engine)
    if plan.totals is not None:
        binary = program[f"totals_{plan.kernel}"].binary
        Launch(binary, plan.grid, plan.threadgroup, (plan.totals,)).start(x, _NO_VALUE, totals)
        if device.waits and width == 1:
            shared = grid_of_rows(outer, threads_of_totals(plan.parts))
            Launch(program["totals_shared"].binary, *shared, (plan.record,)).start(totals)
        else:
            Launch(program["totals"].binary, *grid_of_threads(plan.scans), (plan.record,)).start(totals)
    kernel = "rows_wide" if plan.wide and aligned(x) else plan.kernel
    Launch(program[kernel].binary, plan.grid, plan.threadgroup, (plan.record,)).start(x, totals, out)
    return out


@functools.cache
def _program(monoid: Monoid, engine: str) -> Program:
    templates = {
        "totals_rows": f"reduce_rows<First<{monoid.spelled}>>",
        "totals_columns": f"reduce_columns<First<{monoid.spelled}>>",
        "totals": f"scan_totals<{monoid.spelled}>",
        "totals_shared": f"scan_totals_shared<{monoid.spelled}>",
        "rows": f"scan_rows<{monoid.spelled}>",
        "rows_wide": f"scan_rows_wide<{monoid.spelled}>",
        "columns": f"scan_columns<{monoid.spelled}>",
    }
    return instantiated("scan.metal", templates, engine, definitions=monoid.text)
