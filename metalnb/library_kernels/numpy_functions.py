"""NumPy's functions on arrays: ``np.sum(a)`` runs the library op that implements it.

The op's row names the function (`OpRow.reference` and `OpRow.numpy`). Arrays are never converted to NumPy's silently: a
function without an op is refused, and the message says how to call NumPy's own.

Source: NEP 18 (``__array_function__``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .. import linalg
from ..arrays.array import Array
from ..arrays.convert import asarray
from ..arrays.promotion import DTYPES
from . import op_table
from .indexing import array_indexing
from .launching.copying import as_array
from .numpy_ops import can_cast, device_among, find_op, ops_by_function, unsupported_error, write_out
from .op import Op

__all__ = ["function"]

# NumPy's names for the parameters of ops, and the parameters of functions that have no signature to inspect.
_PARAMETER_ALIASES = {"a_min": "min", "a_max": "max", "ddof": "correction", "kind": "", "order": "", "N": "n"}
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
# NumPy functions that map to an array method, or to an op with different arguments.
_METHODS: dict[Any, Callable[..., Any]] = {
    np.array: lambda object, dtype=None, **_: asarray(object, dtype=dtype, copy=True),  # with like=
    np.asarray: lambda a, dtype=None, **_: asarray(a, dtype=dtype),
    np.atleast_1d: lambda *arrays: _at_least("np.atleast_1d", 1, arrays),
    np.atleast_2d: lambda *arrays: _at_least("np.atleast_2d", 2, arrays),
    np.broadcast_arrays: lambda *arrays: _broadcast(arrays),
    np.copy: lambda a: a.copy(),
    np.hstack: lambda tup: _concatenate([_at_least("np.hstack", 1, (a,)) for a in tup], 1),
    np.around: lambda a, decimals=0: as_array("np.around", a).round(decimals),
    np.round: lambda a, decimals=0: as_array("np.round", a).round(decimals),
    np.ravel: lambda a: a.ravel(),
    np.squeeze: lambda a, axis=None: a.squeeze(axis),
    np.vstack: lambda tup: _concatenate([_at_least("np.vstack", 2, (a,)) for a in tup], 0),
}
_METHODS |= {
    getattr(np.linalg, name): getattr(linalg, name)
    for name in linalg.__all__
    if hasattr(np.linalg, name) and hasattr(linalg, name) and not isinstance(getattr(linalg, name), (Op, type))
}
# Functions that read arrays but return none; they receive the memory directly.
_READ_ONLY = frozenset({
    np.allclose, np.array2string, np.array_equal, np.array_equiv, np.array_repr, np.array_str, np.can_cast,
    np.iscomplexobj, np.isrealobj, np.may_share_memory, np.ndim, np.result_type, np.save, np.savetxt, np.savez,
    np.savez_compressed, np.shape, np.shares_memory, np.size,
})  # fmt: skip


def function(numpy_function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Run one of NumPy's functions.

    Raises
    ------
    TypeError
        If no op implements it, or the op has no such parameter.
    """
    label = f"{numpy_function.__module__}.{numpy_function.__name__}".replace("numpy", "np", 1)
    if numpy_function in _READ_ONLY:
        return numpy_function(*_as_numpy(args), **{name: _as_numpy(value) for name, value in options.items()})
    if numpy_function is np.copyto:
        return _copyto(*args, **options)
    remaining = dict(options)
    out = remaining.pop("out", None)
    if numpy_function in _METHODS:
        return write_out(label, _call_plain_method(label, numpy_function, args, remaining), out)
    if numpy_function in _DEFAULTS:
        name, defaults = _DEFAULTS[numpy_function]
        op = find_op(label, name)
    else:
        answer, defaults = ops_by_function().get(numpy_function), {}
        if answer is None:
            raise unsupported_error(label)
        op = answer
    result = _call_by_signature(label, numpy_function, op, args, {**defaults, **remaining})
    return write_out(label, result, out)


