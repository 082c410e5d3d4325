"""NumPy's functions on arrays: ``np.sum(a)`` runs the library op that implements it.

The op's row names the function (`Row.reference` and `Row.numpy`). Arrays are never converted to NumPy's silently: a
function without an op is refused, and the message says how to call NumPy's own.

Sources: NEP 13 (``__array_ufunc__``) and NEP 18 (``__array_function__``).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .. import linalg
from ..arrays.array import Array
from ..arrays.convert import asarray
from ..arrays.promotion import DTYPES, as_dtype, promote_weak
from . import table
from .indexing import array_indexing
from .op import Op

__all__ = ["function", "ufunc"]

# The op of a ufunc's method.
_REDUCE: dict[Any, str] = {
    np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min", np.logical_and: "all",
    np.logical_or: "any",
}  # fmt: skip
_ACCUMULATE: dict[Any, str] = {np.add: "cumulative_sum", np.multiply: "cumulative_prod"}

# NumPy's names for the ops' parameters, and the parameters of functions that cannot be inspected.
_WORDS = {"a_min": "min", "a_max": "max", "ddof": "correction", "kind": "", "order": ""}
_PARAMETERS = {
    np.concatenate: ("arrays", "axis", "out"),
    np.where: ("condition", "x1", "x2"),
    np.empty_like: ("prototype", "dtype"),
}
# Parameters whose default in NumPy differs from the op's.
_DEFAULTS: dict[Any, tuple[str, dict[str, Any]]] = {
    np.diagonal: ("diagonal", {"axis1": 0, "axis2": 1}),
    np.trace: ("trace", {"axis1": 0, "axis2": 1}),
    np.sort: ("sort", {"axis": -1}),
    np.argsort: ("argsort", {"axis": -1}),
}
# Functions that are a method of arrays, or another way to call an op.
_METHODS: dict[Any, Callable[..., Any]] = {
    np.array: lambda object, dtype=None, **_: asarray(object, dtype=dtype, copy=True),  # with like=
    np.asarray: lambda a, dtype=None, **_: asarray(a, dtype=dtype),
    np.atleast_1d: lambda *arrays: _at_least(1, arrays),
    np.atleast_2d: lambda *arrays: _at_least(2, arrays),
    np.broadcast_arrays: lambda *arrays: _broadcast(arrays),
    np.copy: lambda a: a.copy(),
    np.hstack: lambda tup: _concatenate([_at_least(1, (a,)) for a in tup], 1),
    np.around: lambda a, decimals=0: a.round(decimals),
    np.round: lambda a, decimals=0: a.round(decimals),
    np.ravel: lambda a: a.ravel(),
    np.squeeze: lambda a, axis=None: a.squeeze(axis),
    np.vstack: lambda tup: _concatenate([_at_least(2, (a,)) for a in tup], 0),
}
_METHODS |= {
    getattr(np.linalg, name): getattr(linalg, name)
    for name in linalg.__all__
    if hasattr(np.linalg, name) and hasattr(linalg, name) and not isinstance(getattr(linalg, name), (Op, type))
}
# Functions that read arrays and return none; they get the memory directly.
_LOOKING = frozenset({
    np.allclose, np.array2string, np.array_equal, np.array_equiv, np.array_repr, np.array_str, np.can_cast,
    np.iscomplexobj, np.isrealobj, np.may_share_memory, np.ndim, np.result_type, np.save, np.savetxt, np.savez,
    np.savez_compressed, np.shape, np.shares_memory, np.size,
})  # fmt: skip


def ufunc(numpy_ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Run a ufunc or one of its methods.

    Raises
    ------
    TypeError
        If no op implements it.
    """
    label = f"np.{numpy_ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    outs = options.pop("out", None) or (None,) * numpy_ufunc.nout
    mask = options.pop("where", True)
    if mask is not True:
        return _where(label, numpy_ufunc, method, inputs, {**options, "out": outs}, mask)
    if method in {"reduce", "accumulate"}:
        name = (_REDUCE if method == "reduce" else _ACCUMULATE).get(numpy_ufunc)
        return _write_out(_call_method(label, name, inputs, options), outs)
    if method == "outer":
        first, second = (x if isinstance(x, (bool, int, float, Array)) else asarray(x) for x in inputs)
        inputs = first[(..., *(None,) * np.ndim(second))] if isinstance(first, Array) else first, second
    elif method != "__call__":
        raise _unsupported_error(label)
    if numpy_ufunc is np.divmod:
        parts = [_call_op(label, _find_op(label, name), inputs, options) for name in ("floor_divide", "remainder")]
        return tuple(_write_out(part, out) for part, out in zip(parts, outs, strict=True))
    op = _ops_by_function().get(numpy_ufunc)
    if op is None:
        raise _unsupported_error(label)
    return _write_out(_call_op(label, op, inputs, options), outs)


