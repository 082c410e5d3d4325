"""The operators of traced arrays (placeholders while a function is traced), and errors for methods that they lack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...arrays.implementations import implementations

__all__ = ["TracedOperators"]


def _binary(name: str, *, reflected: bool = False) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        return implementations[name](other, self) if reflected else implementations[name](self, other)

    return method


def _unary(name: str) -> Callable[..., Any]:
    def method(self: Any) -> Any:
        return implementations[name](self)

    return method


class TracedOperators:
    """A placeholder for an array. Each operator calls the library op named here."""

    __slots__ = ()

    trace: Any

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return implementations["ufunc"](ufunc, method, inputs, options)

    def _unknown_value_error(self, what: str) -> TypeError:
        return TypeError(f"{self.trace.name}: {what} of an array is not known while it is fused{self.trace.at_line()}. "
                         "Use mnb.where(condition, x, y), or pass the number as an argument.")  # fmt: skip

    def __bool__(self) -> bool:
        raise self._unknown_value_error("a condition")

    def __float__(self) -> float:
        raise self._unknown_value_error("the value")

    def __int__(self) -> int:
        raise self._unknown_value_error("the value")

    __index__ = __int__

    def __len__(self) -> int:
        raise self._unknown_value_error("the length")

    def __iter__(self) -> Any:
        raise self._unknown_value_error("the length")

    def __getitem__(self, key: Any) -> Any:
        raise TypeError(f"{self.trace.name}: x[…] is not elementwise, and not fused{self.trace.at_line()}. "
                        "Index before the call, or after it.")  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        if name == "trace":  # looked up while a placeholder is being constructed
            raise AttributeError(name)
        where = self.trace.at_line()
        rule = "elementwise ops are fused, astype, and at the end sum, max, min and mean over the last axis"
        raise AttributeError(f"{self.trace.name}: a fused array has no .{name}{where}: {rule}.")

    __hash__ = None  # type: ignore[assignment]  # == compares element by element

    __add__, __radd__ = _binary("add"), _binary("add", reflected=True)
    __sub__, __rsub__ = _binary("subtract"), _binary("subtract", reflected=True)
    __mul__, __rmul__ = _binary("multiply"), _binary("multiply", reflected=True)
    __truediv__, __rtruediv__ = _binary("divide"), _binary("divide", reflected=True)
    __floordiv__, __rfloordiv__ = _binary("floor_divide"), _binary("floor_divide", reflected=True)
    __mod__, __rmod__ = _binary("remainder"), _binary("remainder", reflected=True)
    __pow__, __rpow__ = _binary("pow"), _binary("pow", reflected=True)
    __and__, __rand__ = _binary("bitwise_and"), _binary("bitwise_and", reflected=True)
    __or__, __ror__ = _binary("bitwise_or"), _binary("bitwise_or", reflected=True)
    __xor__, __rxor__ = _binary("bitwise_xor"), _binary("bitwise_xor", reflected=True)
    __lshift__, __rlshift__ = _binary("bitwise_left_shift"), _binary("bitwise_left_shift", reflected=True)
    __rshift__, __rrshift__ = _binary("bitwise_right_shift"), _binary("bitwise_right_shift", reflected=True)
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")
    __eq__, __ne__ = _binary("equal"), _binary("not_equal")
    __neg__, __pos__ = _unary("negative"), _unary("positive")
    __abs__, __invert__ = _unary("abs"), _unary("bitwise_invert")