def _broadcast(arrays: tuple[Any, ...]) -> list[Any]:
    """Broadcast arrays; leave to NumPy objects that arrays cannot contain, such as strings or None."""
    device = device_among(*arrays)
    parts = []
    for value in arrays:
        part = value if isinstance(value, Array) else np.asarray(value)
        fits = part.dtype.name in DTYPES or (part.dtype.kind in "biuf" and not isinstance(value, np.ndarray))
        parts.append(asarray(value, device=device) if fits else part)
    shape = np.broadcast_shapes(*(part.shape for part in parts))
    return [op_table.op("broadcast_to")(p, shape) if isinstance(p, Array) else np.broadcast_to(p, shape) for p in parts]


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
    """Call an op with the arguments of a NumPy function, which follow that function's names, order and defaults."""
    parameters = op.__signature__.parameters
    by_position: dict[int, Any] = {}
    by_name: dict[str, Any] = {}
    positional_count = sum(p.kind is p.POSITIONAL_ONLY for p in parameters.values())  # others have NumPy's names
    if any(p.kind is p.VAR_POSITIONAL for p in parameters.values()):
        positional_count = len(args)
    for position, word, value, default in _numpy_arguments(numpy_function, args, options):
        name = _PARAMETER_ALIASES.get(word, word)
        parameter = parameters.get(name)
        if parameter is not None and parameter.kind not in {parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL}:
            by_name[name] = value
        elif position < positional_count:
            if value is not default:
                by_position[position] = value
        elif word == "kind":  # every sort is stable
            continue
        elif not _same(value, default):
            raise TypeError(f"{label}: metalnb.{op.name} has no {word!r} (got {value!r}); it is {op.__signature__}.")
    return op(*(by_position[position] for position in sorted(by_position)), **by_name)


def _same(value: Any, default: Any) -> bool:
    """Return whether a value is the default of a parameter; an array never is."""
    return value is default or (type(value) is type(default) and isinstance(value, (str, int)) and value == default)


def _numpy_arguments(
    numpy_function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> Iterator[tuple[int, str, Any, Any]]:
    """Yield each argument with the position, the name and the default of NumPy's parameter."""
    keyword_only = 1 << 16  # the position of keyword-only parameters
    try:
        parameters = list(inspect.signature(numpy_function).parameters.values())
    except ValueError:
        names = _PARAMETERS.get(numpy_function, ("",) * len(args))
        yield from ((i, name, value, None) for i, (name, value) in enumerate(zip(names, args, strict=False)))
        yield from ((keyword_only, name, value, None) for name, value in options.items())
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
            yield names.index(name) if name in names else keyword_only, name, value, defaults.get(name)


def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    if isinstance(dst, np.ndarray):
        np.copyto(dst, _as_numpy(src), casting, where=_as_numpy(where))
        return
    if where is not True:
        where, src = (asarray(v, device=dst.device) if isinstance(v, (list, tuple)) else v for v in (where, src))
        src = np.where(where, src, dst)
    if not can_cast(src, dst.dtype, casting):
        source = src.dtype if hasattr(src, "dtype") else repr(src)
        raise TypeError(f"np.copyto: {source} is not cast to {dst.dtype} by casting={casting!r}. "
                        "Pass src.astype(…), or casting='unsafe'.")  # fmt: skip
    array_indexing.assign(dst, src)


def _at_least(label: str, rank: int, arrays: tuple[Any, ...]) -> Any:
    """Return arrays with at least `rank` axes, adding new ones in front."""
    checked = [a if isinstance(a, (np.ndarray, np.generic)) else as_array(label, a) for a in arrays]
    widened = tuple(a.reshape((1,) * (rank - a.ndim) + a.shape) if a.ndim < rank else a for a in checked)
    return widened[0] if len(widened) == 1 else widened


def _concatenate(arrays: list[Array], axis: int) -> Any:
    return op_table.op("concat")(arrays, axis=min(axis, arrays[0].ndim - 1))


def _as_numpy(value: Any) -> Any:
    """View the arrays in an argument as NumPy arrays, for the duration of a call."""
    if isinstance(value, Array):
        return value.read()
    if isinstance(value, (list, tuple)):
        return type(value)(_as_numpy(v) for v in value)
    return value
