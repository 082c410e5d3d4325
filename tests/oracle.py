"""Shared by the library's tests: arrays of every layout, and the comparison of results with a float64 reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from metalnb.arrays.array import Array
from metalnb.arrays.convert import asarray
from metalnb.arrays.promotion import is_float
from metalnb.library_kernels.op import Op

__all__ = ["LAYOUTS", "error", "expected", "held", "laid"]

Host = np.ndarray[Any, Any]

LAYOUTS = ("plain", "transposed", "reversed", "stepped")


def laid(host: Host, layout: str = "plain", device: str | None = None) -> Array:
    """Return an array with these elements and the given memory layout; axes with stride 0 keep it."""
    if host.size and 0 in (s for s, n in zip(host.strides, host.shape, strict=True) if n > 1):
        once = tuple(slice(None, 1) if s == 0 else slice(None) for s in host.strides)
        base = laid(host[once], layout, device)
        return base.viewed(np.broadcast_to(base.host, host.shape))
    if layout == "transposed":
        base = asarray(np.ascontiguousarray(host.T), device=device, copy=True)
        return base.viewed(base.host.T)
    if layout == "reversed":
        back = (slice(None, None, -1),) * host.ndim
        base = asarray(np.ascontiguousarray(host[back]), device=device, copy=True)
        return base.viewed(base.host[back])
    if layout == "stepped" and host.ndim:
        wide = np.ones((*host.shape[:-1], 2 * host.shape[-1] + 3), host.dtype)
        wide[..., 3::2] = host
        base = asarray(wide, device=device, copy=True)
        return base.viewed(base.host[..., 3::2])
    return asarray(host, device=device, copy=True)


def layouts(args: tuple[Any, ...]) -> Iterator[str]:
    """Return the layouts that make a difference for these arguments."""
    most = max((a.ndim for a in args if isinstance(a, np.ndarray)), default=0)
    yield from LAYOUTS if most > 1 else ("plain", "reversed", "stepped") if most else ("plain",)


def expected(op: Op, args: tuple[Any, ...], options: Mapping[str, Any], result: Any) -> tuple[Any, tuple[Any, ...]]:
    """Compute the reference for a result of a dtype; return it with its arguments."""
    with np.errstate(all="ignore"):
        wide = tuple(_widened(op, a, result) for a in args)
        return op.row.reference(*wide, **{k: _widened(op, v, result) for k, v in options.items()}), wide


def _widened(op: Op, value: Any, result: Any) -> Any:
    """Return floats as float64; also integers that the op converts to float, by way of float32 as the op does."""
    if not isinstance(value, np.ndarray):
        return value
    if op.row.native:
        return value.astype(result)
    if is_float(value.dtype):
        return value.astype(np.float64) * 1.0  # a signaling NaN becomes a quiet one
    masks = getattr(op, "masks", ())
    if is_float(result) and not (value.dtype == np.bool_ and masks):
        single = value.astype(np.float32) if op.row.family in {"elementwise", "activation"} else value
        return single.astype(np.float64)
    return value


def held(op: Op, got: Array, want: Any, wide: tuple[Any, ...], what: str = "") -> None:
    """Compare a result with the reference: its shape, integers exactly, floats within the row's tolerance."""
    host, want = got.read(), np.asarray(want)
    assert host.shape == want.shape, f"{op.name}{what}: shape {host.shape}, not {want.shape}"
    if not is_float(got.dtype):
        assert np.array_equal(host, want), _told(op, host, want, host != want, wide, what)
        return
    size = want
    if op.row.size is not None:
        with np.errstate(all="ignore"):
            size = np.asarray(op.row.size(*wide, want))
    allowed = op.row.tolerance.get(got.dtype.name, 0.5)
    off = error(host, want.astype(np.float64), size.astype(np.float64))
    wrong = ~(off <= allowed)
    assert not wrong.any(), f"{off.max():.3g} ulp, {allowed} allowed; " + _told(op, host, want, wrong, wide, what)


def error(got: Host, exact: Host, size: Host | None = None) -> Host:
    """Return the distance of results from exact values, in units in the last place of their dtype at a size.

    It is 0 where both are NaN or the same infinity, and infinite where only one is. If the exact value overflows, a
    finite result is measured from the number that would follow the largest one.
    """
    info = _finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        largest, least = float(info.max), float(info.smallest_subnormal)
        _, exponent = np.frexp(np.clip(np.abs(exact if size is None else size), least, largest))
        gap = np.ldexp(1.0, np.maximum(exponent - 1 - info.nmant, int(info.minexp) - info.nmant))
        limit = np.ldexp(1.0, int(info.maxexp))
        plain = got.astype(np.float64)
        off = np.abs(plain - np.clip(exact, -limit, limit)) / gap
        off = np.where(np.isinf(plain) | np.isnan(plain) | np.isnan(exact), np.inf, off)
        same = (np.isinf(plain) & (rounded.astype(np.float64) == plain)) | (np.isnan(plain) & np.isnan(exact))
    return np.asarray(np.where(same, 0.0, off))


def _finfo(dtype: Any) -> Any:
    if dtype.name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.finfo(dtype)
    return np.finfo(dtype)


def _told(op: Op, got: Host, want: Host, wrong: Host, wide: tuple[Any, ...], what: str) -> str:
    """Return the first few wrong elements as text, with the inputs of each."""
    places = np.argwhere(wrong)[:5]
    lines = [f"{op.name}{what}: {np.count_nonzero(wrong)} of {wrong.size} are wrong"]
    for place in map(tuple, places):
        arguments = [a if not isinstance(a, np.ndarray) else _at(a, place, got.shape) for a in wide]
        lines.append(f"  {place}: got {got[place]!r}, not {want[place]!r}, of {arguments}")
    return "\n".join(lines)


def _at(a: Host, place: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    try:
        return np.broadcast_to(a, shape)[place]
    except ValueError:
        return f"{a.dtype}{a.shape}"