def _where(
    label: str, numpy_ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any], condition: Any
) -> Any:
    """Run a ufunc where a mask is set; elsewhere `out` keeps its elements, or without `out` there are zeros."""
    if method != "__call__" or numpy_ufunc.nout != 1:
        raise TypeError(f"{label}: where=… is for ufuncs of one result. Use mnb.where(mask, x, …) before it.")
    (out,) = options.pop("out")
    mask = condition if isinstance(condition, Array) else asarray(condition, device=_device(*inputs, out))
    result = ufunc(numpy_ufunc, method, inputs, options)
    otherwise = 0 if out is None else out if isinstance(out, Array) else asarray(out, device=result.device)
    if result.dtype == np.bool_ and out is None:
        otherwise = False
    return _write_out(table.op("where")(mask, result, otherwise), out)


def _device(*values: Any) -> str | None:
    return next((x.device for x in values if isinstance(x, Array)), None)


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
    if not _fits(x, dtype, "same_kind"):
        source = x.dtype if hasattr(x, "dtype") else repr(x)
        raise TypeError(f"{label}: {source} is not narrowed to dtype={dtype} silently. Pass x.astype({dtype.name!r}).")
    return x.astype(dtype) if hasattr(x, "astype") else x


def _fits(x: Any, dtype: np.dtype[Any], casting: Any) -> bool:
    """Return whether a dtype can represent a value; Python numbers have a kind but no size."""
    if type(x) in {bool, int, float}:
        return casting == "unsafe" or promote_weak(x, dtype) == dtype
    return bool(np.can_cast(x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype, dtype, casting))


