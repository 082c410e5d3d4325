"""interp: piecewise linear interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import asarray
from ..launching.copying import as_array, convert, make_contiguous
from ..launching.launcher import dispatch
from ..launching.programs import program
from ..op import op

__all__ = ["interp"]

Host = np.ndarray[Any, Any]

_FLOAT = np.dtype(np.float32)


def _interp(x: Any, xp: Any, fp: Any, **options: Any) -> Any:
    return np.interp(x, xp, fp, **options)


@op("searching", reference=_interp, dtypes=("float32",), kernels=("interp.metal",), flops=8, numpy=(np.interp,),
    tolerance={"float32": 6.0}, size=lambda _x, _xp, fp, want: np.maximum(np.abs(want), np.abs(fp).max()),
    cite="NumPy, ``interp``")  # fmt: skip
def interp(
    x: Array, xp: Any, fp: Any, /, *, left: float | None = None, right: float | None = None, period: float | None = None
) -> Array:
    """Return the values at x of the piecewise linear function through some points.

    Parameters
    ----------
    x : Array
        The positions. Every dtype is converted to float32.
    xp, fp : Array or sequence of float, of one length
        The points, with increasing xp.
    left, right : float, optional
        The values before the first point and after the last; by default the first and last of fp.
    period : float, optional
        The period of x and xp. If it is given, xp need not increase, and left and right are ignored.

    Returns
    -------
    Array
        float32, with x's shape. NaN for NaN.

    Raises
    ------
    ValueError
        If there is no point, or xp and fp are not one-dimensional with the same length.
    """
    x = as_array("interp", x)
    points = [np.asarray(p.read() if isinstance(p, Array) else p, np.float64) for p in (xp, fp)]
    if points[0].ndim != 1 or points[0].shape != points[1].shape or not points[0].size:
        shapes = " and ".join(str(p.shape) for p in points)
        raise ValueError(f"interp: xp and fp must be two rows of one length, not empty; got shapes {shapes}.")
    values = make_contiguous(convert(x, _FLOAT))
    if period is not None:
        values, points = make_contiguous(values % abs(period)), _unroll_period(points, abs(period))
        left = right = None
    xs, ys = (asarray(p.astype(np.float32), device=x.device) for p in points)
    out = empty(x.shape, _FLOAT, x.engine)
    if out.size:
        ends = {
            "left": float(points[1][0] if left is None else left), "n": points[0].size,
            "right": float(points[1][-1] if right is None else right),
        }  # fmt: skip
        dispatch(program("interp.metal", x.engine).interpolate, values, xs, ys, out, ends, grid=out.size)
    return out


def _unroll_period(points: list[Host], period: float) -> list[Host]:
    """Sort the points of one period; repeat the last point before the period and the first point after it."""
    xp = points[0] % period
    order = np.argsort(xp, kind="stable")
    xp, fp = xp[order], points[1][order]
    return [np.concatenate([xp[-1:] - period, xp, xp[:1] + period]), np.concatenate([fp[-1:], fp, fp[:1]])]
