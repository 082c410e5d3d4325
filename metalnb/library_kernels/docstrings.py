"""Generate an op's docstring from its row."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .elementwise.elementwise_text import Formula
from .op import ALL, FLOATS, INTEGERS, NUMERIC, SIGNED, OpRow

__all__ = ["dtypes_text", "reference_text", "stub_function"]

# Source: Python array API standard 2024.12, "Element-wise Functions" and "Searching Functions".
_STANDARD = (
    "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or "
    "bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide "
    "greater greater_equal hypot imag isfinite isinf isnan less less_equal log log10 log1p log2 logaddexp "
    "logical_and logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal "
    "positive pow real reciprocal remainder round sign signbit sin sinh sqrt square subtract tan tanh trunc where"
)
_SETS = (
    (ALL, "any dtype"), (NUMERIC, "any dtype but bool"), (("bool", *INTEGERS), "bool or integers"),
    (INTEGERS, "integers"), (FLOATS, "floats"), ((*SIGNED, *FLOATS), "signed integers or floats"),
)  # fmt: skip


def dtypes_text(dtypes: tuple[str, ...]) -> str:
    """Return the dtypes that an op takes, in words where possible."""
    return next((words for names, words in _SETS if set(names) == set(dtypes)), ", ".join(dtypes))


def reference_text(name: str, cite: str) -> str:
    """Return the reference that defines an op."""
    return cite or (f"Python array API standard 2024.12, ``{name}``" if name in _STANDARD.split() else "")


def stub_function(formula: Formula, row: OpRow, defaults: dict[str, Any]) -> Callable[..., Any]:
    """Return an empty function with the op's name, docstring and signature."""

    def function() -> None: ...

    names = formula.operands if row.family == "own" else public_names(formula.operands)  # a user's op keeps its names
    positional, positional_or_keyword, keyword = (
        inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    )  # fmt: skip
    parameters = [
        *(inspect.Parameter(n, positional) for n in names),
        *(inspect.Parameter(n, positional_or_keyword, default=v) for n, v in defaults.items()),
        inspect.Parameter("out", keyword, default=None),
    ]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = formula.name
    function.__module__ = "metalnb"
    function.__doc__ = _docstring(formula, row, names)
    return function


def public_names(operands: tuple[str, ...]) -> tuple[str, ...]:
    """Return the public names of operands, as in the standard: x for one, x1, x2, … for several."""
    names = {"x": "x1", "y": "x2", "z": "x3"} if "y" in operands else {}
    return tuple(names.get(n, n) for n in operands)


def _docstring(formula: Formula, row: OpRow, names: tuple[str, ...]) -> str:
    numbers = [public_name for public_name, n in zip(names, formula.operands, strict=True) if n not in formula.masks]
    masks = [n for n in names if n not in numbers]
    lines = [formula.doc, "", "Parameters", "----------"]
    lines += [f"{n} : Array of bool" for n in masks]
    lines += [f"{', '.join(numbers)} : Array or number", f"    Of {dtypes_text(row.dtypes)}.{_widening_note(formula)}"]
    lines += [f"{n} : float, default {v}" for n, v in formula.parameters.items()]
    lines += ["out : Array, optional", "    The array to write the result into."]
    result = "bool" if formula.result == "bool" else "the dtype that the operands promote to"
    shape = "x's shape" if len(names) == 1 else "the shape that the operands broadcast to"
    lines += ["", "Returns", "-------", "Array", f"    Of {shape}, and {result}.{_error_note(row)}"]
    reference = reference_text(formula.name, row.cite)
    if reference:
        lines += ["", "References", "----------", reference]
    return "\n".join(lines)


def _widening_note(formula: Formula) -> str:
    return " Integers and bool are converted to float32." if formula.kinds == "f" else ""


def _error_note(row: OpRow) -> str:
    tolerance = row.tolerance.get("float32", 0)
    return f" float32 is within {tolerance:g} units in the last place." if tolerance > 0.5 else ""
