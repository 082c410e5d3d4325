"""The table rows of functions of two arrays; a new function takes one line."""

# ruff: noqa: E501  (a row is one line, however long: it is read as one of a table)

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.promotion import is_float
from ..fusion.tracing import Traced
from .elementwise_op import Elementwise
from .elementwise_text import Formula
from .op_info import OpInfo

__all__ = ["ROWS"]

_two = functools.partial(Formula, operands=("x", "y"))
_compare = functools.partial(_two, kinds="biuf", result="bool")
_near = functools.partial(OpInfo, domain=(-3, 3))


def _largest(*sizes: Any) -> Any:
    return functools.reduce(np.maximum, map(np.abs, sizes))


def _parts(x: Any, y: Any, *rest: Any) -> Any:
    """Return the size of a sum's largest term, to which the error is relative if terms cancel."""
    return _largest(x, y, rest[-1])


def _refuse_negative_power(name: str, operands: tuple[Any, ...]) -> None:
    """Refuse an integer to a negative power, as NumPy does, since the result is not an integer."""
    base, power = operands
    dtype = getattr(base, "dtype", None)
    if isinstance(power, bool) or isinstance(base, float) or (isinstance(dtype, np.dtype) and is_float(dtype)):
        return
    if isinstance(power, Traced):
        if power.dtype.kind == "i":
            power.trace.check_power(name, power, lambda value: _refuse_negative_power(name, (0, value)))
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


