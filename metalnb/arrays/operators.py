"""Python's operators on arrays: each is the library op named here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..errors import ArgumentError
from .core import Core
from .implementations import implementations

__all__ = ["Operators"]

A = TypeVar("A", bound="Operators")


def _unary(name: str) -> Callable[[A], A]:
    def operator(self: A) -> A:
        result: A = implementations[name](self)
        return result

    return operator


def _binary(name: str) -> Callable[[A, Any], A]:
    def operator(self: A, other: Any) -> Any:
        if isinstance(other, Operators) or _is_operand(other):
            return implementations[name](self, other)
        return NotImplemented

    return operator


def _reflected_operator(name: str) -> Callable[[A, Any], A]:
    def operator(self: A, other: Any) -> Any:
        return implementations[name](other, self) if _is_operand(other) else NotImplemented

    return operator


def _in_place(name: str) -> Any:
    def operator(self: Any, other: Any) -> Any:
        return implementations[name](self, other, out=self) if _is_operand(other) else NotImplemented

    return operator


def _is_operand(other: Any) -> bool:
    return isinstance(other, _KNOWN)


def _matmul_in_place(self: Any, other: Any) -> Any:
    result = self @ other
    if result.shape != self.shape:
        raise ArgumentError(f"matmul: x @ y has shape {result.shape}, x has {self.shape}. Use x = x @ y.")
    if result.dtype != self.dtype and not np.can_cast(result.dtype, self.dtype, "same_kind"):
        message = f"matmul: x @ y, of {result.dtype}, does not fit into x, of {self.dtype}. Use x = x @ y."
        raise TypeError(message)
    self[...] = result
    return self


class Operators(Core):
    """The operators of an `Array`, such as ``+``. Names: Python array API standard, "Operators"."""

    __slots__ = ()

    __pos__ = _unary("positive")
    __neg__ = _unary("negative")
    __abs__ = _unary("abs")
    __invert__ = _unary("bitwise_invert")

    __add__, __radd__, __iadd__ = _binary("add"), _reflected_operator("add"), _in_place("add")
    __sub__, __rsub__, __isub__ = _binary("subtract"), _reflected_operator("subtract"), _in_place("subtract")
    __mul__, __rmul__, __imul__ = _binary("multiply"), _reflected_operator("multiply"), _in_place("multiply")
    __truediv__, __rtruediv__, __itruediv__ = _binary("divide"), _reflected_operator("divide"), _in_place("divide")
    __floordiv__, __rfloordiv__ = _binary("floor_divide"), _reflected_operator("floor_divide")
    __ifloordiv__ = _in_place("floor_divide")
    __mod__, __rmod__, __imod__ = _binary("remainder"), _reflected_operator("remainder"), _in_place("remainder")
    __pow__, __rpow__, __ipow__ = _binary("pow"), _reflected_operator("pow"), _in_place("pow")
    __and__, __rand__, __iand__ = _binary("bitwise_and"), _reflected_operator("bitwise_and"), _in_place("bitwise_and")
    __or__, __ror__, __ior__ = _binary("bitwise_or"), _reflected_operator("bitwise_or"), _in_place("bitwise_or")
    __xor__, __rxor__, __ixor__ = _binary("bitwise_xor"), _reflected_operator("bitwise_xor"), _in_place("bitwise_xor")
    __lshift__, __rlshift__ = _binary("bitwise_left_shift"), _reflected_operator("bitwise_left_shift")
    __rshift__, __rrshift__ = _binary("bitwise_right_shift"), _reflected_operator("bitwise_right_shift")
    __ilshift__, __irshift__ = _in_place("bitwise_left_shift"), _in_place("bitwise_right_shift")
    __matmul__, __rmatmul__, __imatmul__ = _binary("matmul"), _reflected_operator("matmul"), _matmul_in_place

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")
    # Arrays of bool, as in NumPy.
    __eq__, __ne__ = _binary("equal"), _binary("not_equal")  # type: ignore[assignment]


_KNOWN = (Operators, bool, int, float, np.ndarray, np.generic)
