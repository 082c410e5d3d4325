"""The methods of an array that are ops: each calls the op of the same name, with NumPy's calling conventions.

Type checkers read ``op_methods.pyi``, which `make docs` writes from the signatures of the ops.
"""

from __future__ import annotations

from typing import Any

from .core import Core
from .implementations import implementations

__all__ = ["OpMethods"]


def _name_method(method: Any, name: str, op: str) -> Any:
    method.__name__, method.__qualname__, method.op = name, f"Array.{name}", op
    method.__doc__ = f"As `metalnb.{op}` of this array."
    return method


def _reduction_method(op: str, name: str | None = None) -> Any:
    """Make the method of a reduction: NumPy accepts the axis by position, the array API only by name."""

    def method(self: Any, axis: Any = None, **options: Any) -> Any:
        return implementations[op](self, axis=axis, **options)

    return _name_method(method, name or op, op)


def _variance_method(op: str) -> Any:
    """Make the method of a variance: NumPy's ``ddof`` is the array API's ``correction``."""

    def method(
        self: Any, axis: Any = None, *, correction: float = 0.0, ddof: float | None = None, **options: Any
    ) -> Any:
        return implementations[op](self, axis=axis, correction=correction if ddof is None else ddof, **options)

    return _name_method(method, op, op)


def _op_method(op: str) -> Any:
    """Make a method from an op that takes this array first."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return implementations[op](self, *args, **options)

    return _name_method(method, op, op)


class OpMethods(Core):
    """The methods of an `Array` that only call an op."""

    __slots__ = ()

    sum, prod, mean = _reduction_method("sum"), _reduction_method("prod"), _reduction_method("mean")
    max, min = _reduction_method("max"), _reduction_method("min")
    std, var = _variance_method("std"), _variance_method("var")
    any, all = _reduction_method("any"), _reduction_method("all")
    argmax, argmin = _reduction_method("argmax"), _reduction_method("argmin")
    cumsum, cumprod = _reduction_method("cumulative_sum", "cumsum"), _reduction_method("cumulative_prod", "cumprod")
    astype, repeat, swapaxes = _op_method("astype"), _op_method("repeat"), _op_method("swapaxes")
    clip, take, conj = _op_method("clip"), _op_method("take"), _op_method("conj")
    nonzero, searchsorted, argsort = _op_method("nonzero"), _op_method("searchsorted"), _op_method("argsort")
    dot, squeeze = _op_method("dot"), _op_method("squeeze")