ROWS: tuple[Elementwise, ...] = (
    Elementwise(_two("add", {"f": "x + y", "biu": "sum_of(x, y)"}, "x1 + x2; of bool: or."), OpInfo(np.add, ulp=0.5)),
    Elementwise(_two("subtract", {"f": "x - y", "iu": "difference_of(x, y)"}, "x1 - x2."), OpInfo(np.subtract, ulp=0.5)),
    Elementwise(_two("multiply", {"f": "x * y", "biu": "product_of(x, y)"}, "x1 * x2; of bool: and."), OpInfo(np.multiply, ulp=0.5)),
    Elementwise(_two("divide", "x / y", "x1 / x2."), OpInfo(np.divide, ulp=0.5, aliases=("true_divide",))),
    Elementwise(_two("floor_divide", {"f": "floor_divide_of(x, y)", "iu": "floor_quotient(x, y)"}, "x1 / x2 rounded down; integers by 0 give 0, an infinite x1 NaN."), OpInfo(np.floor_divide, ulp=1, flops=8)),
    Elementwise(_two("remainder", {"f": "remainder_of(x, y)", "iu": "floor_remainder(x, y)"}, "Remainder of floor_divide, with x2's sign; integers by 0 give 0."), OpInfo(np.remainder, ulp=0.5, flops=8, aliases=("mod",))),
    Elementwise(_two("fmod", {"f": "fmod_of(x, y)", "iu": "remainder_towards_zero(x, y)"}, "Remainder of truncated division, with x1's sign; integers by 0 give 0."), OpInfo(np.fmod, ulp=0, flops=8, cite="C++14, 26.8 [c.math], ``fmod``")),
    Elementwise(_two("pow", {"f": "pow(x, y)", "iu": "integer_power(x, y)"}, "x1 to the power x2; integers wrap, and their powers must not be negative."), OpInfo(np.power, ulp=4, flops=30, domain=(0, 10), check=_refuse_negative_power, aliases=("power",))),
    Elementwise(_two("maximum", "maximum_of(x, y)", "The larger of two; NaN when either is.", kinds="biuf"), OpInfo(np.maximum, ulp=0)),
    Elementwise(_two("minimum", "minimum_of(x, y)", "The smaller of two; NaN when either is.", kinds="biuf"), OpInfo(np.minimum, ulp=0)),
    Elementwise(_two("fmax", {"f": "fmax(x, y)", "biu": "maximum_of(x, y)"}, "The larger of two; the other when one is NaN."), OpInfo(np.fmax, ulp=0, cite="C++14, 26.8 [c.math], ``fmax``")),
    Elementwise(_two("fmin", {"f": "fmin(x, y)", "biu": "minimum_of(x, y)"}, "The smaller of two; the other when one is NaN."), OpInfo(np.fmin, ulp=0, cite="C++14, 26.8 [c.math], ``fmin``")),
    Elementwise(_two("atan2", "atan2(x, y)", "The angle of the point (x2, x1), in (-pi, pi]."), OpInfo(np.arctan2, ulp=6, flops=30, aliases=("arctan2",))),
    Elementwise(_two("hypot", "hypot_of(x, y)", "sqrt(x1^2 + x2^2), which overflows only when the result does."), OpInfo(np.hypot, ulp=1.5, flops=8)),
    Elementwise(_two("copysign", "copysign(x, y)", "x1 with the sign of x2."), OpInfo(np.copysign, ulp=0)),
    Elementwise(_two("nextafter", "next_after<L>(x, y)", "The next number after x1 towards x2, of their dtype."), OpInfo(np.nextafter, ulp=0, native=True, flops=12)),
    Elementwise(_two("logaddexp", "logaddexp_of(x, y)", "log(exp(x1) + exp(x2)), which does not overflow."), OpInfo(np.logaddexp, ulp=4, flops=30, size=_parts)),
    # comparisons
    Elementwise(_compare("equal", "x == y", "x1 == x2."), _near(np.equal)),
    Elementwise(_compare("not_equal", "x != y", "x1 != x2."), _near(np.not_equal)),
    Elementwise(_compare("less", "x < y", "x1 < x2."), _near(np.less)),
    Elementwise(_compare("less_equal", "x <= y", "x1 <= x2."), _near(np.less_equal)),
    Elementwise(_compare("greater", "x > y", "x1 > x2."), _near(np.greater)),
    Elementwise(_compare("greater_equal", "x >= y", "x1 >= x2."), _near(np.greater_equal)),
    # logic and bits
    Elementwise(_compare("logical_and", "(x != T(0)) & (y != T(0))", "Whether both are nonzero."), _near(np.logical_and)),
    Elementwise(_compare("logical_or", "(x != T(0)) | (y != T(0))", "Whether at least one is nonzero."), _near(np.logical_or)),
    Elementwise(_compare("logical_xor", "(x != T(0)) != (y != T(0))", "Whether exactly one is nonzero."), _near(np.logical_xor)),
    Elementwise(_two("bitwise_and", "T(x & y)", "The bits set in both.", kinds="biu"), OpInfo(np.bitwise_and)),
    Elementwise(_two("bitwise_or", "T(x | y)", "The bits set in at least one.", kinds="biu"), OpInfo(np.bitwise_or)),
    Elementwise(_two("bitwise_xor", "T(x ^ y)", "The bits set in exactly one.", kinds="biu"), OpInfo(np.bitwise_xor)),
    Elementwise(_two("bitwise_left_shift", "shifted_left(x, y)", "x1's bits shifted left by x2; 0 for shifts beyond the width.", kinds="iu"), OpInfo(np.left_shift, aliases=("left_shift",))),
    Elementwise(_two("bitwise_right_shift", "shifted_right(x, y)", "x1's bits shifted right by x2, filled with sign bits, or with 0 if unsigned.", kinds="iu"), OpInfo(np.right_shift, aliases=("right_shift",))),
    Elementwise(_two("gcd", "gcd_of(x, y)", "Greatest common divisor; 0 for two zeros.", kinds="iu"), OpInfo(np.gcd, flops=40, cite="NumPy, ``gcd``")),
    Elementwise(_two("lcm", "lcm_of(x, y)", "Least common multiple, which wraps; 0 where one is 0.", kinds="iu"), OpInfo(np.lcm, flops=40, cite="NumPy, ``lcm``")),
    Elementwise(_two("heaviside", "x < 0.0f ? 0.0f : x > 0.0f ? 1.0f : x == 0.0f ? y : x", "0 where x1 < 0, 1 where x1 > 0, x2 where x1 is 0."), OpInfo(np.heaviside, ulp=0, cite="NumPy, ``heaviside``")),
)
