"""The properties of an elementwise op other than its formula, and the table row that follows from both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..op import ALL, OpRow
from .elementwise_text import LOOPS, Formula

__all__ = ["OpInfo", "row_of"]

_HALVES = {"float16": 2.0**-13, "bfloat16": 2.0**-16}  # one ulp of float32, in ulps of each dtype


@dataclass(frozen=True)
class OpInfo:
    """An op's NumPy equivalent, the kernels' accuracy, and its entry in the list of ops.

    Attributes
    ----------
    reference : callable
        The op in NumPy.
    ulp : float
        The error allowed for floats, in units in the last place of float32. For narrower floats, the rounding of the
        result adds to it. 0.5 means "correctly rounded".
    domain : tuple of float
        The range of floats for the benchmark and for the first samples.
    check : callable, optional
        ``check(name, operands)`` inspects every call's operands, and may raise.
    size, native, cite, aliases, numpy, flops, family
        As in `OpRow`.
    """

    reference: Callable[..., Any]
    ulp: float = 4
    domain: tuple[float, float] = (-10, 10)
    check: Callable[[str, tuple[Any, ...]], None] | None = None
    size: Callable[..., Any] | None = None
    native: bool = False
    cite: str = ""
    family: str = "elementwise"
    aliases: tuple[str, ...] = ()
    numpy: tuple[Callable[..., Any], ...] = ()
    flops: float = 1


def row_of(formula: Formula, info: OpInfo) -> OpRow:
    """Return an op's row of the table."""
    takes = [dtype for kind in formula.kinds for dtype in LOOPS[kind]]
    rounds = formula.result == "same" and "f" in formula.kinds
    return OpRow(
        info.family, info.reference,
        dtypes=ALL if formula.kinds == "f" else tuple(d for d in ALL if d in takes),
        tolerance=_tolerance(info.ulp) if rounds else {},
        kernels=("elementwise.h",), aliases=info.aliases, numpy=_numpy_functions(info),
        flops=info.flops, cite=info.cite, native=info.native, size=info.size,
    )  # fmt: skip


def _tolerance(ulp: float) -> dict[str, float]:
    return {"float32": ulp, **{dtype: 0.5 + ulp * part for dtype, part in _HALVES.items()}}


def _numpy_functions(info: OpInfo) -> tuple[Callable[..., Any], ...]:
    """Return the NumPy functions that an op implements, including the reference if it is a NumPy function."""
    return (*((info.reference,) if isinstance(info.reference, np.ufunc) else ()), *info.numpy)
