"""The kernel of a fused function. A call is planned once for each form of its arrays, and then only started."""

from __future__ import annotations

import functools
import math
import struct
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import check_engine
from ...arrays.core import contiguous_strides
from ...arrays.promotion import floating_dtype, is_float
from ...engine.base import Engine
from ...program import Program
from ..elementwise.elementwise_op import strip
from ..launching.launcher import Launch
from ..launching.programs import compile
from ..launching.reduction_launch import ACCUMULATORS, Monoid, accumulator, reduce_or_fill, sum_dtype, tag
from ..planning.device import NEVER, device_of
from ..planning.elementwise_plan import Strip, broadcast, plan_elementwise, plan_row_reduction
from .fused_text import FusedText
from .tracing import Reduced, Trace, Traced

__all__ = ["FusedKernel", "kernels_of"]

DType = np.dtype[Any]
Shape = tuple[int, ...]

_PLANS = 1024
_OPERANDS = 6  # the operands of a `Walk` in elementwise.h
_FUNCTORS = {"sum": "Sum", "max": "Maximum", "min": "Minimum", "mean": "Mean"}


class _Plan(NamedTuple):
    """A planned call; `launch` is None if the result or the reduced axis has no elements."""

    launch: Launch | None
    engine: Engine
    shape: Shape
    parts: int = 1


class FusedKernel:
    """One kernel of a fused function.

    Parameters
    ----------
    trace : Trace
    results : sequence of Traced
        The kernel's results. They have the same shape for all arguments; a `Reduced` must be the only result.
    arrays, numbers : dict of str to numpy.dtype
        The arguments that the results use.
    """

    def __init__(
        self, trace: Trace, results: list[Traced], arrays: dict[str, DType], numbers: dict[str, DType],
    ) -> None:  # fmt: skip
        if len(arrays) + len(results) > _OPERANDS:
            raise TypeError(f"{trace.name}: a result of {len(arrays)} arrays; at most {_OPERANDS - 1} are fused.")
        self.arrays, self.numbers = tuple(arrays), tuple(numbers)
        self._name = trace.name
        self._packers = [_pack_integer if d.kind in "iu" else struct.Struct("<f").pack for d in numbers.values()]
        self._dtypes = [r.dtype for r in results]
        self._last = results[0] if isinstance(results[0], Reduced) else None
        if self._last is not None:
            self._dtypes = [_result(self._last)]
        self._text = FusedText(
            trace, tuple((r.text, r.dtype) for r in results), tuple(arrays.items()), tuple(numbers.items()),
            "" if self._last is None else _monoid(self._last).msl_name,
        )  # fmt: skip
        self._plans: dict[Any, _Plan] = {}

    @functools.cached_property
    def source(self) -> str:
        """The kernel's MSL."""
        return self._text.text()

    def program(self, engine: Engine) -> Program:
        """Return the program; each of its kernels is compiled at its first call."""
        device = device_of(engine.caps)
        text = self._text.text(several=device.waits, streams=device.streams < NEVER)
        return compile(text, engine=engine.name, math="precise", name=self._name)

    def __call__(self, arguments: dict[str, Any]) -> tuple[Array, ...]:
        """Start the kernel with the arguments of a call that it uses."""
        arrays = tuple(arguments[n] for n in self.arrays)
        key = tuple([a.form or a.shared_form() for a in arrays])
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            plan = self._plans[key] = self._plan_call(arrays)
        try:
            values = tuple(bytearray(pack(arguments[n])) for n, pack in zip(self.numbers, self._packers, strict=True))
        except (struct.error, OverflowError):
            numbers = {n: arguments[n] for n in self.numbers}
            raise OverflowError(f"{self._name}: a number is beyond 64 bits or float32: {numbers}.") from None
        if self._last is not None:
            return (self._start_reduction(plan, self._last, arrays, values),)
        results = tuple(empty(plan.shape, dtype, plan.engine) for dtype in self._dtypes)
        if plan.launch is not None:
            plan.launch.start_on((*arrays, *results), values)
        return results

    def _plan_call(self, arrays: tuple[Array, ...]) -> _Plan:
        engine = arrays[0].engine
        check_engine(engine, self._name, *arrays)
        shape = broadcast(self._name, [a.shape for a in arrays])
        strips = [strip(a, shape) for a in arrays]
        device = device_of(engine.caps)
        if self._last is None:
            if 0 in shape:
                return _Plan(None, engine, shape)
            result_strip = Strip(_steps(shape), 0)
            nbytes = sum(d.itemsize for d in (*(a.dtype for a in arrays), *self._dtypes))
            all_strips = [*strips, *[result_strip] * len(self._dtypes)]
            plan = plan_elementwise(shape, all_strips, device, nbytes, results=len(self._dtypes))
            kinds = plan.kinds
            if "g" in kinds.lower():
                kinds = "g" * (len(kinds) - 1) + "u"
            binary = self.program(engine)[f"fused_{kinds}"].binary
            launch = Launch(binary, plan.grid, plan.threadgroup, (plan.record,)).bind_records(engine)
            return _Plan(launch, engine, shape)
        if not shape:
            raise ValueError(f"{self._name}: {self._last.reduction} over the last axis of 0-d arrays.")
        if 0 in shape:
            return _Plan(None, engine, shape)
        rows = plan_row_reduction(shape, strips, _steps(shape[:-1]), device._replace(waits=False))
        binary = self.program(engine)[f"{rows.kernel}_{rows.kinds}"].binary
        launch = Launch(binary, rows.grid, rows.threadgroup, (rows.record, rows.splits)).bind_records(engine)
        return _Plan(launch, engine, shape, rows.parts)

    def _start_reduction(
        self, plan: _Plan, last: Reduced, arrays: tuple[Array, ...], values: tuple[bytearray, ...]
    ) -> Array:
        """Start the kernel and, if rows are split, a second kernel that combines the parts."""
        monoid, (result,) = _monoid(last), self._dtypes
        *outer, count = plan.shape
        if plan.parts == 1 and plan.launch is not None:
            out = empty(tuple(outer), result, plan.engine)
            plan.launch.start_on((*arrays, out), values)
        else:
            acc = ACCUMULATORS[monoid.acc]
            partial = empty((*outer, plan.parts if plan.launch is not None else count), acc, plan.engine)
            if plan.launch is not None:
                plan.launch.start_on((*arrays, partial), values)
            of_none = {"sum": 0, "mean": math.nan}.get(last.reduction)
            second = monoid._replace(element=tag(acc), part=monoid.acc)
            out = reduce_or_fill(partial, (len(outer),), second, result, keepdims=False, of_none=of_none,
                                 caller=self._name,
                             scale=count)  # fmt: skip
        return Array(out.block, result, (*outer, 1), None, 0) if last.keepdims else out


