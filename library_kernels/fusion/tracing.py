"""The placeholder of an array while a function is traced: each op applied to it becomes a line of MSL."""

from __future__ import annotations

import math
import struct
import sys
from types import CodeType
from typing import Any

import numpy as np

from ...arrays.promotion import DTYPES, as_dtype, floating_dtype, is_float, kind_of, promote, promote_weak
from ...engine.unit import literal as integer_literal
from ..elementwise.elementwise_text import Formula
from .traced import TracedOperators

__all__ = ["Reduced", "Trace", "Traced", "value_type"]

DType = np.dtype[Any]

_BOOL, _INT, _FLOAT = np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.float32)
_AT_THE_END = ("sum", "max", "min", "mean")


def value_type(dtype: DType) -> str:
    """Return the MSL type in which elements of a dtype are computed."""
    return "float" if is_float(dtype) else DTYPES[dtype.name]


class Trace:
    """The lines of a function, and the MSL functions that they call.

    Parameters
    ----------
    name : str
        The function's name, for errors.
    code : code object
        The traced code, whose lines errors name.
    """

    def __init__(self, name: str, code: CodeType) -> None:
        self.name = name
        self.code = code
        self.lines: list[str] = []
        self.functions: dict[str, str] = {}

    def apply(self, formula: Formula, operands: tuple[Any, ...], values: tuple[bytearray, ...]) -> Traced:
        """Write the line of one op."""
        for operand in operands:
            self.check(formula.name, operand)
        own = [o for o, n in zip(operands, formula.operands, strict=True) if n not in formula.masks]
        loop = self._loop(formula, own)
        wanted = [_BOOL if n in formula.masks else loop for n in formula.operands]
        for operand, name in zip(operands, formula.operands, strict=True):
            if name in formula.masks and isinstance(operand, Traced) and operand.dtype != _BOOL:
                raise TypeError(f"{self.name}: {formula.name}: {name} must be bool; got {operand.dtype}{self.where()}. "
                                f"Pass {name} != 0.")  # fmt: skip
        given = [self.written(o, value_type(d)) for o, d in zip(operands, wanted, strict=True)]
        given += [literal(struct.unpack("<f", v)[0]) for v in values]
        result = _BOOL if formula.result == "bool" else loop
        called = self._function(formula, wanted, loop, result)
        loose = result != _BOOL and all(map(_is_weak, own))
        return self.line(f"{called}({', '.join(given)})", result, operands, weak=loose)

    def line(self, text: str, dtype: DType, operands: tuple[Any, ...], *, weak: bool = False) -> Traced:
        """Add a line, and return the placeholder of its value."""
        number = f"t{len(self.lines)}"
        self.lines.append(f"const {value_type(dtype)} {number} = {text};")
        needs = frozenset[str]().union(*(o.needs for o in operands if isinstance(o, Traced)))
        return Traced(self, number, dtype, needs, weak=weak)

    def check(self, caller: str, operand: Any) -> None:
        """Refuse a value that cannot be an operand.

        Raises
        ------
        TypeError
        """
        if isinstance(operand, Reduced):
            raise TypeError(f"{self.name}: {operand.how} ends a fused function, and {caller} uses it"
                            f"{self.where()}. Return it, and continue outside.")  # fmt: skip
        if isinstance(operand, Traced):
            if operand.trace is not self:
                raise TypeError(f"{self.name}: an array from another fused function is used{self.where()}.")
        elif not isinstance(operand, (bool, int, float, np.bool_, np.integer, np.floating)):
            raise TypeError(f"{self.name}: {caller} is given {type(operand).__name__}, which is not an argument of the "
                            f"fused function{self.where()}. Pass it as one.")  # fmt: skip

    def _loop(self, formula: Formula, own: list[Any]) -> DType:
        """Return the dtype to compute in, as for an op on arrays."""
        strong = [_dtype_of(o) for o in own if not _is_weak(o)]
        dtype = strong[0] if strong else promote_weak(_sample(own[0]), _BOOL)
        for other in strong[1:]:
            dtype = promote(dtype, other, formula.name)
        for o in own:
            if _is_weak(o):
                dtype = promote_weak(_sample(o), dtype)
        if kind_of(dtype) in formula.kinds:
            return dtype
        if formula.kinds == "f":
            return floating_dtype(dtype)
        kinds = {"b": "bool", "i": "integers", "u": "integers", "f": "floats"}
        takes = " and ".join(dict.fromkeys(kinds[k] for k in formula.kinds))
        raise TypeError(f"{self.name}: {formula.name} takes {takes}; got {dtype}{self.where()}. Use x.astype(…).")

    def written(self, operand: Any, wanted: str) -> str:
        """Return an operand as a value of an MSL type."""
        if isinstance(operand, Traced):
            return operand.text if value_type(operand.dtype) == wanted else f"{wanted}({operand.text})"
        if wanted == "bool":
            return str(bool(operand)).lower()
        if wanted == "float":
            return literal(float(operand))
        info = np.iinfo(next(name for name, word in DTYPES.items() if word == wanted))
        if not info.min <= operand <= info.max:
            raise OverflowError(f"{self.name}: {operand} is beyond {info.dtype}{self.where()}.")
        return f"{wanted}({integer_literal('ulong' if operand > 2**63 - 1 else 'long', operand)})"

    def _function(self, formula: Formula, wanted: list[DType], loop: DType, result: DType) -> str:
        """Define an op's function for the types that it computes in."""
        expression = formula.groups[formula.group(kind_of(loop))]
        if "<L>" in expression:
            message = f"{formula.name} cannot be fused: it depends on the dtype in memory{self.where()}."
            raise TypeError(f"{self.name}: {message}")
        parameters = [f"{value_type(d)} {n}" for d, n in zip(wanted, formula.operands, strict=True)]
        parameters += [f"float {n}" for n in formula.parameters]
        computed, made = value_type(loop), value_type(result)
        tag = computed[0] if computed in {"float", "bool"} else computed
        for number in range(100):  # two ops may have the same name if a user defined one
            called = f"{formula.name}_{tag}{number or ''}_"
            text = (f"inline {made} {called}({', '.join(parameters)}) "
                    f"{{ using T = {computed}; return {made}({expression}); }}")  # fmt: skip
            text = f"{formula.preamble}\n{text}".strip()
            if self.functions.setdefault(called, text) == text:
                return called
        raise AssertionError("a hundred ops with one name")

    def where(self) -> str:
        """Return text that names the current line of the traced function."""
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
        Its name in the MSL.
    dtype : numpy.dtype
        The dtype that separate ops would return.
    needs : frozenset of str
        The arguments that it uses.
    weak : bool
        Whether it is a number: only its kind matters in promotion.
    """

    __slots__ = ("dtype", "needs", "text", "trace", "weak")

    def __init__(self, trace: Trace, text: str, dtype: DType, needs: frozenset[str], *, weak: bool = False) -> None:
        self.needs = needs
        self.trace = trace
        self.text = text
        self.dtype = dtype
        self.weak = weak

    def astype(self, dtype: Any, *, copy: bool = True) -> Traced:
        """Convert to a dtype: 16-bit floats are rounded here, as by a separate op."""
        del copy  # there is no memory yet
        trace: Trace = self.trace
        trace.check("astype", self)
        wanted = as_dtype(dtype, f"{trace.name}: astype")
        if wanted.name == "float16":
            text = f"float(half({self.text}))"
        elif wanted.name == "bfloat16":
            text = f"storage<bfloat16>::load(storage<bfloat16>::store({self.text}))"
        elif wanted == _BOOL:
            text = f"{self.text} != {value_type(self.dtype)}(0)"
        else:
            text = f"{value_type(wanted)}({self.text})"
        return trace.line(text, wanted, (self,))

    def __metal_traced__(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Trace an op that is not elementwise; NotImplemented if it is composed of elementwise ones."""
        if name == "astype":
            return self.astype(*args[1:], **options)
        other = ", ".join(sorted({*options} - {"axis", "keepdims"}))
        if name in _AT_THE_END and len(args) < 3 and other:
            raise TypeError(f"{self.trace.name}: {name} cannot be fused with {other}={self.trace.where()}.")
        if name in _AT_THE_END and len(args) < 3:
            return self.reduced(name, *args[1:], **options)
        return NotImplemented

    def reduced(self, how: str, axis: Any = None, *, keepdims: bool = False) -> Reduced:
        """Reduce the last axis: this ends the function."""
        trace = self.trace
        trace.check(how, self)
        if type(axis) is not int or axis != -1:
            raise TypeError(f"{trace.name}: {how} is fused only over the last axis; got axis={axis!r}{trace.where()}. "
                            "Pass axis=-1.")  # fmt: skip
        return Reduced(self, how, keepdims=bool(keepdims))

    def sum(self, axis: Any = None, *, keepdims: bool = False) -> Reduced:
        """Sum over the last axis."""
        return self.reduced("sum", axis, keepdims=keepdims)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> Reduced:
        """Largest over the last axis."""
        return self.reduced("max", axis, keepdims=keepdims)

    def min(self, axis: Any = None, *, keepdims: bool = False) -> Reduced:
        """Smallest over the last axis."""
        return self.reduced("min", axis, keepdims=keepdims)

    def mean(self, axis: Any = None, *, keepdims: bool = False) -> Reduced:
        """Mean over the last axis."""
        return self.reduced("mean", axis, keepdims=keepdims)


class Reduced(Traced):
    """The reduction at the end of a fused function: a value for each row of one of its arrays.

    Attributes
    ----------
    how : {"sum", "max", "min", "mean"}
    keepdims : bool
    """

    __slots__ = ("how", "keepdims")

    def __init__(self, of: Traced, how: str, *, keepdims: bool) -> None:
        super().__init__(of.trace, of.text, of.dtype, of.needs)
        self.how = how
        self.keepdims = keepdims


def _is_weak(operand: Any) -> bool:
    if isinstance(operand, Traced):
        return operand.weak
    return isinstance(operand, (bool, int, float, np.bool_))


def _dtype_of(operand: Any) -> DType:
    return operand.dtype if isinstance(operand, Traced) else as_dtype(operand.dtype, "fuse")


def _sample(operand: Any) -> Any:
    """Return a number of a weak operand's kind."""
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
