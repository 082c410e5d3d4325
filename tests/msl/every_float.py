"""Walk through the floats: find the greatest error of each function of one float on the engine ``cpu``.

``python tests/msl/every_float.py [--step N] [--keep] [function ...]`` tests every N-th of all 2^32 floats in precise
math. ``--keep`` writes the errors into ``measurements.json``, from which ``page.py --again`` writes the page.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

from msl.functions import MATH, Real  # noqa: E402  (after the path)
from msl.page import read, write  # noqa: E402
from msl.ulp import distance  # noqa: E402

import metalnb as mnb  # noqa: E402

__all__ = ["OWN", "worst"]

_CHUNK = 1 << 20
OWN = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "cospi", "exp", "exp10", "exp2", "log", "log10",
    "log2", "sin", "sinh", "sinpi", "tan", "tanh", "tanpi",
)  # fmt: skip


def worst(row: Real, step: int) -> tuple[float, float]:
    """Return a function's greatest error in ulp, and the argument where it occurs."""
    program = mnb.compile(
        f"""#include <metal_stdlib>
        kernel void each(device const float* x, device float* y, uint i [[thread_position_in_grid]]) {{
            y[i] = metal::{row.name}(x[i]);
        }}""",
        engine="cpu", math="precise",
    )  # fmt: skip
    most, where = 0.0, float("nan")
    got = np.empty(_CHUNK, np.float32)
    for low in range(0, 1 << 32, step * _CHUNK):
        bits = np.arange(low, low + step * _CHUNK, step, dtype=np.uint64) % (1 << 32)
        x = bits.astype(np.uint32).view(np.float32)
        program["each"](x, got, grid=(_CHUNK,))
        with np.errstate(all="ignore"):
            error = distance(got, row.oracle(x.astype(np.float64)), signed_zero=True)
        at = int(error.argmax())
        if error[at] > most:
            most, where = float(error[at]), float(x[at])
    return most, where


def main() -> int:
    """Print a line for each function; return how many exceed their bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("functions", nargs="*", help="default: all")
    parser.add_argument("--step", type=int, default=1, help="take each N-th float (default: all, minutes a function)")
    parser.add_argument("--keep", action="store_true", help="write the errors into measurements.json")
    options = parser.parse_args()
    beyond, measured = 0, read()
    for row in (row for row in MATH if row.name in (options.functions or OWN)):
        most, where = worst(row, options.step)
        beyond += most > row.ulp
        measured.every_float[row.name] = most
        print(f"{row.name:8}{most:10.4f} ulp at {where!r:26} allowed {row.ulp:g}", flush=True)
    if options.keep:
        write(measured)
    return beyond


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
