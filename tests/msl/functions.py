"""The functions of MSL's standard library, each declared once: its arguments, its results and its accuracy.

Bounds are those of MSL's tables 8.1 (float) and 8.3 (half), in ulp: 0.5 is "correctly rounded" and 0 is exact. Fast
math has the same bounds unless a row says otherwise: metalnb does not use the wider ones of table 8.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["INTEGERS", "INTEGER_TYPES", "REALS", "Integer", "Real"]

Domain = tuple[float, float] | None
FULL: Domain = None  # every finite number
F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Real:
    """A function of floats and halves.

    Attributes
    ----------
    name : str
    section : str
        The section of the specification, version 3.1.
    oracle : callable
        Computes the result from float64 arrays, one per argument.
    ulp : float
        The bound for float, in precise mode.
    domains : tuple
        One per argument: an interval, or None for every finite number. Edge cases are added.
    call : str
        The call, if it is not ``name(a, b, ...)``. `second` is a variable for a second result.
    second : str
        The element type of `second`: "T" or "int".
    integer : tuple of int
        Indices of the arguments that are int.
    half : float
        The bound for half.
    fast : float or None
        The bound for float in fast mode, where metalnb uses a wider one from table 8.2.
    zeros : bool
        True if the sign of a zero result is checked, in precise mode.
    edges : bool
        False if the specification leaves the edge cases undefined.
    variants : bool
        True for a function that is also in `fast` and `precise`.
    native : bool
        True for an oracle that takes arrays of the type itself.
    since : str
        The version of MSL that introduced it.
    """

    name: str
    section: str
    oracle: Callable[..., Any]
    ulp: float
    domains: tuple[Domain, ...] = (FULL,)
    call: str = ""
    second: str = ""
    integer: tuple[int, ...] = ()
    half: float = 1
    fast: float | None = None
    zeros: bool = False
    edges: bool = True
    variants: bool = False
    native: bool = False
    since: str = "1.0"

    @property
    def expression(self) -> str:
        """The call, on arguments named a, b and c."""
        return self.call or f"{self.name}({', '.join('abc'[: len(self.domains)])})"


def _sign(x: F64) -> F64:
    return np.where(np.isnan(x), 0.0, np.where(x == 0, x, np.sign(x)))


def _round(x: F64) -> F64:
    whole = np.trunc(x)
    return np.copysign(np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole), x)


def _sinpi(x: F64) -> F64:
    r = np.fmod(x, 2.0)
    return np.where(
        r == np.trunc(r), np.copysign(0.0, x), np.sin(np.pi * np.where(np.abs(r) > 1, r - np.copysign(2, r), r))
    )


def _cospi(x: F64) -> F64:
    r = np.abs(np.fmod(x, 2.0))
    return np.where((r == 0.5) | (r == 1.5), 0.0, np.cos(np.pi * np.minimum(r, 2 - r)))


def _tanpi(x: F64) -> F64:
    r = np.fmod(x, 1.0)
    r = r - np.copysign(1, r) * (np.abs(r) > 0.5)
    half = np.abs(r) == 0.5
    pole = np.where(np.fmod(np.floor(x), 2.0) == 0, np.inf, -np.inf)
    zero = np.copysign(0.0, x) * np.where(np.fmod(x, 2.0) == 0, 1, -1)
    return np.where(half, pole, np.where(r == 0, zero, np.tan(np.pi * np.where(half, 0, r))))


def _powr(x: F64, y: F64) -> F64:
    bad = (
        (x < 0)
        | ((x == 0) & (y == 0))
        | ((x == 1) & np.isinf(y))
        | (np.isposinf(x) & (y == 0))
        | np.isnan(x)
        | np.isnan(y)
    )
    return np.where(bad, np.nan, np.power(np.abs(x), y))


def _fdim(x: F64, y: F64) -> F64:
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(x > y, x - y, 0.0))


def _fract(x: F64) -> F64:
    return np.where(np.isinf(x), 0.0, x - np.floor(x))


def _median(x: F64, y: F64, z: F64) -> F64:
    return np.fmax(np.fmin(x, y), np.fmin(np.fmax(x, y), z))


def _clamp(x: F64, low: F64, high: F64) -> F64:
    return np.fmin(np.fmax(x, low), high)


def _smoothstep(low: F64, high: F64, x: F64) -> F64:
    t = _clamp((x - low) / (high - low), 0.0, 1.0)
    return t * t * (3 - 2 * t)


def _modf(x: F64) -> F64:
    return np.copysign(np.where(np.isinf(x), 0.0, x - np.trunc(x)), x)


def _ilogb(x: F64) -> F64:
    e = np.frexp(x)[1] - 1.0
    return np.where(np.isfinite(x), np.where(x == 0, -(2.0**31), e), 2.0**31)


def _exponent(x: F64) -> F64:
    return np.where(np.isfinite(x), np.frexp(x)[1], 0.0)


def _log(f: Callable[[F64], F64]) -> Callable[[F64], F64]:
    return lambda x: np.where(x < 0, np.nan, f(np.abs(x)))


WIDE = (-100.0, 100.0)
UNIT = (-1.0, 1.0)
POSITIVE = (1e-30, 1e30)

MATH = [
    Real("abs", "6.5", np.abs, 0, zeros=True, half=0),
    Real("acos", "6.5", np.arccos, 4, (UNIT,), variants=True),
    Real("acosh", "6.5", np.arccosh, 4, ((1.0, 1e4),)),
    Real("asin", "6.5", np.arcsin, 4, (UNIT,)),
    Real("asinh", "6.5", np.arcsinh, 4),
    Real("atan", "6.5", np.arctan, 5),
    Real("atan2", "6.5", np.arctan2, 6, (WIDE, WIDE)),
    Real("atanh", "6.5", np.arctanh, 5, (UNIT,)),
    Real("ceil", "6.5", np.ceil, 0.5, (WIDE,), zeros=True, half=0.5),
    Real("copysign", "6.5", np.copysign, 0, (FULL, FULL), zeros=True, half=0),
    Real("cos", "6.5", np.cos, 4, (WIDE,), variants=True),
    Real("cosh", "6.5", np.cosh, 4, (WIDE,)),
    Real("cospi", "6.5", _cospi, 4, (WIDE,)),
    Real("divide", "6.5", np.divide, 0.5, (FULL, FULL), half=0.5, fast=2.5, variants=True),
    Real("exp", "6.5", np.exp, 4, (WIDE,), variants=True),
    Real("exp10", "6.5", lambda x: np.power(10.0, x), 4, ((-50.0, 45.0),)),
    Real("exp2", "6.5", np.exp2, 4, ((-155.0, 130.0),), variants=True),
    Real("fabs", "6.5", np.abs, 0, zeros=True, half=0),
    Real("fdim", "6.5", _fdim, 0.5, (FULL, FULL), half=0.5),
    Real("floor", "6.5", np.floor, 0.5, (WIDE,), zeros=True, half=0.5),
    Real("fma", "6.5", lambda x, y, z: x * y + z, 0.5, (WIDE, WIDE, WIDE), half=0.5),
    Real("fmax", "6.5", np.fmax, 0, (WIDE, WIDE), half=0),
    Real("fmax3", "6.5", lambda x, y, z: np.fmax(x, np.fmax(y, z)), 0, (WIDE,) * 3, half=0, since="2.1"),
    Real("fmedian3", "6.5", _median, 0, (WIDE,) * 3, half=0, edges=False),
    Real("fmin", "6.5", np.fmin, 0, (WIDE, WIDE), half=0),
    Real("fmin3", "6.5", lambda x, y, z: np.fmin(x, np.fmin(y, z)), 0, (WIDE,) * 3, half=0, since="2.1"),
    Real("fmod", "6.5", np.fmod, 0, (FULL, FULL), half=0),
    Real("fract", "6.5", _fract, 0.5, (WIDE,), half=0.5, edges=False),
    Real("frexp", "6.5", lambda x: np.frexp(x)[0], 0, call="frexp(a, second)", second="int", half=0),
    Real("frexp's exponent", "6.5", _exponent, 0, call="(frexp(a, second), V(second))", second="int", half=0),
    Real("ilogb", "6.5", _ilogb, 0, call="V(ilogb(a))", half=0),
    Real("ldexp", "6.5", np.ldexp, 0.5, (FULL, (-300, 300)), integer=(1,), half=0.5),
    Real("log", "6.5", _log(np.log), 4, (POSITIVE,), variants=True),
    Real("log10", "6.5", _log(np.log10), 4, (POSITIVE,)),
    Real("log2", "6.5", _log(np.log2), 4, (POSITIVE,)),
    Real("max", "6.5", np.fmax, 0, (WIDE, WIDE), half=0),
    Real("max3", "6.5", lambda x, y, z: np.fmax(x, np.fmax(y, z)), 0, (WIDE,) * 3, half=0, since="2.1"),
    Real("median3", "6.5", _median, 0, (WIDE,) * 3, half=0, edges=False, since="2.1"),
    Real("min", "6.5", np.fmin, 0, (WIDE, WIDE), half=0),
    Real("min3", "6.5", lambda x, y, z: np.fmin(x, np.fmin(y, z)), 0, (WIDE,) * 3, half=0, since="2.1"),
    Real("modf", "6.5", _modf, 0, (WIDE,), call="modf(a, second)", second="T", half=0, zeros=True),
    Real("modf's whole", "6.5", np.trunc, 0, (WIDE,), call="(modf(a, second), second)", second="T", half=0),
    Real("nextafter", "6.5", np.nextafter, 0, (WIDE, WIDE), half=0, native=True, since="3.1"),
    Real("pow", "6.5", np.power, 16, ((0.0, 30.0), (-20.0, 20.0)), variants=True),
    Real("powr", "6.5", _powr, 16, ((0.0, 30.0), (-20.0, 20.0))),
    Real("rint", "6.5", np.rint, 0.5, (WIDE,), half=0.5, zeros=True),
    Real("round", "6.5", _round, 0.5, (WIDE,), half=0.5, zeros=True),
    Real("rsqrt", "6.5", lambda x: 1 / np.sqrt(x), 0.5, (POSITIVE,), half=0.5, fast=2, variants=True),
    Real("sin", "6.5", np.sin, 4, (WIDE,), variants=True),
    Real("sincos", "6.5", np.sin, 4, (WIDE,), call="sincos(a, second)", second="T"),
    Real("sincos's cosine", "6.5", np.cos, 4, (WIDE,), call="(sincos(a, second), second)", second="T"),
    Real("sinh", "6.5", np.sinh, 4, (WIDE,)),
    Real("sinpi", "6.5", _sinpi, 4, (WIDE,)),
    Real("sqrt", "6.5", np.sqrt, 0.5, (POSITIVE,), half=0.5, zeros=True, variants=True),
    Real("tan", "6.5", np.tan, 6, (WIDE,)),
    Real("tanh", "6.5", np.tanh, 5, (WIDE,)),
    Real("tanpi", "6.5", _tanpi, 6, (WIDE,)),
    Real("trunc", "6.5", np.trunc, 0.5, (WIDE,), half=0.5, zeros=True),
    Real("x + y", "8.4", np.add, 0.5, (WIDE, WIDE), call="a + b", half=0.5),
    Real("x - y", "8.4", np.subtract, 0.5, (WIDE, WIDE), call="a - b", half=0.5),
    Real("x * y", "8.4", np.multiply, 0.5, (WIDE, WIDE), call="a * b", half=0.5),
    Real("x / y", "8.4", np.divide, 0.5, (WIDE, WIDE), call="a / b", half=0.5, fast=2.5),
    Real("1 / x", "8.4", lambda x: 1 / x, 0.5, call="V(1) / a", half=0.5, fast=1),
]
COMMON = [
    Real("clamp", "6.2", _clamp, 0, (WIDE, (-50.0, 0.0), (0.0, 50.0)), half=0, edges=False, variants=True),
    Real("mix", "6.2", lambda x, y, t: x + (y - x) * t, 2, ((0.0, 9.0), (20.0, 99.0), (0.0, 1.0)), half=2, edges=False),
    Real("saturate", "6.2", lambda x: np.fmin(np.fmax(x, 0.0), 1.0), 0, half=0, variants=True),
    Real("sign", "6.2", _sign, 0, half=0, zeros=True),
    Real("smoothstep", "6.2", _smoothstep, 8, ((-9.0, -1.0), (1.0, 9.0), WIDE), half=1, edges=False),
    Real("step", "6.2", lambda edge, x: np.where(x < edge, 0.0, 1.0), 0, (WIDE, WIDE), half=0),
]


def _isnormal(x: NDArray) -> Any:
    return np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).smallest_normal)


RELATIONAL = [
    Real("isfinite", "6.4", np.isfinite, 0, call="V(isfinite(a))", half=0),
    Real("isinf", "6.4", np.isinf, 0, call="V(isinf(a))", half=0),
    Real("isnan", "6.4", np.isnan, 0, call="V(isnan(a))", half=0),
    Real("isnormal", "6.4", _isnormal, 0, call="V(isnormal(a))", half=0, native=True),
    Real(
        "isordered",
        "6.4",
        lambda x, y: ~(np.isnan(x) | np.isnan(y)),
        0,
        (WIDE, WIDE),
        call="V(isordered(a, b))",
        half=0,
    ),
    Real(
        "isunordered",
        "6.4",
        lambda x, y: np.isnan(x) | np.isnan(y),
        0,
        (WIDE, WIDE),
        call="V(isunordered(a, b))",
        half=0,
    ),
    Real("select", "6.4", lambda x, y: np.where(x > y, y, x), 0, (WIDE, WIDE), call="select(a, b, a > b)", half=0),
    Real("signbit", "6.4", np.signbit, 0, call="V(signbit(a))", half=0),
]
REALS = [*MATH, *COMMON, *RELATIONAL]

INTEGER_TYPES = {
    "char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16,
    "int": np.int32, "uint": np.uint32, "long": np.int64, "ulong": np.uint64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Integer:
    """A function of integers.

    Attributes
    ----------
    name : str
    arity : int
    oracle : callable
        Takes the type's `Limits`, then Python integers; its result is taken modulo the type's size.
    types : tuple of str
    call : str
        The call, when it is not ``name(a, b, ...)``.
    section, since : str
        As for `Real`.
    """

    name: str
    arity: int
    oracle: Callable[..., int]
    types: tuple[str, ...] = tuple(INTEGER_TYPES)
    call: str = ""
    section: str = "6.3"
    since: str = "1.0"

    @property
    def expression(self) -> str:
        """The call, on arguments named a, b and c."""
        return self.call or f"{self.name}({', '.join('abc'[: self.arity])})"


@dataclass(frozen=True, slots=True)
class Limits:
    """An integer type: its width in bits, and its smallest and largest number."""

    bits: int
    low: int
    high: int

    def saturated(self, x: int) -> int:
        """Return the nearest number of the type."""
        return max(self.low, min(self.high, x))

    def unsigned(self, x: int) -> int:
        """Return x's bits as a natural number."""
        return x & ((1 << self.bits) - 1)

    def signed(self, x: int, bits: int) -> int:
        """Return the lowest `bits` of x as a number of the type's signedness."""
        x &= (1 << bits) - 1
        return x - (1 << bits) if self.low < 0 and bits and x >> (bits - 1) else x


