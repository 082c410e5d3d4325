"""The methods of an array that are ops: each calls the op of the same name, with NumPy's calling conventions.

Type checkers read ``op_methods.pyi``, which `make docs` writes from the signatures of the ops.
"""

from __future__ import annotations

from typing import Any

from .core import Core
from .implementations import implementations

__all__ = ["OpMethods"]


def _named(method: Any, name: str, op: str) -> Any:
    method.__name__, method.__qualname__, method.op = name, f"Array.{name}", op
    method.__doc__ = f"As `metalnb.{op}` of this array."
    return method


def _over(op: str, name: str | None = None) -> Any:
    """Make the method of a reduction: NumPy accepts the axis by position, the array API only by name."""

    def method(self: Any, axis: Any = None, **options: Any) -> Any:
        return implementations[op](self, axis=axis, **options)

    return _named(method, name or op, op)


def _spread(op: str) -> Any:
    """Make the method of a variance: NumPy's ``ddof`` is the array API's ``correction``."""

    def method(
        self: Any, axis: Any = None, *, correction: float = 0.0, ddof: float | None = None, **options: Any
    ) -> Any:
        return implementations[op](self, axis=axis, correction=correction if ddof is None else ddof, **options)

    return _named(method, op, op)


def _as(op: str) -> Any:
    """Make a method from an op that takes this array first."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return implementations[op](self, *args, **options)

    return _named(method, op, op)


class OpMethods(Core):
    """The methods of an `Array` that only call an op."""

    __slots__ = ()

    sum, prod, mean = _over("sum"), _over("prod"), _over("mean")
    max, min = _over("max"), _over("min")
    std, var = _spread("std"), _spread("var")
    any, all = _over("any"), _over("all")
    argmax, argmin = _over("argmax"), _over("argmin")
    cumsum, cumprod = _over("cumulative_sum", "cumsum"), _over("cumulative_prod", "cumprod")
    astype, repeat, swapaxes = _as("astype"), _as("repeat"), _as("swapaxes")
    clip, take, conj = _as("clip"), _as("take"), _as("conj")
    nonzero, searchsorted, argsort = _as("nonzero"), _as("searchsorted"), _as("argsort")
    dot, squeeze = _as("dot"), _as("squeeze")
