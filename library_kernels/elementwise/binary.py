"""The rows of the functions of two arrays. Adding one is one line."""

# ruff: noqa: E501  (a row is one line, however long: it is read as one of a table)

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.promotion import is_float
from .elementwise_op import Elementwise

__all__ = ["ROWS"]

_two = functools.partial(Elementwise, operands=2)
_compare = functools.partial(_two, kinds="biuf", result="bool", domain=(-3, 3))


def _largest(*sizes: Any) -> Any:
    return functools.reduce(np.maximum, map(np.abs, sizes))


def _parts(x: Any, y: Any, *rest: Any) -> Any:
    """Return the size of a sum's largest term: where terms cancel, the error is relative to it."""
    return _largest(x, y, rest[-1])


def _no_negative_power(name: str, operands: tuple[Any, ...]) -> None:
    """Refuse what NumPy refuses: an integer to a negative power is not an integer."""
    base, power = operands
    if isinstance(power, bool) or isinstance(base, float) or (isinstance(base, Array) and is_float(base.dtype)):
        return
    if isinstance(power, int):
        least = power
    elif getattr(getattr(power, "dtype", None), "kind", "") == "i" and power.size:
        least = np.asarray(power.read() if isinstance(power, Array) else power).min()
    else:
        return
    if least < 0:
        raise ValueError(f"{name}: an integer to a negative power is not an integer; got the power {least}. "
                         f"Pass x.astype(mnb.float32).")  # fmt: skip


ROWS = (
    _two("add", {"f": "x + y", "biu": "sum_of(x, y)"}, np.add, "x1 + x2; of bool: or.", ulp=0.5),
    _two("subtract", {"f": "x - y", "iu": "difference_of(x, y)"}, np.subtract, "x1 - x2.", ulp=0.5),
    _two("multiply", {"f": "x * y", "biu": "product_of(x, y)"}, np.multiply, "x1 * x2; of bool: and.", ulp=0.5),
    _two("divide", "x / y", np.divide, "x1 / x2.", ulp=0.5, aliases=("true_divide",)),
    _two("floor_divide", {"f": "floor_divide_of(x, y)", "iu": "floor_quotient(x, y)"}, np.floor_divide, "x1 / x2 rounded down; integers by 0 give 0, an infinite x1 NaN.", ulp=1, flops=8),
    _two("remainder", {"f": "remainder_of(x, y)", "iu": "floor_remainder(x, y)"}, np.remainder, "What floor_divide leaves, with x2's sign; integers by 0 give 0.", ulp=0.5, flops=8, aliases=("mod",)),
    _two("fmod", {"f": "fmod_of(x, y)", "iu": "remainder_towards_zero(x, y)"}, np.fmod, "What division leaves, with x1's sign; integers by 0 give 0.", ulp=0, flops=8, cite="C++14, 26.8 [c.math], ``fmod``"),
    _two("pow", {"f": "pow(x, y)", "iu": "integer_power(x, y)"}, np.power, "x1 to the power x2; integers wrap, and take no negative powers.", ulp=4, flops=30, domain=(0, 10), check=_no_negative_power, aliases=("power",)),
    _two("maximum", "maximum_of(x, y)", np.maximum, "The larger of two; NaN when either is.", kinds="biuf", ulp=0),
    _two("minimum", "minimum_of(x, y)", np.minimum, "The smaller of two; NaN when either is.", kinds="biuf", ulp=0),
    _two("fmax", {"f": "fmax(x, y)", "biu": "maximum_of(x, y)"}, np.fmax, "The larger of two; the other when one is NaN.", ulp=0, cite="C++14, 26.8 [c.math], ``fmax``"),
    _two("fmin", {"f": "fmin(x, y)", "biu": "minimum_of(x, y)"}, np.fmin, "The smaller of two; the other when one is NaN.", ulp=0, cite="C++14, 26.8 [c.math], ``fmin``"),
    _two("atan2", "atan2(x, y)", np.arctan2, "The angle of the point (x2, x1), in (-pi, pi].", ulp=6, flops=30, aliases=("arctan2",)),
    _two("hypot", "hypot_of(x, y)", np.hypot, "sqrt(x1^2 + x2^2), which overflows only when the result does.", ulp=1.5, flops=8),
    _two("copysign", "copysign(x, y)", np.copysign, "x1 with the sign of x2.", ulp=0),
    _two("nextafter", "next_after<L>(x, y)", np.nextafter, "The next number after x1 towards x2, of their dtype.", ulp=0, native=True, flops=12),
    _two("logaddexp", "logaddexp_of(x, y)", np.logaddexp, "log(exp(x1) + exp(x2)), which does not overflow.", ulp=4, flops=30, size=_parts),
    # comparisons
    _compare("equal", "x == y", np.equal, "x1 == x2."),
    _compare("not_equal", "x != y", np.not_equal, "x1 != x2."),
    _compare("less", "x < y", np.less, "x1 < x2."),
    _compare("less_equal", "x <= y", np.less_equal, "x1 <= x2."),
    _compare("greater", "x > y", np.greater, "x1 > x2."),
    _compare("greater_equal", "x >= y", np.greater_equal, "x1 >= x2."),
    # logic and bits
    _compare("logical_and", "(x != T(0)) & (y != T(0))", np.logical_and, "Whether both are other than 0."),
    _compare("logical_or", "(x != T(0)) | (y != T(0))", np.logical_or, "Whether one is other than 0."),
    _compare("logical_xor", "(x != T(0)) != (y != T(0))", np.logical_xor, "Whether just one is other than 0."),
    _two("bitwise_and", "T(x & y)", np.bitwise_and, "The bits that both have.", kinds="biu"),
    _two("bitwise_or", "T(x | y)", np.bitwise_or, "The bits that one has.", kinds="biu"),
    _two("bitwise_xor", "T(x ^ y)", np.bitwise_xor, "The bits that just one has.", kinds="biu"),
    _two("bitwise_left_shift", "shifted_left(x, y)", np.left_shift, "x1's bits moved up by x2; beyond the width nothing is left.", kinds="iu", aliases=("left_shift",)),
    _two("bitwise_right_shift", "shifted_right(x, y)", np.right_shift, "x1's bits moved down by x2, the sign drawn after.", kinds="iu", aliases=("right_shift",)),
    _two("gcd", "gcd_of(x, y)", np.gcd, "The largest number that divides both; 0 for two zeros.", kinds="iu", flops=40, cite="NumPy, ``gcd``"),
    _two("lcm", "lcm_of(x, y)", np.lcm, "The least number that both divide; it wraps. 0 where one is 0.", kinds="iu", flops=40, cite="NumPy, ``lcm``"),
    _two("heaviside", "x < 0.0f ? 0.0f : x > 0.0f ? 1.0f : x == 0.0f ? y : x", np.heaviside, "0 below 0, 1 above it, x2 at it.", ulp=0, cite="NumPy, ``heaviside``"),
)
