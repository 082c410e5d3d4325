"""Placeholders for arrays while a function is traced: each op applied to a placeholder becomes a line of MSL."""

from __future__ import annotations

import math
import operator
import struct
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from ...arrays.promotion import DTYPES, as_dtype, floating_dtype, is_float, kind_of, promote, promote_weak
from ...engine.unit import literal as integer_literal
from ..elementwise.elementwise_text import Formula
from .traced_operators import TracedOperators

__all__ = ["Reduced", "Trace", "Traced", "value_type"]

DType = np.dtype[Any]
Evaluate = Callable[[dict[str, Any]], Any]

_BOOL, _INT, _FLOAT = np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.float32)
_AT_THE_END = ("sum", "max", "min", "mean")
# The operations on Python integers that tracing evaluates in Python, since a separate op would see only the result.
_OF_INTEGERS: dict[str, Callable[..., Any]] = {
    "sum_of(x, y)": operator.add, "difference_of(x, y)": operator.sub, "product_of(x, y)": operator.mul,
    "floor_quotient(x, y)": operator.floordiv, "floor_remainder(x, y)": operator.mod, "negated(x)": operator.neg,
    "x < T(0) ? negated(x) : x": abs, "x": operator.pos, "integer_power(x, y)": operator.pow, "T(~x)": operator.invert,
    "T(x & y)": operator.and_, "T(x | y)": operator.or_, "T(x ^ y)": operator.xor, "maximum_of(x, y)": max,
    "shifted_left(x, y)": operator.lshift, "shifted_right(x, y)": operator.rshift, "minimum_of(x, y)": min,
}  # fmt: skip


def value_type(dtype: DType) -> str:
    """Return the MSL type in which elements of a dtype are computed."""
    return "float" if is_float(dtype) else DTYPES[dtype.name]