def _pack_integer(number: int) -> bytes:
    return struct.pack("<q" if number < 0 else "<Q", number)


def _steps(shape: Shape) -> Shape:
    return contiguous_strides(shape, 1)


def _result(last: Reduced) -> DType:
    if last.reduction == "sum":
        return sum_dtype(last.dtype)
    return floating_dtype(last.dtype) if last.reduction == "mean" else last.dtype


def _monoid(last: Reduced) -> Monoid:
    """Return the monoid of a reduced result, which is the monoid of the op with this name."""
    dtype, result = last.dtype, _result(last)
    if last.reduction in {"max", "min"}:
        acc = "float" if is_float(dtype) else tag(dtype)
    elif last.reduction == "mean":
        is_exact = not is_float(dtype) and dtype.itemsize < 8  # a sum of 64-bit integers may wrap
        acc = accumulator(sum_dtype(dtype)) if is_exact else "float"
    else:
        acc = accumulator(result)
    return Monoid(_FUNCTORS[last.reduction], tag(dtype), tag(result), acc, acc)


def kernels_of(trace: Trace, results: list[Traced], arrays: dict[str, DType], numbers: dict[str, DType]) -> list[
    tuple[FusedKernel, list[int]]
]:  # fmt: skip
    """Return the kernels of a function's results, each with the indices of its results.

    Results that use the same arrays have the same shape, so they share a kernel.
    """
    groups: dict[Any, list[int]] = {}
    for i, result in enumerate(results):
        used_arrays = tuple(n for n in arrays if n in result.needs)
        if not used_arrays:
            raise TypeError(f"{trace.name}: needs an array among its arguments; got none that is used.")
        group = groups.setdefault(used_arrays if not isinstance(result, Reduced) else i, [])
        if group and len(used_arrays) + len(group) + 1 > _OPERANDS:
            group = groups.setdefault((used_arrays, i), [])
        group.append(i)
    kernels = []
    for members in groups.values():
        parts = [results[i] for i in members]
        needs = frozenset[str]().union(*(p.needs for p in parts))
        inputs = ({n: d for n, d in kind.items() if n in needs} for kind in (arrays, numbers))
        kernels.append((FusedKernel(trace, parts, *inputs), members))
    return kernels
