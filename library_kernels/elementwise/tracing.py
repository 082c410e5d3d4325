"""What stands for an array while a function is traced: each op that it meets becomes a line of MSL."""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from ...arrays.implementations import implementations
from .elementwise_text import Formula

__all__ = ["Trace", "Traced"]

_TYPES = {"f": "float", "b": "bool"}


class Trace:
    """The lines of one function, and the functions of MSL that they call.

    Parameters
    ----------
    name : str
        The function's name, for errors.
    code : code object
        What is traced: the line that an error names is one of it.
    """

    def __init__(self, name: str, code: CodeType) -> None:
        self.name = name
        self.code = code
        self.lines: list[str] = []
        self.functions: dict[str, str] = {}

    def apply(self, formula: Formula, operands: tuple[Any, ...], values: tuple[bytearray, ...]) -> Traced:
        """Write the line of one op."""
        kinds = [self.kind(formula.name, o) for o in operands]
        own = [k for k, n in zip(kinds, formula.operands, strict=True) if n not in formula.masks]
        loop = "b" if set(own) == {"b"} and "b" in formula.kinds else "f"
        if loop not in formula.kinds:
            raise TypeError(f"{self.name}: {formula.name} is of integers, which are not fused{self.where()}.")
        wanted = ["b" if n in formula.masks else loop for n in formula.operands]
        given = [self.written(o, k) for o, k in zip(operands, wanted, strict=True)]
        given += [literal(struct.unpack("<f", v)[0]) for v in values]
        result = "b" if formula.result == "bool" else loop
        called = self._function(formula, wanted, loop, result)
        number = f"t{len(self.lines)}"
        self.lines.append(f"const {_TYPES[result]} {number} = {called}({', '.join(given)});")
        needs = frozenset[str]().union(*(o.needs for o in operands if isinstance(o, Traced)))
        return Traced(self, number, result, needs)

    def kind(self, who: str, operand: Any) -> str:
        """Return ``f`` or ``b`` for an operand."""
        if isinstance(operand, Traced):
            if operand.trace is not self:
                raise TypeError(f"{self.name}: an array of another function is used{self.where()}.")
            return operand.kind
        if isinstance(operand, (bool, np.bool_)):
            return "b"
        if isinstance(operand, (int, float, np.integer, np.floating)):
            return "f"
        raise TypeError(f"{self.name}: {who} is given {type(operand).__name__}, which is no argument of the fused "
                        f"function{self.where()}. Pass it as one.")  # fmt: skip

    def written(self, operand: Any, kind: str) -> str:
        """Write an operand as one of a kind."""
        if isinstance(operand, Traced):
            return operand.text if operand.kind == kind else f"{_TYPES[kind]}({operand.text})"
        return str(bool(operand)).lower() if kind == "b" else literal(float(operand))

    def _function(self, formula: Formula, wanted: list[str], loop: str, result: str) -> str:
        """Define the function of an op; of one op there may be two, for bool and for floats."""
        expression = formula.groups[formula.group(loop)]
        if "<L>" in expression:
            message = f"{formula.name} depends on the dtype in memory, and is not fused{self.where()}."
            raise TypeError(f"{self.name}: {message}")
        parameters = [f"{_TYPES[k]} {n}" for k, n in zip(wanted, formula.operands, strict=True)]
        parameters += [f"float {n}" for n in formula.parameters]
        for number in range(100):  # two ops may have one name: a user's own
            called = f"{formula.name}_{loop}{number or ''}_"
            text = (f"inline {_TYPES[result]} {called}({', '.join(parameters)}) "
                    f"{{ using T = {_TYPES[loop]}; return {_TYPES[result]}({expression}); }}")  # fmt: skip
            text = f"{formula.preamble}\n{text}".strip()
            if self.functions.setdefault(called, text) == text:
                return called
        raise AssertionError("a hundred ops of one name")

    def where(self) -> str:
        """Name the line of the function that is being traced."""
        frame: Any = sys._getframe(1)  # noqa: SLF001  (as inspect.currentframe, which types call optional)
        while frame is not None and frame.f_code is not self.code:
            frame = frame.f_back
        return "" if frame is None else f" (line {frame.f_lineno} of {self.code.co_filename})"


def literal(value: float) -> str:
    """Write a number as MSL does."""
    if math.isnan(value):
        return "NAN"
    single = float(np.float32(value))
    if math.isinf(single):
        return "INFINITY" if single > 0 else "-INFINITY"
    return f"{np.float32(value)!s}f" if any(c in str(np.float32(value)) for c in ".e") else f"{np.float32(value)!s}.0f"


def _op(name: str, *, turned: bool = False) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        return implementations[name](other, self) if turned else implementations[name](self, other)

    return method


def _one(name: str) -> Callable[..., Any]:
    def method(self: Any) -> Any:
        return implementations[name](self)

    return method


class Traced:
    """An array of the traced function: its name in the MSL, its kind, ``f`` or ``b``, the arguments it is made of."""

    __slots__ = ("kind", "needs", "text", "trace")

    def __init__(self, trace: Trace, text: str, kind: str, needs: frozenset[str]) -> None:
        self.needs = needs
        self.trace = trace
        self.text = text
        self.kind = kind

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
        where = self.trace.where()
        raise AttributeError(f"{self.trace.name}: a fused array has no .{name}{where}: only elementwise ops are fused.")

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
    __lt__, __le__, __gt__, __ge__ = _op("less"), _op("less_equal"), _op("greater"), _op("greater_equal")
    __eq__, __ne__ = _op("equal"), _op("not_equal")
    __neg__, __pos__, __abs__, __invert__ = _one("negative"), _one("positive"), _one("abs"), _one("bitwise_invert")
