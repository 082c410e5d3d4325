"""Walk through the floats: print the largest error of every op of one array, and the error that its row allows.

Run: python tests/accuracy.py [--every N] [op ...]

Every N-th of all 2^32 floats is tested, from a random start. A row's `ulp` must hold for every float, which a few
thousand samples cannot show: take it from here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from oracle import error, expected

import metalnb as mnb
from metalnb.arrays.promotion import is_float
from metalnb.library_kernels import op_table
from metalnb.library_kernels.elementwise.elementwise_op import Elementwise
from metalnb.library_kernels.op import Op

__all__ = ["walked", "worst"]

_CHUNK = 1 << 20


def worst(name: str, every: int = 4096, start: int = 0) -> tuple[float, float]:
    """Return the largest error of an op of one array, in ulp of float32, and the argument where it occurs."""
    op, most, where = op_table.op(name), 0.0, float("nan")
    for x in _floats(every, start):
        off = _errors(op, x)
        place = int(off.argmax())
        if not off[place] <= most:  # of NaN too
            most, where = float(off[place]), float(x[place])
    return most, where


def walked() -> list[str]:
    """Name the ops of one array whose results are floats."""
    one = [n for n, op in op_table.ops().items() if op.row.family in {"elementwise", "activation"} and _takes_one(op)]
    return [n for n in one if "float32" in op_table.op(n).row.dtypes and is_float(op_table.op(n)(mnb.ones(1)).dtype)]


def _takes_one(op: Op) -> bool:
    form = op if isinstance(op, Elementwise) else next(iter(op.row.parts), None)
    return isinstance(form, Elementwise) and len(form.operands) == 1


def _floats(every: int, start: int) -> Iterator[np.ndarray[Any, Any]]:
    for low in range(start, 1 << 32, every * _CHUNK):
        bits = np.arange(low, min(low + every * _CHUNK, 1 << 32), every, dtype=np.uint64)
        yield bits.astype(np.uint32).view(np.float32)


def _errors(op: Op, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    got = op(mnb.asarray(x)).read()
    reference, wide = expected(op, (x,), {}, got.dtype)
    with np.errstate(all="ignore"):
        size = reference if op.row.size is None else np.asarray(op.row.size(*wide, reference))
        return error(got, reference, size)


def main() -> int:
    """Print a line for each op, marking those beyond the allowed error; return their number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ops", nargs="*", help="default: all")
    parser.add_argument("--every", type=int, default=64, help="test every N-th of the 2^32 floats (default 64)")
    parser.add_argument("--seed", type=int, default=0, help="seed for each op's first float (default 0)")
    options = parser.parse_args()
    names = options.ops or walked()
    starts = np.random.default_rng(options.seed).integers(0, options.every, len(names)).tolist()
    beyond = 0
    with ProcessPoolExecutor() as pool:
        found = pool.map(worst, names, [options.every] * len(names), starts)
        for name, (most, where) in zip(names, found, strict=True):
            allowed = op_table.op(name).row.tolerance["float32"]
            beyond += not most <= allowed
            mark = "" if most <= allowed else "  beyond"
            print(f"{name:16}{most:10.3f} ulp at {where!r:26} allowed {allowed:g}{mark}", flush=True)
    return beyond


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
