"""The rows of the functions of two and three arrays. Adding one is one line."""

# ruff: noqa: E501  (a row is one line, however long: it is read as one of a table)

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.promotion import is_float
from ..op import NUMERIC, op
from . import unary
from .elementwise_op import Elementwise

__all__ = ["BY_NAME", "ROWS", "clip"]

_two = functools.partial(Elementwise, operands=2)
_compare = functools.partial(_two, kinds="biuf", result="bool", domain=(-3, 3))


def _largest(*sizes: Any) -> Any:
    return functools.reduce(np.maximum, map(np.abs, sizes))


def _parts(x: Any, y: Any, *rest: Any) -> Any:
    """Return the size of a sum's largest term: where terms cancel, the error is relative to it."""
    return _largest(x, y, rest[-1])


def _product(x: Any, y: Any, z: Any, result: Any) -> Any:
    return _largest(x * y, z, result)


def _ends(x: Any, y: Any, z: Any, result: Any) -> Any:
    return _largest(x, y, z * (y - x), result)


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


def _lerp(x: Any, y: Any, z: Any) -> Any:
    return np.where(z < 0.5, x + z * (y - x), y - (y - x) * (1 - z))


ROWS: tuple[Elementwise, ...] = (
    _two("add", {"f": "x + y", "biu": "sum_of(x, y)"}, np.add, "x1 + x2; of bool: or.", ulp=0.5),
    _two("subtract", {"f": "x - y", "iu": "difference_of(x, y)"}, np.subtract, "x1 - x2.", ulp=0.5),
    _two("multiply", {"f": "x * y", "biu": "product_of(x, y)"}, np.multiply, "x1 * x2; of bool: and.", ulp=0.5),
    _two("divide", "x / y", np.divide, "x1 / x2.", ulp=0.5, aliases=("true_divide",)),
    _two("floor_divide", {"f": "floor_divide_of(x, y)", "iu": "floor_quotient(x, y)"}, np.floor_divide, "x1 / x2 rounded down; integers by 0 give 0, an infinite x1 NaN.", ulp=1, flops=8),
    _two("remainder", {"f": "remainder_of(x, y)", "iu": "floor_remainder(x, y)"}, np.remainder, "Remainder of floor_divide, with x2's sign; integers by 0 give 0.", ulp=0.5, flops=8, aliases=("mod",)),
    _two("fmod", {"f": "fmod_of(x, y)", "iu": "remainder_towards_zero(x, y)"}, np.fmod, "Remainder of truncated division, with x1's sign; integers by 0 give 0.", ulp=0, flops=8, cite="C++14, 26.8 [c.math], ``fmod``"),
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
    _compare("logical_and", "(x != T(0)) & (y != T(0))", np.logical_and, "Whether both are nonzero."),
    _compare("logical_or", "(x != T(0)) | (y != T(0))", np.logical_or, "Whether at least one is nonzero."),
    _compare("logical_xor", "(x != T(0)) != (y != T(0))", np.logical_xor, "Whether exactly one is nonzero."),
    _two("bitwise_and", "T(x & y)", np.bitwise_and, "The bits set in both.", kinds="biu"),
    _two("bitwise_or", "T(x | y)", np.bitwise_or, "The bits set in at least one.", kinds="biu"),
    _two("bitwise_xor", "T(x ^ y)", np.bitwise_xor, "The bits set in exactly one.", kinds="biu"),
    _two("bitwise_left_shift", "shifted_left(x, y)", np.left_shift, "x1's bits shifted left by x2; 0 for shifts beyond the width.", kinds="iu", aliases=("left_shift",)),
    _two("bitwise_right_shift", "shifted_right(x, y)", np.right_shift, "x1's bits shifted right by x2, filled with sign bits, or with 0 if unsigned.", kinds="iu", aliases=("right_shift",)),
    _two("gcd", "gcd_of(x, y)", np.gcd, "Greatest common divisor; 0 for two zeros.", kinds="iu", flops=40, cite="NumPy, ``gcd``"),
    _two("lcm", "lcm_of(x, y)", np.lcm, "Least common multiple, which wraps; 0 where one is 0.", kinds="iu", flops=40, cite="NumPy, ``lcm``"),
    # three arrays
    Elementwise("where", "condition ? x : y", np.where, "x1 where the condition holds, else x2.", kinds="biuf", ulp=0, operands=("condition", "x", "y"), masks=("condition",), numpy=(np.where,)),
    Elementwise("fma", {"f": "fma(x, y, z)", "iu": "sum_of(product_of(x, y), z)"}, lambda x, y, z: x * y + z, "x1 * x2 + x3, rounded once.", ulp=0.5, operands=3, flops=2, size=_product, cite="IEEE 754-2019, 5.4.1"),
    Elementwise("lerp", "z < 0.5f ? fma(z, y - x, x) : fma(z - 1.0f, y - x, y)", _lerp, "Linear interpolation from x1 (x3 = 0) to x2 (x3 = 1); x2 - x1 must not overflow.", ulp=3, operands=3, domain=(0, 1), flops=4, size=_ends, cite="PyTorch, ``lerp``"),
)

BY_NAME = {row.name: row for row in ROWS}  # for other ops to call

_POSITIVE = next(row for row in unary.ROWS if row.name == "positive")
_CLIP = Elementwise("clip", "clip_of(x, y, z)", np.clip, "", kinds="iuf", operands=3)


@op(
    "elementwise", reference=lambda x, min=None, max=None: np.clip(x, min, max), dtypes=NUMERIC, parts=(_CLIP,), numpy=(np.clip,), flops=2,
)  # fmt: skip
def clip(x: Array, /, min: Any = None, max: Any = None, *, out: Array | None = None) -> Array:
    """Return each element limited to the range between two bounds.

    Parameters
    ----------
    x : Array
        Of all dtypes but bool.
    min, max : Array or number, optional
        The bounds; None means no bound. If min > max, the result is max.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that all broadcast to, and x's dtype. NaN where one of them is NaN.

    References
    ----------
    Python array API standard 2024.12, ``clip``
    """
    made: Array
    if min is None and max is None:
        made = _POSITIVE(x, out=out)
    elif min is None or max is None:
        bounded = BY_NAME["minimum" if min is None else "maximum"]
        made = bounded(x, max if min is None else min, out=out)
    else:
        made = _CLIP(x, min, max, out=out)
    return made
