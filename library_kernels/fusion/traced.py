"""Traced arrays, the placeholders while a function is traced: their operators, and errors for what they lack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...arrays.implementations import implementations

__all__ = ["TracedOperators"]


def _op(name: str, *, turned: bool = False) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        return implementations[name](other, self) if turned else implementations[name](self, other)

    return method


def _one(name: str) -> Callable[..., Any]:
    def method(self: Any) -> Any:
        return implementations[name](self)

    return method


class TracedOperators:
    """An array's placeholder: each operator is the library op named here."""

    __slots__ = ()

    trace: Any

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return implementations["ufunc"](ufunc, method, inputs, options)

    def _decided(self, what: str) -> TypeError:
        return TypeError(f"{self.trace.name}: {what} of an array is not known while it is fused{self.trace.where()}. "
                         "Use mnb.where(condition, x, y), or pass the number as an argument.")  # fmt: skip

    def __bool__(self) -> bool:
        raise self._decided("a condition")

    def __float__(self) -> float:
        raise self._decided("the value")

    def __int__(self) -> int:
        raise self._decided("the value")

    __index__ = __int__

    def __len__(self) -> int:
        raise self._decided("the length")

    def __iter__(self) -> Any:
        raise self._decided("the length")

    def __getitem__(self, key: Any) -> Any:
        raise TypeError(f"{self.trace.name}: x[…] is not elementwise, and not fused{self.trace.where()}. "
                        "Index before the call, or after it.")  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        if name == "trace":  # looked up while a placeholder is being constructed
            raise AttributeError(name)
        where = self.trace.where()
        fused = "elementwise ops are fused, astype, and at the end sum, max, min and mean over the last axis"
        raise AttributeError(f"{self.trace.name}: a fused array has no .{name}{where}: {fused}.")

    __hash__ = None  # type: ignore[assignment]  # == compares element by element

    __add__, __radd__ = _op("add"), _op("add", turned=True)
    __sub__, __rsub__ = _op("subtract"), _op("subtract", turned=True)
    __mul__, __rmul__ = _op("multiply"), _op("multiply", turned=True)
    __truediv__, __rtruediv__ = _op("divide"), _op("divide", turned=True)
    __floordiv__, __rfloordiv__ = _op("floor_divide"), _op("floor_divide", turned=True)
    __mod__, __rmod__ = _op("remainder"), _op("remainder", turned=True)
    __pow__, __rpow__ = _op("pow"), _op("pow", turned=True)
    __and__, __rand__ = _op("bitwise_and"), _op("bitwise_and", turned=True)
    __or__, __ror__ = _op("bitwise_or"), _op("bitwise_or", turned=True)
    __xor__, __rxor__ = _op("bitwise_xor"), _op("bitwise_xor", turned=True)
    __lshift__, __rlshift__ = _op("bitwise_left_shift"), _op("bitwise_left_shift", turned=True)
    __rshift__, __rrshift__ = _op("bitwise_right_shift"), _op("bitwise_right_shift", turned=True)
    __lt__, __le__, __gt__, __ge__ = _op("less"), _op("less_equal"), _op("greater"), _op("greater_equal")
    __eq__, __ne__ = _op("equal"), _op("not_equal")
    __neg__, __pos__, __abs__, __invert__ = _one("negative"), _one("positive"), _one("abs"), _one("bitwise_invert")
