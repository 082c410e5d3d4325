"""What NumPy's functions do with arrays: ``np.sum(a)`` runs the op of the library that answers for it.

Which op that is, its row says (`Row.reference` and `Row.numpy`). Nothing is turned into NumPy's arrays in silence: what
no op answers for is refused, with the way to ask for it.

Sources: NEP 13 (``__array_ufunc__``) and NEP 18 (``__array_function__``).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..arrays.array import Array
from . import indexing, table
from .op import Op

__all__ = ["function", "ufunc"]

# The op that a ufunc's method is.
_REDUCE: dict[Any, str] = {
    np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min", np.logical_and: "all",
    np.logical_or: "any",
}  # fmt: skip
_ACCUMULATE: dict[Any, str] = {np.add: "cumulative_sum", np.multiply: "cumulative_prod"}

# NumPy's words for the ops' parameters, and the parameters of functions that cannot be asked for theirs.
_WORDS = {"a_min": "min", "a_max": "max", "ddof": "correction", "kind": "", "order": ""}
_PARAMETERS = {
    np.concatenate: ("arrays", "axis", "out"),
    np.where: ("condition", "x1", "x2"),
    np.empty_like: ("prototype", "dtype"),
}
# Where NumPy's default is not the op's.
_DEFAULTS: dict[Any, tuple[str, dict[str, Any]]] = {
    np.diagonal: ("diagonal", {"axis1": 0, "axis2": 1}),
    np.trace: ("trace", {"axis1": 0, "axis2": 1}),
    np.sort: ("sort", {"axis": -1}),
    np.argsort: ("argsort", {"axis": -1}),
}
# Functions that are a method of arrays, or a way to call an op.
_METHODS: dict[Any, Callable[..., Any]] = {
    np.atleast_1d: lambda *arrays: _deep(1, arrays),
    np.atleast_2d: lambda *arrays: _deep(2, arrays),
    np.copy: lambda a, **_: a.copy(),
    np.hstack: lambda arrays: _joined([_deep(1, (a,)) for a in arrays], 1),
    np.ravel: lambda a: a.ravel(),
    np.squeeze: lambda a, axis=None: a.squeeze(axis),
    np.vstack: lambda arrays: _joined([_deep(2, (a,)) for a in arrays], 0),
}
# Functions that look at arrays and give no array: they look at the memory itself.
_LOOKING = frozenset({
    np.allclose, np.array2string, np.array_equal, np.array_equiv, np.array_repr, np.array_str, np.can_cast,
    np.iscomplexobj, np.isrealobj, np.may_share_memory, np.ndim, np.result_type, np.save, np.savetxt, np.savez,
    np.savez_compressed, np.shape, np.shares_memory, np.size,
})  # fmt: skip


def ufunc(called: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Answer a ufunc or one of its methods.

    Raises
    ------
    TypeError
        When no op does.
    """
    label = f"np.{called.__name__}" + ("" if method == "__call__" else f".{method}")
    (out,) = options.pop("out", None) or (None,)
    if options.pop("where", True) is not True:
        raise TypeError(f"{label}: where=… is not for metalnb's arrays. Use mnb.where(mask, …, x).")
    if method == "__call__" and called is np.divmod:
        return tuple(_named(label, name)(*inputs) for name in ("floor_divide", "remainder"))
    if method == "__call__":
        op = _answers().get(called)
        if op is None:
            raise _unknown(label)
        dtype = options.pop("dtype", None)
        if dtype is not None:
            inputs = tuple(x.astype(dtype) if isinstance(x, Array) else x for x in inputs)
        result = op(*inputs, **_meant(label, options))
    elif method in {"reduce", "accumulate"}:
        name = (_REDUCE if method == "reduce" else _ACCUMULATE).get(called)
        result = _folded(label, name, inputs, options)
    elif method == "outer":
        one, other = inputs
        rank = np.ndim(other)
        result = _named(label, called.__name__)(one[(..., *(None,) * rank)], other)
    else:
        raise _unknown(label)
    return _put(result, out)


