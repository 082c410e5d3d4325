"""`Elementwise`, an op that is a row of the table, and how it is called. ``elementwise_text.py`` writes its MSL."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array
from ...arrays.core import ArrayForm, contiguous_strides, form_of
from ...arrays.memory_pool import Pool, pool_of, round_size
from ...arrays.promotion import kind_of
from ...display import Source
from ...engine.base import Engine
from ...errors import ArgumentError
from ...plurals import quantity
from ...program import Program
from ..docstrings import stub_function
from ..fusion.tracing import Traced
from ..launching.copying import copy_into
from ..launching.launcher import Launch
from ..launching.programs import compile
from ..op import Op
from ..planning.device import NEVER, device_of
from ..planning.elementwise_plan import Strip, broadcast_strides, plan_elementwise
from .elementwise_text import Formula
from .op_info import OpInfo, row_of
from .operands import PreparedOperands, prepare_operands

__all__ = ["Elementwise", "strip"]

DType = np.dtype[Any]

_PLANS = 4096


class _Call(NamedTuple):
    """A planned call, which has only to allocate the result and launch; `launch` is None if the result is empty."""

    launch: Launch | None
    engine: Engine
    loop: DType
    result: DType
    shape: tuple[int, ...]
    size: int
    pool: Pool
    form: ArrayForm
    scalars: bool

    def fresh(self) -> Array:
        """Return an array for the result."""
        return Array(self.pool.take(self.size), self.result, self.shape, None, 0, self.form)


class Elementwise(Op):
    """An op that computes each element of its result from one element of each operand.

    Parameters
    ----------
    formula : Formula
        The op's MSL.
    info : OpInfo
        The op's NumPy equivalent, and its entry in the list of ops.
    """

    def __init__(self, formula: Formula, info: OpInfo) -> None:
        self.formula = formula
        self.operands = formula.operands
        self.masks = frozenset(formula.masks)
        self.parameters = formula.parameters
        self.kinds = formula.kinds
        self.domain = info.domain
        self._check = info.check
        self._count = len(formula.operands)
        self._defaults = _pack(formula.parameters)
        self._plans: dict[Any, _Call] = {}
        row = row_of(formula, info)
        super().__init__(stub_function(formula, row, dict(formula.parameters)), row)

    # --- kernels ---------------------------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        """The MSL that the op runs; a notebook shows it with syntax highlighting."""
        return Source("\n".join(self.formula.text(group) for group in self.formula.groups))

    def program(self, dtype: Any, engine: Engine) -> Program:
        """Return the program that computes in a dtype; each of its kernels is compiled at its first call."""
        device = device_of(engine.caps)
        group = self.formula.group(kind_of(dtype))
        text = self.formula.text(group, several=device.waits, streams=device.streams < NEVER)
        return compile(text, math=self.formula.math, engine=engine.name, name=self.name)

    # --- a call ----------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, out: Array | None = None, **options: Any) -> Any:
        """Start the op and return the array that it fills."""
        count = self._count
        operands = args[:count]
        values = self._values(args[count:], options) if options or len(args) != count else self._defaults
        if self._check is not None:
            self._check(self.name, operands)
        if out is not None:
            return self._start_into(operands, out, values)
        key: tuple[Any, ...] = ()
        for a in operands:  # before Python 3.12 a comprehension costs a call
            key += ((a.form or a.shared_form()) if type(a) is Array else type(a),)
        plan = self._plans.get(key)
        if plan is None:
            return self._first_call(key, operands, values)
        launch, _, _, result, shape, size, pool, form, scalars = plan  # looking up one attribute takes as long
        if scalars or launch is None:
            return self._start(plan, operands, plan.fresh(), values)
        array = Array(pool.take(size), result, shape, None, 0, form)
        launch.start_on((*operands, array), values)
        return array

    def _values(self, rest: tuple[Any, ...], options: dict[str, Any]) -> tuple[bytearray, ...]:
        """Pack the parameters of a call."""
        names = tuple(self.parameters)
        values = {**self.parameters, **dict(zip(names, rest, strict=False)), **options}
        is_repeated = len(rest) + len(options) != len({*names[: len(rest)], *options})
        if is_repeated or len(rest) > len(names) or len(values) != len(names):
            keywords = [f"{k}={v!r}" for k, v in options.items()]
            call_text = ", ".join([*["…"] * self._count, *map(repr, rest), *keywords])
            raise TypeError(f"{self.name}: takes {self.__signature__}; got ({call_text}).")
        try:
            return _pack(values)
        except (struct.error, TypeError, OverflowError):
            raise TypeError(f"{self.name}: {', '.join(names)} must be numbers; got {values}.") from None

    def _first_call(self, key: Any, operands: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
        placeholder = next((o for o in operands if isinstance(o, Traced)), None)
        if placeholder is not None:
            return placeholder.trace.apply(self.formula, operands, values)
        prepared = self._prepare(operands, None)
        plan = self._plan(prepared, None)
        self._keep(key, plan, prepared.operands, operands)
        return self._start(plan, tuple(prepared.operands), plan.fresh(), values)

    def _prepare(self, operands: tuple[Any, ...], out: Array | None) -> PreparedOperands:
        if len(operands) < self._count:
            raise TypeError(f"{self.name}: takes {self.__signature__}; got {quantity(len(operands), 'operand')}.")
        return prepare_operands(self.formula, self.row.dtypes, operands, out)

    def _keep(self, key: Any, plan: _Call, prepared: list[Any], operands: tuple[Any, ...]) -> None:
        """Store a plan for calls of the same form, unless operands had to be converted first."""
        if all(r is o or type(r) is not Array for r, o in zip(prepared, operands, strict=True)):
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            self._plans[key] = plan

    def _plan(self, prepared: PreparedOperands, out: Array | None) -> _Call:
        ready, shape, loop, result, engine = prepared
        launch = None if 0 in shape else self._launch(prepared, out)
        size = round_size(math.prod(shape) * result.itemsize)
        scalars = any(type(a) is not Array for a in ready)
        form = form_of(result, shape, contiguous_strides(shape, result.itemsize), 0, engine)
        return _Call(
            launch=launch, engine=engine, loop=loop, result=result, shape=shape, size=size, pool=pool_of(engine),
            form=form, scalars=scalars,
        )  # fmt: skip

    def _launch(self, prepared: PreparedOperands, out: Array | None) -> Launch:
        ready, shape, loop, result, engine = prepared
        strips = [strip(a, shape) for a in ready]
        strips.append(_fresh_strip(shape) if out is None else strip(out, shape))
        nbytes = sum(a.itemsize for a in ready if type(a) is Array) + result.itemsize
        plan = plan_elementwise(shape, strips, device_of(engine.caps), nbytes)
        kernel = self.program(loop, engine)[self.formula.kernel(loop.name, plan.kinds)]
        return Launch(kernel.binary, plan.grid, plan.threadgroup, (plan.record,)).bind_records(engine)

    def _start(self, plan: _Call, operands: tuple[Any, ...], out: Array, values: tuple[Any, ...]) -> Array:
        if plan.launch is not None:
            if plan.scalars:
                operands = tuple(o if type(o) is Array else np.array(o, plan.loop) for o in operands)
            plan.launch.start_on((*operands, out), values)
        return out

    # --- into an existing array -----------------------------------------------------------------------

    def _start_into(self, operands: tuple[Any, ...], out: Array, values: tuple[Any, ...]) -> Array:
        if type(out) is not Array:
            raise TypeError(f"{self.name}: out must be a metalnb array; got {type(out).__name__}.")
        block, overlaps = out.block, False
        forms: list[Any] = []
        for a in operands:
            if type(a) is not Array:
                forms.append(type(a))
                continue
            forms.append(a.form or a.shared_form())
            if a is not out and (a.block is block or block.viewers) and _overlaps(a, out):  # usually no call is needed
                overlaps = True
        forms.append(out.form or out.shared_form())
        key = tuple(forms)
        plan = None if overlaps else self._plans.get(key)
        if plan is not None and plan.engine is block.engine:
            if plan.scalars or plan.launch is None:
                return self._start(plan, operands, out, values)
            plan.launch.start_on((*operands, out), values)
            return out
        prepared = self._prepare(operands, out)
        self._check_out(out, prepared.shape, prepared.result)
        if overlaps or prepared.result != out.dtype:  # do not overwrite elements that are still to be read
            plan = self._plan(prepared, None)
            return copy_into(out, self._start(plan, tuple(prepared.operands), plan.fresh(), values))
        plan = self._plan(prepared, out)
        self._keep(key, plan, prepared.operands, operands)
        return self._start(plan, tuple(prepared.operands), out, values)

    def _check_out(self, out: Array, shape: tuple[int, ...], result: DType) -> None:
        if shape != out.shape:
            raise ArgumentError(f"{self.name}: out must have the result's shape {shape}; got {out.shape}.")
        if out.repeats:
            raise ArgumentError(f"{self.name}: out repeats its elements (strides {out.strides}). Pass out.copy().")
        if result != out.dtype and not np.can_cast(result, out.dtype, "same_kind"):
            raise TypeError(f"{self.name}: a result of {result} does not fit into out of {out.dtype}. "
                            f"Omit out, or pass one of {result}.")  # fmt: skip


def strip(operand: Any, shape: tuple[int, ...]) -> Strip:
    """Return an operand's strides over the result's shape; those of a scalar are 0."""
    if type(operand) is not Array:
        return Strip((0,) * len(shape), 0)
    size = operand.dtype.itemsize
    strides = broadcast_strides(operand.strides, operand.shape, shape)
    return Strip(tuple(s // size for s in strides), operand.offset // size)


def _fresh_strip(shape: tuple[int, ...]) -> Strip:
    step, strides = 1, []
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return Strip(tuple(reversed(strides)), 0)


def _overlaps(a: Array, out: Array) -> bool:
    """Return whether writing one element of `out` may change an element of `a` that is still to be read."""
    if a.block is not out.block and not (a.block.shared and out.block.shared):
        return False
    same = (a.offset, a.strides, a.shape, a.dtype) == (out.offset, out.strides, out.shape, out.dtype)
    return not (same and a.block.host is out.block.host) and np.may_share_memory(a.host, out.host)


def _pack(values: Mapping[str, Any]) -> tuple[bytearray, ...]:
    return tuple(bytearray(struct.pack("<f", v)) for v in values.values())
