"""The rows of the functions of one array. Adding one is one line; nothing else in the project needs editing."""

# ruff: noqa: E501  (a row is one line, however long: it is read as one of a table)

from __future__ import annotations

import math
import statistics

import numpy as np

from .elementwise_op import Elementwise

__all__ = ["ROWS"]


def _whole(f: str) -> dict[str, str]:
    """Return the expressions of a rounding; integers and bool are whole already."""
    return {"f": f, "biu": "x"}


def _test(f: str) -> dict[str, str]:
    """Return the expressions of a test that has one answer for every integer and bool."""
    question, otherwise = f.split(" | ")
    return {"f": question, "biu": otherwise}


def _erfinv(x: float) -> float:
    """Solve erf(y) = x by Newton's steps, from the tail where that is exact."""
    if not abs(x) < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    y = abs(statistics.NormalDist().inv_cdf((1 - abs(x)) / 2)) / math.sqrt(2) if abs(x) > 1e-3 else abs(x) * 0.886
    for _ in range(4):
        beyond = math.erf(y) - abs(x) if abs(x) < 0.5 else (1 - abs(x)) - math.erfc(y)
        y -= beyond * math.sqrt(math.pi) / 2 * math.exp(y * y)
    return math.copysign(y, x)


ROWS: tuple[Elementwise, ...] = (
    # signs, simple arithmetic
    Elementwise("abs", {"f": "abs(x)", "i": "x < T(0) ? negated(x) : x", "bu": "x"}, np.absolute, "Absolute value; the least integer wraps to itself.", ulp=0, aliases=("absolute",)),
    Elementwise("negative", {"f": "-x", "iu": "negated(x)"}, np.negative, "-x, which wraps for integers.", ulp=0),
    Elementwise("positive", "x", np.positive, "A copy of x.", kinds="iuf", ulp=0),
    Elementwise("sign", {"f": "x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x == 0.0f ? 0.0f : x", "i": "T((x > T(0)) - (x < T(0)))", "u": "T(x > T(0))"}, np.sign, "-1, 0 or 1 by x's sign, 0 for -0.0; NaN for NaN.", ulp=0),
    Elementwise("square", {"f": "x * x", "iu": "product_of(x, x)"}, np.square, "x * x.", ulp=0.5),
    Elementwise("reciprocal", "1.0f / x", np.reciprocal, "1 / x.", ulp=0.5),
    Elementwise("sqrt", "sqrt(x)", np.sqrt, "Square root.", ulp=0.5, domain=(0, 100)),
    Elementwise("rsqrt", "1.0f / sqrt(x)", lambda x: 1 / np.sqrt(x), "1 / sqrt(x).", ulp=1.5, domain=(0, 100), cite="MSL 6.5, ``rsqrt``"),
    Elementwise("cbrt", "cbrt_of(x)", np.cbrt, "Cube root, also of negative numbers.", ulp=1, flops=20, cite="NumPy, ``cbrt``"),
    Elementwise("real", "x", np.real, "The real part: x itself, copied.", kinds="biuf", ulp=0, numpy=(np.real,)),
    Elementwise("imag", "T(0)", np.imag, "The imaginary part: zeros, of x's dtype.", kinds="biuf", ulp=0, numpy=(np.imag,)),
    Elementwise("conj", "x", np.conj, "The complex conjugate: x itself, copied.", kinds="biuf", ulp=0, aliases=("conjugate",)),
    # exponentials and logarithms
    Elementwise("exp", "exp(x)", np.exp, "e to the power x.", ulp=1, flops=12, domain=(-80, 80)),
    Elementwise("exp2", "exp2(x)", np.exp2, "2 to the power x.", ulp=1, flops=12, domain=(-100, 100), cite="MSL 6.5, ``exp2``"),
    Elementwise("expm1", "expm1_of(x)", np.expm1, "exp(x) - 1, accurate near 0.", ulp=1.5, flops=15),
    Elementwise("log", "log(x)", np.log, "Natural logarithm.", ulp=1, flops=15, domain=(0, 1000)),
    Elementwise("log2", "log2(x)", np.log2, "Logarithm to base 2.", ulp=1, flops=15, domain=(0, 1000)),
    Elementwise("log10", "log10(x)", np.log10, "Logarithm to base 10.", ulp=1, flops=15, domain=(0, 1000)),
    Elementwise("log1p", "log1p_of(x)", np.log1p, "log(1 + x), accurate near 0.", ulp=2, flops=20, domain=(-1, 10)),
    # trigonometric and hyperbolic functions
    Elementwise("sin", "sin(x)", np.sin, "Sine; x in radians.", flops=15),
    Elementwise("cos", "cos(x)", np.cos, "Cosine; x in radians.", flops=15),
    Elementwise("tan", "tan(x)", np.tan, "Tangent; x in radians.", ulp=6, flops=25),
    Elementwise("asin", "asin(x)", np.arcsin, "The angle whose sine is x.", flops=20, domain=(-1, 1), aliases=("arcsin",)),
    Elementwise("acos", "acos(x)", np.arccos, "The angle whose cosine is x.", flops=20, domain=(-1, 1), aliases=("arccos",)),
    Elementwise("atan", "atan(x)", np.arctan, "The angle whose tangent is x.", ulp=5, flops=20, aliases=("arctan",)),
    Elementwise("sinh", "sinh(x)", np.sinh, "Hyperbolic sine.", flops=20),
    Elementwise("cosh", "cosh(x)", np.cosh, "Hyperbolic cosine.", flops=20),
    Elementwise("tanh", "tanh(x)", np.tanh, "Hyperbolic tangent.", ulp=5, flops=20),
    Elementwise("asinh", "asinh(x)", np.arcsinh, "Inverse of sinh.", flops=25, aliases=("arcsinh",)),
    Elementwise("acosh", "acosh(x)", np.arccosh, "Inverse of cosh.", flops=25, domain=(1, 100), aliases=("arccosh",)),
    Elementwise("atanh", "atanh(x)", np.arctanh, "Inverse of tanh.", ulp=5, flops=25, domain=(-1, 1), aliases=("arctanh",)),
    Elementwise("degrees", "x * 57.2957795f", np.degrees, "Radians to degrees.", ulp=1.5, aliases=("rad2deg",), numpy=(np.rad2deg,), cite="NumPy, ``degrees``"),
    Elementwise("radians", "x * 0.0174532925f", np.radians, "Degrees to radians.", ulp=1.5, domain=(-360, 360), aliases=("deg2rad",), numpy=(np.deg2rad,), cite="NumPy, ``radians``"),
    Elementwise("erf", "erf_of(x)", np.vectorize(math.erf, otypes=[float]), "The error function.", ulp=2, flops=25, domain=(-4, 4), cite="C++14, 26.8 [c.math], ``erf``"),
    Elementwise("erfinv", "erfinv_of(x)", np.vectorize(_erfinv, otypes=[float]), "The number whose erf is x; infinite at -1 and 1.", ulp=4, flops=40, domain=(-1, 1), cite="M. Giles, 2012"),
    # rounding
    Elementwise("floor", _whole("floor(x)"), np.floor, "The largest whole number that is not above x.", ulp=0, domain=(-1000, 1000)),
    Elementwise("ceil", _whole("ceil(x)"), np.ceil, "The least whole number that is not below x.", ulp=0, domain=(-1000, 1000)),
    Elementwise("trunc", _whole("trunc(x)"), np.trunc, "x rounded towards 0.", ulp=0, domain=(-1000, 1000)),
    Elementwise("round", _whole("rint(x)"), np.rint, "The nearest whole number; halves go to the even one.", ulp=0, domain=(-1000, 1000), aliases=("rint",)),
    # questions
    Elementwise("isnan", _test("isnan(x) | false"), np.isnan, "Whether x is NaN.", result="bool"),
    Elementwise("isinf", _test("isinf(x) | false"), np.isinf, "Whether x is an infinity.", result="bool"),
    Elementwise("isfinite", _test("isfinite(x) | true"), np.isfinite, "Whether x is neither NaN nor an infinity.", result="bool"),
    Elementwise("signbit", {"f": "signbit(x)", "i": "x < T(0)", "bu": "false"}, np.signbit, "Whether the sign bit is set, as in -0.0.", result="bool"),
    Elementwise("logical_not", "x == T(0)", np.logical_not, "Whether x is 0, or False.", kinds="biuf", result="bool"),
    Elementwise("bitwise_invert", {"b": "!x", "iu": "T(~x)"}, np.invert, "All bits inverted.", aliases=("bitwise_not", "invert")),
)
