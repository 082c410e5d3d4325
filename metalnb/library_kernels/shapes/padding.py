"""Extending arrays at their ends: pad."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import asarray
from ..indexing.take_and_put import take
from ..launching.copying import as_array, copy_into, fill_with
from ..op import ALL, op

__all__ = ["pad"]

_MODES = ("constant", "edge", "reflect", "symmetric", "wrap", "empty")


def _pad(x: Any, widths: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
    reference: Any = np.pad
    return reference(x, widths, mode, **({"constant_values": constant_values} if mode == "constant" else {}))


def _pairs(name: str, value: Any, rank: int) -> list[tuple[Any, Any]]:
    """Return a pair for each axis, from one value, one pair, or all pairs."""
    try:
        pairs = np.broadcast_to(np.asarray(value), (rank, 2))
    except ValueError:
        rule = f"a number, a pair, or a pair for each of {rank} axes"
        raise ValueError(f"pad: {name} must be {rule}; got {value}.") from None
    return [(a, b) for a, b in pairs.tolist()]


@op("moving", reference=_pad, dtypes=ALL, kernels=("copy.metal", "gather.metal"), flops=0, numpy=(np.pad,),
    cite="NumPy, ``pad``")  # fmt: skip
def pad(x: Array, pad_width: Any, /, mode: str = "constant", *, constant_values: Any = 0) -> Array:
    """Return an array with more elements before and after it along its axes.

    Parameters
    ----------
    x : Array
    pad_width : int, pair of int, or a pair for each axis
        The number of elements before and after.
    mode : {"constant", "edge", "reflect", "symmetric", "wrap", "empty"}
        In this order, the new elements are constants, the outermost element, the array mirrored at its outermost
        element or beyond it, the array repeated, or uninitialized memory.
    constant_values : number, pair, or a pair for each axis
        For ``constant``: the values before and after.

    Returns
    -------
    Array
        ``constant`` is one copy; the other modes take elements by index, one axis after another.

    Raises
    ------
    ValueError
        For a negative width, an unknown mode, or if there is nothing to repeat.
    """
    x = as_array("pad", x)
    if mode not in _MODES:
        raise ValueError(f"pad: mode must be one of {', '.join(_MODES)}; got {mode!r}.")
    widths = [(operator.index(a), operator.index(b)) for a, b in _pairs("pad_width", pad_width, x.ndim)]
    if any(a < 0 or b < 0 for a, b in widths):
        raise ValueError(f"pad: widths must be 0 or more; got {pad_width}.")
    if mode not in {"constant", "empty"}:
        return _pad_by_index(x, widths, mode)
    out = empty(tuple(n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)), x.dtype, x.engine)
    inner = tuple(slice(a, a + n) for n, (a, _) in zip(x.shape, widths, strict=True))
    if mode == "constant":
        values = _pairs("constant_values", constant_values, x.ndim)
        if len({v for pair in values for v in pair}) == 1:
            fill_with(out, values[0][0])
        else:
            _write_frame(out, x.shape, widths, values)
    copy_into(out[(*inner, ...)], x)
    return out


def _write_frame(
    out: Array, shape: tuple[int, ...], widths: list[tuple[int, int]], values: list[tuple[Any, Any]]
) -> None:
    """Write each axis's numbers, later axes over earlier ones, as NumPy does."""
    for d, (n, (a, b), (before, after)) in enumerate(zip(shape, widths, values, strict=True)):
        lead = (slice(None),) * d
        for part, value, count in ((slice(0, a), before, a), (slice(a + n, a + n + b), after, b)):
            if count:
                fill_with(out[(*lead, part, ...)], value)


def _pad_by_index(x: Array, widths: list[tuple[int, int]], mode: str) -> Array:
    for d, (a, b) in enumerate(widths):
        if not (a or b):
            continue
        n = x.shape[d]
        if n == 0:
            raise ValueError(f"pad: axis {d} is empty: there is nothing that {mode!r} could repeat.")
        indices = np.arange(-a, n + b)
        if mode == "edge":
            indices = np.clip(indices, 0, n - 1)
        elif mode == "wrap":
            indices %= n
        elif mode == "symmetric":
            indices = np.minimum(indices % (2 * n), 2 * n - 1 - indices % (2 * n))
        else:
            period = max(2 * n - 2, 1)
            indices = np.minimum(indices % period, period - indices % period) if n > 1 else indices * 0
        x = take(x, asarray(indices, device=x.device), axis=d)
    return x if x.contiguous and any(map(any, widths)) else x.copy()


# ---- Splitting -----------------------------------------------------------------------------------------------------
