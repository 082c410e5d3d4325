"""NumPy's ufuncs on arrays: ``np.add(a, b)`` and ``np.add.reduce(a)`` run the library op that implements them.

Source: NEP 13 (``__array_ufunc__``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.array import Array
from ..arrays.convert import asarray
from ..arrays.promotion import as_dtype
from . import op_table
from .numpy_ops import can_cast, device_among, find_op, ops_by_function, unsupported_error, write_out
from .op import Op

__all__ = ["ufunc"]

# The op that each method of a ufunc becomes.
_REDUCE: dict[Any, str] = {
    np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min", np.logical_and: "all",
    np.logical_or: "any",
}  # fmt: skip
_COMPARISONS = frozenset({np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal})
_ACCUMULATE: dict[Any, str] = {np.add: "cumulative_sum", np.multiply: "cumulative_prod"}
# Options of every ufunc or of a method with their defaults, which have no effect; and options that no op has.
_OPTION_DEFAULTS = {"casting": "same_kind", "order": "K", "subok": True, "keepdims": False, "dtype": None}
_UNSUPPORTED = frozenset({"initial", "casting", "order", "subok"})


def ufunc(numpy_ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Run a ufunc or one of its methods.

    Raises
    ------
    TypeError
        If no op implements it.
    """
    if numpy_ufunc in _COMPARISONS:  # in `np.float64(2) < x`, NumPy passes the number as an array
        inputs = tuple(x[()] if type(x) is np.ndarray and not x.ndim else x for x in inputs)
    label = f"np.{numpy_ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    outs = options.pop("out", None) or (None,) * numpy_ufunc.nout
    mask = options.pop("where", True)
    if mask is not True:
        return _where(label, numpy_ufunc, method, inputs, {**options, "out": outs}, mask)
    if method in {"reduce", "accumulate"}:
        name = (_REDUCE if method == "reduce" else _ACCUMULATE).get(numpy_ufunc)
        return write_out(label, _call_method(label, name, inputs, options), outs)
    if method == "outer":
        first, second = (x if isinstance(x, (bool, int, float, Array)) else asarray(x) for x in inputs)
        inputs = first[(..., *(None,) * np.ndim(second))] if isinstance(first, Array) else first, second
    elif method != "__call__":
        raise unsupported_error(label)
    if numpy_ufunc is np.divmod:
        parts = [_call_op(label, find_op(label, name), inputs, options) for name in ("floor_divide", "remainder")]
        return tuple(
            write_out(label, part, out, f"out[{i}]") for i, (part, out) in enumerate(zip(parts, outs, strict=True))
        )
    op = ops_by_function().get(numpy_ufunc)
    if op is None:
        raise unsupported_error(label)
    return write_out(label, _call_op(label, op, inputs, options), outs)


def _where(
    label: str, numpy_ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any], condition: Any
) -> Any:
    """Run a ufunc where a mask is set. Elsewhere, `out` keeps its elements; without `out` they are zeros."""
    if method != "__call__" or numpy_ufunc.nout != 1:
        raise TypeError(f"{label}: where=… is for ufuncs of one result. Use mnb.where(mask, x, …) before it.")
    (out,) = options.pop("out")
    mask = condition if isinstance(condition, Array) else asarray(condition, device=device_among(*inputs, out))
    result = ufunc(numpy_ufunc, method, inputs, options)
    otherwise = 0 if out is None else out if isinstance(out, Array) else asarray(out, device=result.device)
    if result.dtype == np.bool_ and out is None:
        otherwise = False
    return write_out(label, op_table.op("where")(mask, result, otherwise), out)


def _call_op(label: str, op: Op, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call an op for a ufunc; `dtype` is the dtype of the computation and of the result."""
    remaining = dict(options)
    dtype_asked = remaining.pop("dtype", None)
    op_options = _drop_defaults(label, remaining)
    if dtype_asked is None:
        return op(*inputs, **op_options)
    dtype = as_dtype(dtype_asked, label)
    if dtype != np.bool_:  # which comparisons return for any dtype
        inputs = tuple(_cast(label, x, dtype) for x in inputs)
    result = op(*inputs, **op_options)
    if result.dtype != dtype:
        raise TypeError(f"{label}: the result has dtype {result.dtype}; dtype={dtype} was requested. "
                        "Leave dtype out, and use .astype(…).")  # fmt: skip
    return result


def _cast(label: str, x: Any, dtype: np.dtype[Any]) -> Any:
    if not can_cast(x, dtype, "same_kind"):
        source = x.dtype if hasattr(x, "dtype") else repr(x)
        raise TypeError(f"{label}: {source} is not narrowed to dtype={dtype} silently. Pass x.astype({dtype.name!r}).")
    return x.astype(dtype) if hasattr(x, "astype") else x


def _call_method(label: str, name: str | None, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if name is None:
        raise unsupported_error(label)
    axis = options.pop("axis", 0)  # NumPy's default for these methods
    return find_op(label, name)(*inputs, axis=axis, **_drop_defaults(label, options))


def _drop_defaults(label: str, options: dict[str, Any]) -> dict[str, Any]:
    """Drop options that have no effect.

    Raises
    ------
    TypeError
        For an option that no op has.
    """
    changed = {n: v for n, v in options.items() if n not in _OPTION_DEFAULTS or v != _OPTION_DEFAULTS[n]}
    unsupported = sorted(_UNSUPPORTED & changed.keys())
    if unsupported:
        verb = "is" if len(unsupported) == 1 else "are"
        names = ", ".join(f"{name}=" for name in unsupported)
        raise TypeError(f"{label}: {names} {verb} not supported for metalnb's arrays. Pass x.numpy() for NumPy's own.")
    return changed
