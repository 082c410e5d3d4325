"""The table rows of functions of one array. A new function takes one line; then run `make docs`."""

# ruff: noqa: E501  (a row is one line, however long: it is read as one of a table)

from __future__ import annotations

import math
import statistics

import numpy as np

from .elementwise_op import Elementwise
from .elementwise_text import Formula
from .op_info import OpInfo

__all__ = ["ROWS"]


def _rounding(expression: str) -> dict[str, str]:
    """Return the expressions of a rounding function, which leaves integers and bool unchanged."""
    return {"f": expression, "biu": "x"}


def _float_test(expression: str, *, otherwise: str) -> dict[str, str]:
    """Return the expressions of a test of floats, whose answer for every integer and bool is `otherwise`."""
    return {"f": expression, "biu": otherwise}


def _erfinv(x: float) -> float:
    """Solve erf(y) = x by Newton steps; near ±1, on erfc, which is more accurate there."""
    if not abs(x) < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    y = abs(statistics.NormalDist().inv_cdf((1 - abs(x)) / 2)) / math.sqrt(2) if abs(x) > 1e-3 else abs(x) * 0.886
    for _ in range(4):
        error = math.erf(y) - abs(x) if abs(x) < 0.5 else (1 - abs(x)) - math.erfc(y)
        y -= error * math.sqrt(math.pi) / 2 * math.exp(y * y)
    return math.copysign(y, x)