class Trace:
    """The MSL lines of a traced function, and the MSL functions that these lines call.

    Parameters
    ----------
    name : str
        The function's name, for errors.
    code : code object
        The traced code; errors name its lines.

    Attributes
    ----------
    checks : dict
        For each op or type and operand: how to find the operand among a call's arguments, and how to check it.
    """

    def __init__(self, name: str, code: CodeType) -> None:
        self.name = name
        self.code = code
        self.lines: list[str] = []
        self.functions: dict[str, str] = {}
        self.checks: dict[tuple[str, str], tuple[Evaluate, Callable[[Any], None]]] = {}

    def apply(self, formula: Formula, operands: tuple[Any, ...], values: tuple[bytearray, ...]) -> Traced:
        """Append the line of one op."""
        for operand in operands:
            self.check(formula.name, operand)
        numbers = [o for o, n in zip(operands, formula.operands, strict=True) if n not in formula.masks]
        loop = self._loop(formula, numbers)
        types = [_BOOL if n in formula.masks else loop for n in formula.operands]
        for operand, name in zip(operands, formula.operands, strict=True):
            if name in formula.masks and isinstance(operand, Traced) and operand.dtype != _BOOL:
                raise TypeError(f"{self.name}: {formula.name}: {name} must be bool; got {operand.dtype}"
                                f"{self.at_line()}. Pass {name} != 0.")  # fmt: skip
        arguments = [self.operand_text(o, value_type(d)) for o, d in zip(operands, types, strict=True)]
        arguments += [literal(struct.unpack("<f", v)[0]) for v in values]
        result = _BOOL if formula.result == "bool" else loop
        function = self._function(formula, types, loop, result)
        is_weak = result != _BOOL and all(map(_is_weak, numbers))
        traced = self.line(f"{function}({', '.join(arguments)})", result, operands, weak=is_weak)
        if is_weak and result == _INT:
            traced.evaluate = _evaluation(formula.groups[formula.group("i")], operands)
        return traced

    def line(self, text: str, dtype: DType, operands: tuple[Any, ...], *, weak: bool = False) -> Traced:
        """Append a line and return the placeholder of its value."""
        number = f"t{len(self.lines)}"
        self.lines.append(f"const {value_type(dtype)} {number} = {text};")
        needs = frozenset[str]().union(*(o.needs for o in operands if isinstance(o, Traced)))
        return Traced(self, number, dtype, needs, weak=weak)

    def check(self, caller: str, operand: Any) -> None:
        """Refuse a value that cannot be an operand.

        Raises
        ------
        TypeError
            If the value is the result of a reduction, belongs to another fused function, or is an array that is not an
            argument of this function.
        """
        if isinstance(operand, Reduced):
            raise TypeError(f"{self.name}: {caller} cannot use the result of {operand.reduction}, which a fused "
                            f"function can only return{self.at_line()}. Return it, and continue outside.")  # fmt: skip
        if isinstance(operand, Traced):
            if operand.trace is not self:
                raise TypeError(f"{self.name}: an array from another fused function is used{self.at_line()}.")
        elif not isinstance(operand, (bool, int, float, np.bool_, np.integer, np.floating)):
            raise TypeError(f"{self.name}: {caller} got {type(operand).__name__}, which is not an argument of the "
                            f"fused function{self.at_line()}. Pass it as one.")  # fmt: skip

    def _loop(self, formula: Formula, operands: list[Any]) -> DType:
        """Return the dtype to compute in, which is that of the op on arrays."""
        strong = [_dtype_of(o) for o in operands if not _is_weak(o)]
        dtype = strong[0] if strong else promote_weak(_sample(operands[0]), _BOOL)
        for other in strong[1:]:
            dtype = promote(dtype, other, formula.name)
        for o in operands:
            if _is_weak(o):
                dtype = promote_weak(_sample(o), dtype)
        if kind_of(dtype) in formula.kinds:
            return dtype
        if formula.kinds == "f":
            return floating_dtype(dtype)
        kinds = {"b": "bool", "i": "integers", "u": "integers", "f": "floats"}
        takes = " and ".join(dict.fromkeys(kinds[k] for k in formula.kinds))
        raise TypeError(f"{self.name}: {formula.name} takes {takes}; got {dtype}{self.at_line()}. Use x.astype(…).")

    def operand_text(self, operand: Any, type_name: str) -> str:
        """Return an operand as an MSL expression of a type."""
        if isinstance(operand, Traced):
            if operand.weak and operand.dtype == _INT:
                self._check_range(operand, type_name)
            return operand.text if value_type(operand.dtype) == type_name else f"{type_name}({operand.text})"
        if type_name == "bool":
            return str(bool(operand)).lower()
        if type_name == "float":
            return literal(float(operand))
        info = _range(type_name)
        if not info.min <= operand <= info.max:
            raise OverflowError(f"{self.name}: {info.dtype} cannot hold {operand}{self.at_line()}.")
        return f"{type_name}({integer_literal('ulong' if operand > 2**63 - 1 else 'long', operand)})"

    def _check_range(self, operand: Traced, type_name: str) -> None:
        """Arrange for each call to refuse a Python integer that does not fit its type, as separate ops do."""
        info, where = _range("long" if type_name == "float" else type_name), self.at_line()

        def check(number: int) -> None:
            if not info.min <= number <= info.max:
                cure = "a float" if type_name == "float" else f"mnb.asarray({number}) for a wider result"
                raise OverflowError(f"{self.name}: {info.dtype} cannot hold {number}{where}. Pass {cure}.")

        if operand.evaluate is not None:
            self.checks[type_name, operand.text] = operand.evaluate, check

    def check_power(self, caller: str, power: Traced, check: Callable[[Any], None]) -> None:
        """Arrange for each call to check a power of integers.

        Raises
        ------
        TypeError
            If the exponent is neither an argument nor computed from Python integers.
        """
        if power.evaluate is None:
            rule = "of integers is fused only if the power is an argument, since it must not be negative"
            cure = "Pass it as one, or use x.astype(mnb.float32)."
            raise TypeError(f"{self.name}: {caller} {rule}{self.at_line()}. {cure}")
        self.checks[caller, power.text] = power.evaluate, check

    def check_values(self, arguments: dict[str, Any]) -> None:
        """Check a call's arguments."""
        for evaluate, check in self.checks.values():
            check(evaluate(arguments))

    def _function(self, formula: Formula, types: list[DType], loop: DType, result: DType) -> str:
        """Define the MSL function of an op for the types that it computes in."""
        expression = formula.groups[formula.group(kind_of(loop))]
        if "<L>" in expression:
            message = f"{formula.name} cannot be fused: it depends on the dtype in memory{self.at_line()}."
            raise TypeError(f"{self.name}: {message}")
        parameters = [f"{value_type(d)} {n}" for d, n in zip(types, formula.operands, strict=True)]
        parameters += [f"float {n}" for n in formula.parameters]
        compute_type, result_type = value_type(loop), value_type(result)
        tag = compute_type[0] if compute_type in {"float", "bool"} else compute_type
        for number in range(100):  # an op of the user may have the name of another op
            name = f"{formula.name}_{tag}{number or ''}_"
            text = (f"inline {result_type} {name}({', '.join(parameters)}) "
                    f"{{ using T = {compute_type}; return {result_type}({expression}); }}")  # fmt: skip
            text = f"{formula.preamble}\n{text}".strip()
            if self.functions.setdefault(name, text) == text:
                return name
        raise AssertionError("a hundred ops with one name")

    def at_line(self) -> str:
        """Return text that states the current line of the traced function."""
        frame: Any = sys._getframe(1)  # noqa: SLF001  (like inspect.currentframe, which is optional by its type)
        while frame is not None and frame.f_code is not self.code:
            frame = frame.f_back
        return "" if frame is None else f" (line {frame.f_lineno} of {self.code.co_filename})"


