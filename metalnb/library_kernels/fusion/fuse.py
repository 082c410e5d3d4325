"""Fuse a function of arrays into one kernel: call it once with placeholders, and write its operations as MSL."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from html import escape
from inspect import Parameter
from typing import Any, NamedTuple

import numpy as np

from ... import engine as engines
from ...arrays.array import Array
from ...arrays.convert import asarray
from ...arrays.promotion import as_dtype
from ...display import Card, Source, folded, framed, note
from ...plurals import quantity
from .fused_kernel import FusedKernel, kernels_of
from .tracing import Trace, Traced

__all__ = ["Fused", "fuse"]

_INT, _FLOAT = np.dtype(np.int64), np.dtype(np.float32)


class _TracedCall(NamedTuple):
    """A function traced for one kind of arguments: its kernels, each with the indices of its results."""

    trace: Trace
    kernels: tuple[tuple[FusedKernel, list[int]], ...]
    results: int
    is_tuple: bool


class Fused:
    """A function whose elementwise ops run as one kernel; made by `fuse`.

    Attributes
    ----------
    source : str
        The Metal that the last call ran.
    card : Card
        The notebook's description of its first kernel, on the engine of the last call.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        target: Any = function
        while isinstance(target, functools.partial):
            target = target.func
        call = target if hasattr(target, "__code__") or not callable(target) else target.__call__
        code = getattr(call, "__code__", None)
        if code is None:
            raise TypeError(f"fuse: takes a function written in Python, to trace it; got {target!r}.")
        self._code = code
        self._name = getattr(target, "__name__", type(target).__name__)
        functools.update_wrapper(self, function, updated=("__dict__",) if hasattr(function, "__code__") else ())
        self._function = function
        self.__doc__ = target.__doc__
        self._signature = inspect.signature(function)
        kinds = {p.kind: name for name, p in self._signature.parameters.items()}
        self._rest, self._options = (kinds.get(k, "") for k in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD))
        self._traced_calls: dict[Any, _TracedCall] = {}
        self._last: _TracedCall | None = None
        self._engine: Any = None

    def __repr__(self) -> str:
        summary = f": {self._summary}" if self._summary else ""
        return f"<metalnb.fuse of {self._name}{self._arguments}{summary}>"

    @property
    def _arguments(self) -> inspect.Signature:
        """The function's parameters, without their annotations."""
        parameters = [p.replace(annotation=Parameter.empty) for p in self._signature.parameters.values()]
        return inspect.Signature(parameters)

    @property
    def source(self) -> str:
        """The Metal of the last call; a notebook shows it in colors.

        Raises
        ------
        ValueError
            Before the first call, since the kernels depend on the arguments.
        """
        return Source("\n".join(kernel.source for kernel in self._kernels()))

    @property
    def card(self) -> Card:
        """The notebook's description of the last call's first kernel.

        Raises
        ------
        ValueError
            Before the first call.
        """
        return self._cards()[0]

    def _cards(self) -> list[Card]:
        return [next(iter(k.program(self._engine).values())).card for k in self._kernels()]

    def _kernels(self) -> list[FusedKernel]:
        if self._last is None:
            raise ValueError(f"{self._name}: nothing is compiled before its first call. Pass arrays.")
        return [kernel for kernel, _ in self._last.kernels]

    @property
    def _summary(self) -> str:
        """A one-line summary such as '2 kernels on cpu'; empty before the first call."""
        if self._last is None:
            return ""
        count = len(self._last.kernels)
        return f"{quantity(count, 'kernel')} on {self._engine.name}"

    def _repr_html_(self) -> str | None:
        if self._last is None:
            return None
        call = f"<code><b>{escape(self._name)}</b>{escape(str(self._arguments))}</code>"
        summary = escape((self.__doc__ or "").strip().partition("\n")[0])
        head = f'<div class="metalnb-head">{call} <span class="metalnb-doc">{summary}</span></div>'
        notes = note("runs as", escape(self._summary))
        return framed(f'{head}<div class="metalnb-notes">{notes}</div>{folded(self.source)}')

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        html = self._repr_html_()
        return {"text/plain": repr(self)} | ({} if html is None else {"text/html": html})

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Run the kernels compiled for these argument types, tracing the function first if there are none."""
        if any(isinstance(a, Traced) for a in (*args, *options.values())):
            return self._function(*args, **options)  # part of another fused function
        bound = self._signature.bind(*args, **options)
        bound.apply_defaults()
        arguments, names = self._named(bound.arguments)
        key = (names, *[_key(value) for value in arguments.values()])
        try:
            traced = self._traced_calls.get(key)
        except TypeError as error:
            message = f"arguments must be arrays, numbers or hashable values: {error}."
            raise TypeError(f"{self._name}: {message}") from None
        if traced is None:
            traced = self._traced_calls[key] = self._trace(arguments, names)
        traced.trace.check_values(arguments)
        arguments = _move_to_engine(arguments)
        self._last, self._engine = traced, next(a.engine for a in arguments.values() if type(a) is Array)
        results: list[Any] = [None] * traced.results
        for kernel, positions in traced.kernels:
            for position, result in zip(positions, kernel(arguments), strict=True):
                results[position] = result
        return tuple(results) if traced.is_tuple else results[0]

    def _named(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return a call's arguments by name, and the names of those passed through `**options`."""
        if not self._rest and not self._options:
            return arguments, ()
        name, own = self._name, {**arguments}
        if own.pop(self._rest, ()):
            cure = "Give each argument a parameter of its own"
            raise TypeError(f"{name}: arguments in *{self._rest} are not fused. {cure}, or pass them in **options.")
        options = own.pop(self._options, {})
        for keyword in options:
            if keyword in own or not keyword.isidentifier():
                raise TypeError(f"{name}: {keyword!r} cannot name an argument in **{self._options}. Rename it.")
        return {**own, **options}, tuple(options)

    def _call_with(self, parts: dict[str, Any], names: tuple[str, ...]) -> Any:
        """Call the function with a part for each argument, as `_named` returns them."""
        arguments = {n: part for n, part in parts.items() if n not in names}
        if self._options:
            arguments[self._options] = {n: parts[n] for n in names}
        bound = inspect.BoundArguments(self._signature, arguments)
        return self._function(*bound.args, **bound.kwargs)

    def _trace(self, arguments: dict[str, Any], names: tuple[str, ...]) -> _TracedCall:
        """Call the function with placeholders, and compile its operations to kernels."""
        name = self._name
        trace = Trace(name, self._code)
        parts: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        numbers: dict[str, Any] = {}
        for argument, value in arguments.items():
            kind, dtype, weak = _kind(value)
            if kind == "value":
                parts[argument] = value
                continue
            (arrays if kind == "array" else numbers)[argument] = dtype
            part = parts[argument] = Traced(trace, f"in_{argument}", dtype, frozenset((argument,)), weak=weak)
            part.evaluate = operator.itemgetter(argument)
        returned = self._call_with(parts, names)
        is_tuple = isinstance(returned, tuple)
        results = list(returned) if is_tuple else [returned]
        for result in results:
            if not isinstance(result, Traced):
                message = "a fused function must return an array computed from its arguments, or a tuple of them"
                raise TypeError(f"{name}: {message}; got {type(result).__name__}.")
        return _TracedCall(trace, tuple(kernels_of(trace, results, arrays, numbers)), len(results), is_tuple)