def _folded(label: str, name: str | None, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if name is None:
        raise _unknown(label)
    axis = options.pop("axis", 0)  # NumPy's default for these methods
    return _named(label, name)(*inputs, axis=axis, **_meant(label, options))


def function(called: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Answer one of NumPy's functions.

    Raises
    ------
    TypeError
        When no op does, or the op has no such parameter.
    """
    label = f"{called.__module__}.{called.__name__}".replace("numpy", "np", 1)
    if called in _LOOKING:
        return called(*_seen(args), **{name: _seen(value) for name, value in options.items()})
    if called is np.copyto:
        return _copied(*args, **options)
    if called in _METHODS:
        return _METHODS[called](*args, **options)
    given = dict(options)
    out = given.pop("out", None)
    if called in _DEFAULTS:
        name, defaults = _DEFAULTS[called]
        op = _named(label, name)
    else:
        found, defaults = _answers().get(called), {}
        if found is None:
            raise _unknown(label)
        op = found
    return _put(_asked(label, called, op, args, {**defaults, **given}), out)


def _asked(label: str, called: Callable[..., Any], op: Op, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
    """Call an op with what NumPy's function was called with: its words, its order, its defaults."""
    parameters = op.__signature__.parameters
    by_position: list[Any] = []
    by_name: dict[str, Any] = {}
    most = sum(p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD} for p in parameters.values())
    spread = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
    for word, value, default in _words(called, args, given):
        name = _WORDS.get(word, word)
        known = parameters.get(name)
        if known is not None and known.kind not in {known.POSITIONAL_ONLY, known.VAR_POSITIONAL}:
            by_name[name] = value
        elif spread or (len(by_position) < most and not by_name and value is not default):
            by_position.append(value)
        elif word == "kind":  # every sort is stable, whatever is asked for
            continue
        elif value is not None and value is not default and value is not np._NoValue:  # noqa: SLF001
            raise TypeError(f"{label}: metalnb.{op.name} has no {word!r} (got {value!r}); it is {op.__signature__}.")
    return op(*by_position, **by_name)


def _words(
    called: Callable[..., Any], args: tuple[Any, ...], given: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Give each argument with the name and the default of NumPy's parameter."""
    try:
        parameters = list(inspect.signature(called).parameters.values())
    except ValueError:
        names = _PARAMETERS.get(called, ("",) * len(args))
        yield from ((name, value, None) for name, value in zip(names, args, strict=False))
        yield from ((name, value, None) for name, value in given.items())
        return
    defaults = {p.name: p.default for p in parameters}
    names = tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)
    if parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        names = ("",) * len(args)
    yield from ((name, value, defaults.get(name)) for name, value in zip(names, args, strict=False))
    placed = names[: len(args)]  # what is given by position stands before our own defaults
    yield from ((name, value, defaults.get(name)) for name, value in given.items() if name not in placed)


@functools.cache
def _answers() -> Mapping[Any, Op]:
    """Which op answers for which of NumPy's functions; the one of the same name where there are two."""
    found: dict[Any, Op] = {}
    for op in table.ops().values():
        for candidate in (op.row.reference, *op.row.numpy):
            if not (getattr(candidate, "__module__", "") or "").startswith("numpy") and not isinstance(
                candidate, np.ufunc
            ):
                continue
            if candidate not in found or op.name == candidate.__name__:
                found[candidate] = op
    return found


def _named(label: str, name: str) -> Op:
    try:
        return table.op(name)
    except (KeyError, StopIteration):
        raise _unknown(label) from None


def _unknown(label: str) -> TypeError:
    return TypeError(f"{label}: no op of metalnb answers for it. Pass x.numpy() for NumPy's own, on the CPU.")


def _meant(label: str, options: dict[str, Any]) -> dict[str, Any]:
    """Leave out options that say what is so anyhow."""
    plain = {"casting": "same_kind", "order": "K", "subok": True, "keepdims": False, "dtype": None}
    meant = {n: v for n, v in options.items() if n not in plain or v != plain[n]}
    if "initial" in meant or "casting" in meant or "order" in meant or "subok" in meant:
        raise TypeError(
            f"{label}: {', '.join(sorted(meant))} is not for metalnb's arrays. Pass x.numpy() for NumPy's own."
        )
    return meant


def _put(result: Any, out: Any) -> Any:
    """Write a result to where the caller wants it."""
    if out is None:
        return result
    if isinstance(out, tuple):
        (out,) = out
    if isinstance(out, np.ndarray):
        np.copyto(out, result.read(), casting="same_kind")
    else:
        if result.shape != out.shape or not np.can_cast(result.dtype, out.dtype, "same_kind"):
            message = f"out is {out.dtype} of shape {out.shape}; the result is {result.dtype} of shape {result.shape}."
            raise TypeError(message)
        indexing.assign(out, result)
    return out


def _copied(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if where is not True or casting != "same_kind":
        raise TypeError("np.copyto: where and casting are not for metalnb's arrays. Use mnb.where.")
    if isinstance(dst, np.ndarray):
        np.copyto(dst, src.read())
    else:
        indexing.assign(dst, src)


def _deep(rank: int, arrays: tuple[Any, ...]) -> Any:
    """Give arrays with at least so many axes, new ones before their own."""
    made = tuple(a.reshape((1,) * (rank - a.ndim) + a.shape) if a.ndim < rank else a for a in arrays)
    return made[0] if len(made) == 1 else made


def _joined(arrays: list[Array], axis: int) -> Any:
    return table.op("concat")(arrays, axis=min(axis, arrays[0].ndim - 1))


def _seen(value: Any) -> Any:
    """See the arrays in an argument as NumPy's, for the time of a call."""
    if isinstance(value, Array):
        return value.read()
    if isinstance(value, (list, tuple)):
        return type(value)(_seen(v) for v in value)
    return value