class Traced(TracedOperators):
    """An array of the traced function.

    Attributes
    ----------
    trace : Trace
    text : str
        The name of the value in the MSL.
    dtype : numpy.dtype
        The dtype that separate ops would return.
    needs : frozenset of str
        The arguments that the value depends on.
    weak : bool
        Whether it is a Python number; only its kind matters in promotion.
    evaluate : callable, optional
        Computes the value from a call's arguments; None if only the kernel can.
    """

    __slots__ = ("dtype", "evaluate", "needs", "text", "trace", "weak")

    def __init__(self, trace: Trace, text: str, dtype: DType, needs: frozenset[str], *, weak: bool = False) -> None:
        self.needs = needs
        self.trace = trace
        self.text = text
        self.dtype = dtype
        self.weak = weak
        self.evaluate: Evaluate | None = None

    def astype(self, dtype: Any, *, copy: bool = True) -> Traced:
        """Convert to a dtype. 16-bit floats are rounded here, as a separate op would round them."""
        del copy  # a placeholder has no memory to copy
        trace: Trace = self.trace
        trace.check("astype", self)
        target = as_dtype(dtype, f"{trace.name}: astype")
        if target.name == "float16":
            text = f"float(half({self.text}))"
        elif target.name == "bfloat16":
            text = f"storage<bfloat16>::load(storage<bfloat16>::store({self.text}))"
        elif target == _BOOL:
            text = f"{self.text} != {value_type(self.dtype)}(0)"
        else:
            text = f"{value_type(target)}({self.text})"
        return trace.line(text, target, (self,))

    def __metal_traced__(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Trace an op that is not elementwise; return NotImplemented if the op is composed of elementwise ops."""
        if name == "astype":
            return self.astype(*args[1:], **options)
        unsupported = ", ".join(sorted({*options} - {"axis", "keepdims"}))
        if name in _AT_THE_END and len(args) < 3 and unsupported:
            raise TypeError(f"{self.trace.name}: {name} cannot be fused with {unsupported}={self.trace.at_line()}.")
        if name in _AT_THE_END and len(args) < 3:
            return self.reduce(name, *args[1:], **options)
        return NotImplemented

    def reduce(self, reduction: str, axis: Any = None, *, keepdims: bool = False) -> Reduced:
        """Reduce the last axis. The traced function can do nothing with the result but return it."""
        trace = self.trace
        trace.check(reduction, self)
        if type(axis) is not int or axis != -1:
            raise TypeError(f"{trace.name}: {reduction} is fused only over the last axis; got axis={axis!r}"
                            f"{trace.at_line()}. Pass axis=-1.")  # fmt: skip
        return Reduced(self, reduction, keepdims=bool(keepdims))

    def sum(self, axis: Any = None, *, keepdims: bool = False) -> Reduced:
        """Return the sums over the last axis."""
        return self.reduce("sum", axis, keepdims=keepdims)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> Reduced:
        """Return the largest elements along the last axis."""
        return self.reduce("max", axis, keepdims=keepdims)

    def min(self, axis: Any = None, *, keepdims: bool = False) -> Reduced:
        """Return the smallest elements along the last axis."""
        return self.reduce("min", axis, keepdims=keepdims)

    def mean(self, axis: Any = None, *, keepdims: bool = False) -> Reduced:
        """Return the means over the last axis."""
        return self.reduce("mean", axis, keepdims=keepdims)


class Reduced(Traced):
    """The reduction that ends a fused function: one value for each row of a traced array.

    Attributes
    ----------
    reduction : {"sum", "max", "min", "mean"}
    keepdims : bool
    """

    __slots__ = ("keepdims", "reduction")

    def __init__(self, traced: Traced, reduction: str, *, keepdims: bool) -> None:
        super().__init__(traced.trace, traced.text, traced.dtype, traced.needs)
        self.reduction = reduction
        self.keepdims = keepdims


def _is_weak(operand: Any) -> bool:
    if isinstance(operand, Traced):
        return operand.weak
    return isinstance(operand, (bool, int, float, np.bool_))


def _evaluation(expression: str, operands: tuple[Any, ...]) -> Evaluate | None:
    """Return the function that computes an op's value from a call's arguments, or None if Python cannot compute it."""
    function = _OF_INTEGERS.get(expression)
    if function is None or any(isinstance(o, Traced) and o.evaluate is None for o in operands):
        return None
    return lambda arguments: function(
        *(o.evaluate(arguments) if isinstance(o, Traced) and o.evaluate else int(o) for o in operands)
    )


def _range(type_name: str) -> np.iinfo[Any]:
    return np.iinfo(next(name for name, word in DTYPES.items() if word == type_name))


def _dtype_of(operand: Any) -> DType:
    return operand.dtype if isinstance(operand, Traced) else as_dtype(operand.dtype, "fuse")


def _sample(operand: Any) -> Any:
    """Return a Python number of the same kind as a weak operand."""
    if isinstance(operand, Traced):
        return {"b": False, "i": 0}.get(kind_of(operand.dtype), 0.0)
    return bool(operand) if isinstance(operand, np.bool_) else operand


def literal(value: float) -> str:
    """Return a number as an MSL literal."""
    if math.isnan(value):
        return "NAN"
    single = float(np.float32(value))
    if math.isinf(single):
        return "INFINITY" if single > 0 else "-INFINITY"
    return f"{np.float32(value)!s}f" if any(c in str(np.float32(value)) for c in ".e") else f"{np.float32(value)!s}.0f"
