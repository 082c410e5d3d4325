"""Prepare the operands of an elementwise op: promote them to one dtype, convert and broadcast them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array
from ...arrays.convert import asarray, check_engine
from ...arrays.promotion import floating_dtype, kind_of, promote, promote_weak
from ...engine.base import Engine
from ..launching.copying import convert
from ..planning.elementwise_plan import broadcast
from .elementwise_text import Formula

__all__ = ["PreparedOperands", "prepare_operands"]

DType = np.dtype[Any]

_BOOL = np.dtype(np.bool_)


class PreparedOperands(NamedTuple):
    """Operands ready for a kernel.

    Attributes
    ----------
    operands : list of Array and numpy.ndarray
        The operands in the dtype to compute in; a Python scalar becomes a NumPy array of one element.
    shape : tuple of int
        The shape that the operands broadcast to.
    loop, result : numpy.dtype
        The dtype to compute in, and the result's.
    engine : Engine
    """

    operands: list[Any]
    shape: tuple[int, ...]
    loop: DType
    result: DType
    engine: Engine


def prepare_operands(
    formula: Formula, takes: tuple[str, ...], operands: tuple[Any, ...], out: Array | None
) -> PreparedOperands:
    """Promote, convert and broadcast operands (array API, "Type Promotion Rules"; Python scalars are weak).

    Raises
    ------
    TypeError
        If an operand is neither an array nor a number, the op does not support its dtype, or the operands have no
        common dtype.
    ValueError
        If the shapes do not broadcast.
    ArgumentError
        If the arrays are on different engines.
    """
    arrays = _arrays(formula.name, operands, out)
    engine = next(a.block.engine for a in arrays if type(a) is Array)
    check_engine(engine, formula.name, *(a for a in (*arrays, out) if type(a) is Array))
    loop = _loop(formula, takes, arrays)
    prepared = [_cast(formula, a, n, loop) for a, n in zip(arrays, formula.operands, strict=True)]
    shape = broadcast(formula.name, [a.shape if type(a) is Array else () for a in prepared])
    return PreparedOperands(prepared, shape, loop, _BOOL if formula.result == "bool" else loop, engine)


def _arrays(name: str, operands: tuple[Any, ...], out: Array | None) -> list[Any]:
    """Convert operands to arrays; Python scalars stay unchanged."""
    first = next((a for a in (*operands, out) if type(a) is Array), None)
    device = first.device if first is not None else None
    arrays = [a if type(a) is Array or type(a) in {bool, int, float} else _array(name, a, device) for a in operands]
    if any(type(a) is Array for a in arrays):
        return arrays
    return [asarray(arrays[0], device=device), *arrays[1:]]


def _array(name: str, value: Any, device: str | None) -> Any:
    if isinstance(value, (np.bool_, np.float64)):
        return value.item()
    if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__dlpack__"):
        return asarray(value, device=device)
    for scalar in (bool, int, float):
        if isinstance(value, scalar):  # a subclass, such as an IntEnum
            return scalar(value)
    raise TypeError(f"{name}: takes arrays and numbers; got {type(value).__name__}. Pass mnb.asarray(…).")


def _loop(formula: Formula, takes: tuple[str, ...], arrays: list[Any]) -> DType:
    """Return the dtype to compute in."""
    numbers = [a for a, n in zip(arrays, formula.operands, strict=True) if n not in formula.masks]
    strong = [a.dtype for a in numbers if type(a) is Array]
    dtype = strong[0] if strong else promote_weak(numbers[0], _BOOL)
    for other in strong[1:]:
        dtype = promote(dtype, other, formula.name)
    for scalar in numbers:
        if type(scalar) is not Array:
            dtype = promote_weak(scalar, dtype)
    if kind_of(dtype) in formula.kinds:
        return dtype
    if formula.kinds == "f":
        return floating_dtype(dtype)
    raise TypeError(f"{formula.name}: takes {', '.join(takes)}; got {dtype}. Pass x.astype(…).")


def _cast(formula: Formula, operand: Any, name: str, loop: DType) -> Any:
    target = _BOOL if name in formula.masks else loop
    if type(operand) is not Array:
        try:
            return np.array(operand, target)
        except OverflowError:
            message = f"{formula.name}: {target} cannot hold {operand}. Pass mnb.asarray({operand}) for a wider result."
            raise OverflowError(message) from None
    if name in formula.masks and operand.dtype != target:
        raise TypeError(f"{formula.name}: {name} must be bool; got {operand.dtype}. Pass {name} != 0.")
    return convert(operand, target)
