"""1 / sqrt(x) and 1 / x from the processor's estimate and one iteration step, which is faster than dividing.

The estimates are AVX-512's, which are accurate to 14 bits, even for denormals, and defined to the bit. Those of SSE and
AVX are not used: they have 11 bits, treat denormals as 0, and differ between vendors.
"""

from __future__ import annotations

from ..text_emitter import Emitter
from ..vector_target import VectorTarget, apply_per_register

__all__ = ["write_reciprocal_root", "write_upper_reciprocal"]

_ONE = "splat (float 1.0)"
_HALF = "splat (float 0.5)"
_ABOVE_ONE = "splat (double 0x3FF0000000004000)"  # 1 + 2^-38


def write_reciprocal_root(emitter: Emitter, target: VectorTarget, x: str) -> str:
    """Return 1 / sqrt(x) of floats, off by at most 1.05 units in the last place (measured over all significands).

    For 0, infinity and NaN the estimate is the result: the correction is NaN there, and the comparison replaces it.
    """
    op, lanes = emitter.op, emitter.lanes("float")
    y = _estimate(emitter, target, "rsqrt14.ps", "float", x)
    root = op(f"fmul {lanes} {x}, {y}")
    residual = _fma(emitter, "float", op(f"fneg {lanes} {root}"), y, _ONE)
    is_small = op(f"fcmp olt {lanes} {residual}, {_ONE}")
    residual = op(f"select {emitter.mask} {is_small}, {lanes} {residual}, {lanes} {_ONE}")  # one instruction: vminps
    return _fma(emitter, "float", op(f"fmul {lanes} {y}, {_HALF}"), residual, y)


def write_upper_reciprocal(emitter: Emitter, target: VectorTarget, x: str, *, uniform: bool) -> str | None:
    """Return 1 / x for integral doubles, too large by a factor between 1 and 1 + 2^-37; None if too slow.

    With b = 2^-38, and an estimate y that is off by less than 2^-14, e = 1 + b - x y is less than 2^-13.9, and
    y (1 + e + e^2) is 1 / x times 1 - e^3 + b (1 + e + e^2).
    """
    lanes = emitter.lanes("double")
    if uniform:
        return emitter.op(f"fdiv {lanes} {_ABOVE_ONE}, {x}")  # LLVM makes it scalar
    if not target.has_estimates:
        return None
    y = _estimate(emitter, target, "rcp14.pd", "double", x)
    e = _fma(emitter, "double", emitter.op(f"fneg {lanes} {x}"), y, _ABOVE_ONE)
    return _fma(emitter, "double", _fma(emitter, "double", e, e, e), y, y)


def _fma(emitter: Emitter, kind: str, a: str, b: str, c: str) -> str:
    lanes = emitter.lanes(kind)
    name = f"llvm.fma.v{emitter.width}f{32 if kind == 'float' else 64}"
    return emitter.call(name, lanes, (lanes, a), (lanes, b), (lanes, c))


def _estimate(emitter: Emitter, target: VectorTarget, instruction: str, kind: str, vector: str) -> str:
    """Write an AVX-512 instruction for each register of a vector."""
    bits = 32 if kind == "float" else 64

    def estimate_register(part: str, count: int) -> str:
        piece, mask = f"<{count} x {kind}>", f"i{max(count, 8)}"
        name = f"llvm.x86.avx512.{instruction}.{count * bits}"
        return emitter.call(name, piece, (piece, part), (piece, "zeroinitializer"), (mask, "-1"))

    return apply_per_register(emitter, target, kind, bits, vector, estimate_register)
