"""Looking up: digitize, by halving, and interp, a kernel of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import asarray, on
from ...arrays.promotion import is_float
from ..launching.copying import as_array, contiguous, converted
from ..launching.launcher import dispatch
from ..launching.programs import program
from ..op import NUMERIC, op
from ..ops.searching import searchsorted

__all__ = ["digitize", "interp"]

Host = np.ndarray[Any, Any]

_FLOAT = np.dtype(np.float32)


def _digitize_reference(x: Any, bins: Any, right: bool = False) -> Any:
    return np.digitize(x, bins, right)


@op("searching", reference=_digitize_reference, dtypes=NUMERIC, kernels=("search.metal",), flops=0,
    numpy=(np.digitize,), cite="NumPy, ``digitize``")  # fmt: skip
def digitize(x: Array, bins: Any, /, right: bool = False) -> Array:
    """Return the number of the bin that each element falls into: 0 before the first edge.

    Parameters
    ----------
    x : Array
    bins : sequence of numbers or Array
        The edges, rising or falling.
    right : bool
        Whether a bin has its upper edge rather than its lower one.

    Returns
    -------
    Array
        int64, of x's shape.

    Raises
    ------
    ValueError
        For edges that neither rise nor fall.
    """
    x = as_array("digitize", x)
    edges = bins if isinstance(bins, Array) else asarray(bins, device=x.device)
    if is_float(x.dtype) and not isinstance(bins, (Array, np.ndarray)):
        edges = converted(edges, x.dtype)
    on(x.engine, "digitize", edges)
    host = edges.read()
    rising, falling = bool((host[1:] >= host[:-1]).all()), bool((host[1:] <= host[:-1]).all())
    if edges.ndim != 1 or not (rising or falling):
        raise ValueError("digitize: the edges must be a row that rises or falls.")
    side = "left" if right else "right"
    found: Array = searchsorted(edges if rising else contiguous(edges[::-1]), x, side=side)
    return found if rising else edges.size - found


def _interp(x: Any, xp: Any, fp: Any, **options: Any) -> Any:
    return np.interp(x, xp, fp, **options)


@op("searching", reference=_interp, dtypes=("float32",), kernels=("interp.metal",), flops=8, numpy=(np.interp,),
    tolerance={"float32": 6.0}, size=lambda _x, _xp, fp, want: np.maximum(np.abs(want), np.abs(fp).max()),
    cite="NumPy, ``interp``")  # fmt: skip
def interp(
    x: Array, xp: Any, fp: Any, /, *, left: float | None = None, right: float | None = None, period: float | None = None
) -> Array:
    """Return the values at x of the line through points.

    Parameters
    ----------
    x : Array
        Where; of any dtype, taken as float32.
    xp, fp : Array or sequence of float, of one length
        The points, xp rising.
    left, right : float, optional
        Before the first point and after the last; by default the first and last of fp.
    period : float, optional
        Of x and xp, which then need not rise; left and right do not count.

    Returns
    -------
    Array
        float32, of x's shape. NaN for NaN.

    Raises
    ------
    ValueError
        When there is no point, or xp and fp are not two rows of one length.
    """
    x = as_array("interp", x)
    points = [np.asarray(p.read() if isinstance(p, Array) else p, np.float64) for p in (xp, fp)]
    if points[0].ndim != 1 or points[0].shape != points[1].shape or not points[0].size:
        shapes = " and ".join(str(p.shape) for p in points)
        raise ValueError(f"interp: xp and fp must be two rows of one length, not empty; got shapes {shapes}.")
    values = contiguous(converted(x, _FLOAT))
    if period is not None:
        values, points, left, right = contiguous(values % abs(period)), _unrolled(points, abs(period)), None, None
    along, at = (asarray(p.astype(np.float32), device=x.device) for p in points)
    out = empty(x.shape, _FLOAT, x.engine)
    if out.size:
        ends = {
            "left": float(points[1][0] if left is None else left), "n": points[0].size,
            "right": float(points[1][-1] if right is None else right),
        }  # fmt: skip
        dispatch(program("interp.metal", x.engine).interpolate, values, along, at, out, ends, grid=out.size)
    return out


def _unrolled(points: list[Host], period: float) -> list[Host]:
    """Put the points of one period in order, with the last before it and the first after it."""
    xp = points[0] % period
    order = np.argsort(xp, kind="stable")
    xp, fp = xp[order], points[1][order]
    return [np.concatenate([xp[-1:] - period, xp, xp[:1] + period]), np.concatenate([fp[-1:], fp, fp[:1]])]