def _kind(value: Any) -> tuple[str, Any, bool]:
    """Return how an argument is traced: as an array, a number that may change (weak or not), or a constant."""
    if isinstance(value, Array):
        return "array", value.dtype, False
    if isinstance(value, np.ndarray):
        return "array", as_dtype(value.dtype, "fuse"), False
    if isinstance(value, (bool, np.bool_)):
        return "value", value, False
    if isinstance(value, (int, float, np.float64)):
        return "number", _INT if isinstance(value, int) else _FLOAT, True
    if isinstance(value, (np.integer, np.floating)):
        return "number", as_dtype(value.dtype, "fuse"), False
    return "value", value, False


def _key(value: Any) -> Any:
    """Return what a trace depends on: an argument's kind, or a constant's value and type."""
    kind = _kind(value)
    return ("value", _typed(value)) if kind[0] == "value" else kind


def _typed(value: Any) -> Any:
    """Return a constant with its types: 2 equals 2.0 and True equals 1, but they promote differently."""
    if isinstance(value, (float, np.floating)):
        return type(value), float(value).hex()  # which distinguishes 0.0 from -0.0
    if isinstance(value, tuple):
        return type(value), tuple([_typed(part) for part in value])
    return type(value), frozenset(map(_typed, value)) if isinstance(value, frozenset) else value


def _move_to_engine(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a call's arguments, with NumPy arrays moved to the engine of the others."""
    if not any(isinstance(v, np.ndarray) for v in arguments.values()):
        return arguments
    device = next((v.device for v in arguments.values() if type(v) is Array), engines.current().name)
    return {n: asarray(v, device=device) if isinstance(v, np.ndarray) else v for n, v in arguments.items()}


def fuse(function: Callable[..., Any], /) -> Fused:
    """Fuse a function's elementwise ops into one kernel, which writes no intermediate arrays to memory.

    Parameters
    ----------
    function : callable
        A function of arrays and numbers. It may use operators, elementwise functions of metalnb or NumPy, ``where``,
        ``clip``, ``astype``, and at its end ``sum``, ``max``, ``min`` or ``mean`` with ``axis=-1``. It is called with
        placeholders once for each combination of its arguments' dtypes, so it must not branch on array elements;
        numbers may change from call to call.

    Returns
    -------
    Fused
        To be called like the function; it broadcasts and promotes dtypes as the separate ops do. Its ``source`` is the
        Metal source, its ``card`` the notebook's description of the kernel. Floats are computed in float32 and rounded
        once at the end, to the dtype that separate ops would return: float16 and bfloat16 are more exact, except where
        ``astype`` requests them. It takes at most 5 arrays; several results, in a tuple, share a kernel if they use the
        same arrays. A reduction of long rows takes a second dispatch, for its SIMD-groups' results. Gradients
        are not supported.

    Raises
    ------
    TypeError
        When called, if an operation cannot be fused; the message names its line. At once, if the function is not
        written in Python.
    OverflowError, ValueError
        When called, if a Python integer does not fit its dtype, or an integer is raised to a negative power, as with
        the separate ops.

    Examples
    --------
    >>> import metalnb as mnb
    >>> @mnb.fuse
    ... def blend(a, b, share):
    ...     return mnb.where(a > b, a * share, b * (1 - share))
    >>> blend(mnb.asarray([1.0, 2.0]), mnb.asarray([2.0, 1.0]), 0.25)
    array([1.5, 0.5], dtype=float32)
    """
    return Fused(function)