def _rotate(t: Limits, x: int, n: int) -> int:
    n %= t.bits
    x = t.unsigned(x)
    return x << n | x >> (t.bits - n)


def _insert(t: Limits, x: int, field: int) -> int:
    mask = ((1 << (t.bits // 2)) - 1) << 2
    return (t.unsigned(x) & ~mask) | (field << 2 & mask)


def _mul24(_: Limits, x: int, y: int) -> int:
    return (x & 0xFFF) * (y & 0xFFF)


def _mad24(t: Limits, x: int, y: int, z: int) -> int:
    return _mul24(t, x, y) + z


def _median_of(_: Limits, x: int, y: int, z: int) -> int:
    return sorted((x, y, z))[1]


INTEGERS = [
    Integer("abs", 1, lambda t, x: abs(x)),
    Integer("absdiff", 2, lambda t, x, y: abs(x - y)),
    Integer("addsat", 2, lambda t, x, y: t.saturated(x + y)),
    Integer("clamp", 3, lambda t, x, y, z: min(max(x, min(y, z)), max(y, z)), call="clamp(a, min(b, c), max(b, c))"),
    Integer("clz", 1, lambda t, x: t.bits - t.unsigned(x).bit_length()),
    Integer("ctz", 1, lambda t, x: ((x & -x).bit_length() - 1) if x else t.bits),
    Integer(
        "extract_bits", 1, lambda t, x: t.signed(x >> 1, t.bits // 2), call="extract_bits(a, 1u, {half}u)", since="1.2"
    ),
    Integer("hadd", 2, lambda t, x, y: (x + y) >> 1),
    Integer("insert_bits", 2, _insert, call="insert_bits(a, b, 2u, {half}u)", since="1.2"),
    Integer("mad24", 3, _mad24, ("int", "uint"), "mad24(a & 0xfff, b & 0xfff, c)", since="2.1"),
    Integer("madhi", 3, lambda t, x, y, z: (x * y >> t.bits) + z),
    Integer("madsat", 3, lambda t, x, y, z: t.saturated(x * y + z)),
    Integer("max", 2, lambda t, x, y: max(x, y)),
    Integer("max3", 3, lambda t, x, y, z: max(x, y, z), since="2.1"),
    Integer("median3", 3, _median_of, since="2.1"),
    Integer("min", 2, lambda t, x, y: min(x, y)),
    Integer("min3", 3, lambda t, x, y, z: min(x, y, z), since="2.1"),
    Integer("mul24", 2, _mul24, ("int", "uint"), "mul24(a & 0xfff, b & 0xfff)", since="2.1"),
    Integer("mulhi", 2, lambda t, x, y: x * y >> t.bits),
    Integer("popcount", 1, lambda t, x: t.unsigned(x).bit_count()),
    Integer("reverse_bits", 1, lambda t, x: int(f"{t.unsigned(x):0{t.bits}b}"[::-1], 2), since="2.1"),
    Integer("rhadd", 2, lambda t, x, y: (x + y + 1) >> 1),
    Integer("rotate", 2, _rotate),
    Integer("select", 2, lambda t, x, y: max(x, y), call="select(a, b, a < b)", section="6.4"),
    Integer("subsat", 2, lambda t, x, y: t.saturated(x - y)),
]


def bound(row: Real, kind: str, mode: str) -> float:
    """Return the greatest error that the specification allows."""
    if kind == "half":
        return row.half
    return row.fast if mode == "fast" and row.fast is not None else row.ulp