ROWS: tuple[Elementwise, ...] = (
    # signs, simple arithmetic
    Elementwise(Formula("abs", {"f": "abs(x)", "i": "x < T(0) ? negated(x) : x", "bu": "x"}, "Absolute value; the least integer wraps to itself."), OpInfo(np.absolute, ulp=0, aliases=("absolute",))),
    Elementwise(Formula("negative", {"f": "-x", "iu": "negated(x)"}, "-x, which wraps for integers."), OpInfo(np.negative, ulp=0)),
    Elementwise(Formula("positive", "x", "A copy of x.", kinds="iuf"), OpInfo(np.positive, ulp=0)),
    Elementwise(Formula("sign", {"f": "x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x == 0.0f ? 0.0f : x", "i": "T((x > T(0)) - (x < T(0)))", "u": "T(x > T(0))"}, "-1, 0 or 1 by x's sign, 0 for -0.0; NaN for NaN."), OpInfo(np.sign, ulp=0)),
    Elementwise(Formula("square", {"f": "x * x", "iu": "product_of(x, x)"}, "x * x."), OpInfo(np.square, ulp=0.5)),
    Elementwise(Formula("reciprocal", "1.0f / x", "1 / x."), OpInfo(np.reciprocal, ulp=0.5)),
    Elementwise(Formula("sqrt", "sqrt(x)", "Square root."), OpInfo(np.sqrt, ulp=0.5, domain=(0, 100))),
    Elementwise(Formula("rsqrt", "1.0f / sqrt(x)", "1 / sqrt(x)."), OpInfo(lambda x: 1 / np.sqrt(x), ulp=1.5, domain=(0, 100), cite="MSL 6.5, ``rsqrt``")),
    Elementwise(Formula("cbrt", "cbrt_of(x)", "Cube root, also of negative numbers."), OpInfo(np.cbrt, ulp=1, flops=20, cite="NumPy, ``cbrt``")),
    Elementwise(Formula("real", "x", "The real part: x itself, copied.", kinds="biuf"), OpInfo(np.real, ulp=0, numpy=(np.real,))),
    Elementwise(Formula("imag", "T(0)", "The imaginary part: zeros, of x's dtype.", kinds="biuf"), OpInfo(np.imag, ulp=0, numpy=(np.imag,))),
    Elementwise(Formula("conj", "x", "The complex conjugate: x itself, copied.", kinds="biuf"), OpInfo(np.conj, ulp=0, aliases=("conjugate",))),
    # exponentials and logarithms
    Elementwise(Formula("exp", "exp(x)", "e to the power x."), OpInfo(np.exp, ulp=1, flops=12, domain=(-80, 80))),
    Elementwise(Formula("exp2", "exp2(x)", "2 to the power x."), OpInfo(np.exp2, ulp=1, flops=12, domain=(-100, 100), cite="MSL 6.5, ``exp2``")),
    Elementwise(Formula("expm1", "expm1_of(x)", "exp(x) - 1, accurate near 0."), OpInfo(np.expm1, ulp=1.5, flops=15)),
    Elementwise(Formula("log", "log(x)", "Natural logarithm."), OpInfo(np.log, ulp=1, flops=15, domain=(0, 1000))),
    Elementwise(Formula("log2", "log2(x)", "Logarithm to base 2."), OpInfo(np.log2, ulp=1, flops=15, domain=(0, 1000))),
    Elementwise(Formula("log10", "log10(x)", "Logarithm to base 10."), OpInfo(np.log10, ulp=1, flops=15, domain=(0, 1000))),
    Elementwise(Formula("log1p", "log1p_of(x)", "log(1 + x), accurate near 0."), OpInfo(np.log1p, ulp=2, flops=20, domain=(-1, 10))),
    # trigonometric and hyperbolic functions
    Elementwise(Formula("sin", "sin(x)", "Sine; x in radians."), OpInfo(np.sin, flops=15)),
    Elementwise(Formula("cos", "cos(x)", "Cosine; x in radians."), OpInfo(np.cos, flops=15)),
    Elementwise(Formula("tan", "tan(x)", "Tangent; x in radians."), OpInfo(np.tan, ulp=6, flops=25)),
    Elementwise(Formula("asin", "asin(x)", "The angle whose sine is x."), OpInfo(np.arcsin, flops=20, domain=(-1, 1), aliases=("arcsin",))),
    Elementwise(Formula("acos", "acos(x)", "The angle whose cosine is x."), OpInfo(np.arccos, flops=20, domain=(-1, 1), aliases=("arccos",))),
    Elementwise(Formula("atan", "atan(x)", "The angle whose tangent is x."), OpInfo(np.arctan, ulp=5, flops=20, aliases=("arctan",))),
    Elementwise(Formula("sinh", "sinh(x)", "Hyperbolic sine."), OpInfo(np.sinh, flops=20)),
    Elementwise(Formula("cosh", "cosh(x)", "Hyperbolic cosine."), OpInfo(np.cosh, flops=20)),
    Elementwise(Formula("tanh", "tanh(x)", "Hyperbolic tangent."), OpInfo(np.tanh, ulp=5, flops=20)),
    Elementwise(Formula("asinh", "asinh(x)", "Inverse of sinh."), OpInfo(np.arcsinh, flops=25, aliases=("arcsinh",))),
    Elementwise(Formula("acosh", "acosh(x)", "Inverse of cosh."), OpInfo(np.arccosh, flops=25, domain=(1, 100), aliases=("arccosh",))),
    Elementwise(Formula("atanh", "atanh(x)", "Inverse of tanh."), OpInfo(np.arctanh, ulp=5, flops=25, domain=(-1, 1), aliases=("arctanh",))),
    Elementwise(Formula("degrees", "x * 57.2957795f", "Radians to degrees."), OpInfo(np.degrees, ulp=1.5, aliases=("rad2deg",), numpy=(np.rad2deg,), cite="NumPy, ``degrees``")),
    Elementwise(Formula("radians", "x * 0.0174532925f", "Degrees to radians."), OpInfo(np.radians, ulp=1.5, domain=(-360, 360), aliases=("deg2rad",), numpy=(np.deg2rad,), cite="NumPy, ``radians``")),
    Elementwise(Formula("erf", "erf_of(x)", "The error function."), OpInfo(np.vectorize(math.erf, otypes=[float]), ulp=2, flops=25, domain=(-4, 4), cite="C++14, 26.8 [c.math], ``erf``")),
    Elementwise(Formula("erfinv", "erfinv_of(x)", "The number whose erf is x; infinite at -1 and 1."), OpInfo(np.vectorize(_erfinv, otypes=[float]), ulp=4, flops=40, domain=(-1, 1), cite="M. Giles, 2012")),
    # rounding
    Elementwise(Formula("floor", _rounding("floor(x)"), "The largest whole number that is not above x."), OpInfo(np.floor, ulp=0, domain=(-1000, 1000))),
    Elementwise(Formula("ceil", _rounding("ceil(x)"), "The least whole number that is not below x."), OpInfo(np.ceil, ulp=0, domain=(-1000, 1000))),
    Elementwise(Formula("trunc", _rounding("trunc(x)"), "x rounded towards 0."), OpInfo(np.trunc, ulp=0, domain=(-1000, 1000))),
    Elementwise(Formula("round", _rounding("rint(x)"), "The nearest whole number; ties go to the even one."), OpInfo(np.rint, ulp=0, domain=(-1000, 1000), aliases=("rint",))),
    # tests
    Elementwise(Formula("isnan", _float_test("isnan(x)", otherwise="false"), "Whether x is NaN.", result="bool"), OpInfo(np.isnan)),
    Elementwise(Formula("isinf", _float_test("isinf(x)", otherwise="false"), "Whether x is an infinity.", result="bool"), OpInfo(np.isinf)),
    Elementwise(Formula("isfinite", _float_test("isfinite(x)", otherwise="true"), "Whether x is neither NaN nor an infinity.", result="bool"), OpInfo(np.isfinite)),
    Elementwise(Formula("signbit", {"f": "signbit(x)", "i": "x < T(0)", "bu": "false"}, "Whether the sign bit is set, as in -0.0.", result="bool"), OpInfo(np.signbit)),
    Elementwise(Formula("logical_not", "x == T(0)", "Whether x is 0, or False.", kinds="biuf", result="bool"), OpInfo(np.logical_not)),
    Elementwise(Formula("bitwise_invert", {"b": "!x", "iu": "T(~x)"}, "All bits inverted."), OpInfo(np.invert, aliases=("bitwise_not", "invert"))),
)