def _call_method(label: str, name: str | None, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if name is None:
        raise _unsupported_error(label)
    axis = options.pop("axis", 0)  # NumPy's default for these methods
    return _find_op(label, name)(*inputs, axis=axis, **_drop_defaults(label, options))


def function(numpy_function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Run one of NumPy's functions.

    Raises
    ------
    TypeError
        If no op implements it, or the op has no such parameter.
    """
    label = f"{numpy_function.__module__}.{numpy_function.__name__}".replace("numpy", "np", 1)
    if numpy_function in _LOOKING:
        return numpy_function(*_as_numpy(args), **{name: _as_numpy(value) for name, value in options.items()})
    if numpy_function is np.copyto:
        return _copyto(*args, **options)
    remaining = dict(options)
    out = remaining.pop("out", None)
    if numpy_function in _METHODS:
        return _write_out(_call_plain_method(label, numpy_function, args, remaining), out)
    if numpy_function in _DEFAULTS:
        name, defaults = _DEFAULTS[numpy_function]
        op = _find_op(label, name)
    else:
        answer, defaults = _ops_by_function().get(numpy_function), {}
        if answer is None:
            raise _unsupported_error(label)
        op = answer
    return _write_out(_call_by_signature(label, numpy_function, op, args, {**defaults, **remaining}), out)


def _broadcast(arrays: tuple[Any, ...]) -> list[Any]:
    """Broadcast arrays; objects that they cannot contain, such as names or None, are left to NumPy."""
    device = _device(*arrays)
    parts = []
    for value in arrays:
        part = value if isinstance(value, Array) else np.asarray(value)
        fits = part.dtype.name in DTYPES or (part.dtype.kind in "biuf" and not isinstance(value, np.ndarray))
        parts.append(asarray(value, device=device) if fits else part)
    shape = np.broadcast_shapes(*(part.shape for part in parts))
    return [table.op("broadcast_to")(p, shape) if isinstance(p, Array) else np.broadcast_to(p, shape) for p in parts]


def _call_plain_method(
    label: str, numpy_function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Call a method with the arguments of NumPy's function, dropping options that change nothing."""
    defaults = {name: default for _, name, _, default in _numpy_arguments(numpy_function, (), options)}
    changed = {name: value for name, value in options.items() if not _same(value, defaults[name])}
    try:
        inspect.signature(_METHODS[numpy_function]).bind(*args, **changed)
    except TypeError as error:
        raise TypeError(f"{label}: {error}. Pass x.numpy() for NumPy's own, on the CPU.") from None
    return _METHODS[numpy_function](*args, **changed)


def _call_by_signature(
    label: str, numpy_function: Callable[..., Any], op: Op, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Call an op with the arguments of NumPy's function, by its names, order and defaults."""
    parameters = op.__signature__.parameters
    by_place: dict[int, Any] = {}
    by_name: dict[str, Any] = {}
    positional_count = sum(p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD} for p in parameters.values())
    if any(p.kind is p.VAR_POSITIONAL for p in parameters.values()):
        positional_count = len(args)
    for place, word, value, default in _numpy_arguments(numpy_function, args, options):
        name = _WORDS.get(word, word)
        parameter = parameters.get(name)
        if parameter is not None and parameter.kind not in {parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL}:
            by_name[name] = value
        elif place < positional_count:
            if value is not default:
                by_place[place] = value
        elif word == "kind":  # every sort is stable
            continue
        elif not _same(value, default):
            raise TypeError(f"{label}: metalnb.{op.name} has no {word!r} (got {value!r}); it is {op.__signature__}.")
    return op(*(by_place[place] for place in sorted(by_place)), **by_name)


def _same(value: Any, default: Any) -> bool:
    """Return whether a value is the default; an array never is."""
    return value is default or (type(value) is type(default) and isinstance(value, (str, int)) and value == default)


def _numpy_arguments(
    numpy_function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> Iterator[tuple[int, str, Any, Any]]:
    """Yield each argument with the position, the name and the default of NumPy's parameter."""
    nowhere = 1 << 16  # the position of keyword-only parameters
    try:
        parameters = list(inspect.signature(numpy_function).parameters.values())
    except ValueError:
        names = _PARAMETERS.get(numpy_function, ("",) * len(args))
        yield from ((i, name, value, None) for i, (name, value) in enumerate(zip(names, args, strict=False)))
        yield from ((nowhere, name, value, None) for name, value in options.items())
        return
    defaults = {p.name: p.default for p in parameters}
    names = tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)
    if parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        names = ("",) * len(args)
    for i, (name, value) in enumerate(zip(names, args, strict=False)):
        yield i, name, value, defaults.get(name)
    positional = names[: len(args)]  # positional arguments win over our own defaults
    for name, value in options.items():
        if name not in positional:
            yield names.index(name) if name in names else nowhere, name, value, defaults.get(name)


@functools.cache
def _ops_by_function() -> Mapping[Any, Op]:
    """Map NumPy's functions to the ops that implement them; if there are two, to the one with the same name."""
    ops_by_function: dict[Any, Op] = {}
    for op in table.ops().values():
        for candidate in (op.row.reference, *op.row.numpy):
            if not (getattr(candidate, "__module__", "") or "").startswith("numpy") and not isinstance(
                candidate, np.ufunc
            ):
                continue
            if candidate not in ops_by_function or op.name == candidate.__name__:
                ops_by_function[candidate] = op
    return ops_by_function


def _find_op(label: str, name: str) -> Op:
    try:
        return table.op(name)
    except (KeyError, StopIteration):
        raise _unsupported_error(label) from None


def _unsupported_error(label: str) -> TypeError:
    return TypeError(f"{label}: no op of metalnb answers for it. Pass x.numpy() for NumPy's own, on the CPU.")


def _drop_defaults(label: str, options: dict[str, Any]) -> dict[str, Any]:
    """Drop options that change nothing."""
    defaults = {"casting": "same_kind", "order": "K", "subok": True, "keepdims": False, "dtype": None}
    changed = {n: v for n, v in options.items() if n not in defaults or v != defaults[n]}
    if "initial" in changed or "casting" in changed or "order" in changed or "subok" in changed:
        raise TypeError(
            f"{label}: {', '.join(sorted(changed))} is not supported for metalnb's arrays. Pass x.numpy() for NumPy's."
        )
    return changed


def _write_out(result: Any, out: Any) -> Any:
    """Write a result to where the caller wants it."""
    if isinstance(out, tuple):
        (out,) = out
    if out is None:
        return result
    if isinstance(out, np.ndarray):
        np.copyto(out, result.read(), casting="same_kind")
    else:
        if result.shape != out.shape or not np.can_cast(result.dtype, out.dtype, "same_kind"):
            message = f"out is {out.dtype} of shape {out.shape}; the result is {result.dtype} of shape {result.shape}."
            raise TypeError(message)
        array_indexing.assign(out, result)
    return out


def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    if where is not True:
        src = np.where(where, src, dst)
    if isinstance(dst, np.ndarray):
        np.copyto(dst, src.read(), casting)
        return
    if not _fits(src, dst.dtype, casting):
        source = src.dtype if hasattr(src, "dtype") else repr(src)
        raise TypeError(f"np.copyto: {source} is not cast to {dst.dtype} by casting={casting!r}. "
                        "Pass src.astype(…), or casting='unsafe'.")  # fmt: skip
    array_indexing.assign(dst, src)


def _at_least(rank: int, arrays: tuple[Any, ...]) -> Any:
    """Return arrays with at least `rank` axes, new ones first."""
    widened = tuple(a.reshape((1,) * (rank - a.ndim) + a.shape) if a.ndim < rank else a for a in arrays)
    return widened[0] if len(widened) == 1 else widened


def _concatenate(arrays: list[Array], axis: int) -> Any:
    return table.op("concat")(arrays, axis=min(axis, arrays[0].ndim - 1))


def _as_numpy(value: Any) -> Any:
    """View the arrays in an argument as NumPy's, for the duration of a call."""
    if isinstance(value, Array):
        return value.read()
    if isinstance(value, (list, tuple)):
        return type(value)(_as_numpy(v) for v in value)
    return value
