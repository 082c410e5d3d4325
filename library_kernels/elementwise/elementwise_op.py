"""Elementwise ops: a row, and what a call of it does. The kernels' text is made in ``elementwise_text.py``."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from ...arrays.array import Array
from ...arrays.core import ArrayForm, contiguous_strides, form_of
from ...arrays.memory_pool import Pool, pool_of, rounded
from ...arrays.promotion import kind_of
from ...display import Source
from ...engine.base import Engine
from ...errors import ArgumentError
from ...program import Program
from ..docstrings import described
from ..launching.copying import copy_into
from ..launching.launcher import Launch
from ..launching.programs import compile
from ..op import ALL, Op, OpRow
from ..planning.cuts import NEVER, device_of
from ..planning.elementwise_plan import Strip, plan_elementwise, stretched
from .elementwise_text import LOOPS, Formula
from .operands import Taken, take
from .tracing import Traced

__all__ = ["Elementwise", "strip"]

DType = np.dtype[Any]
Check = Callable[[str, tuple[Any, ...]], None]

_PLANS = 4096
_HALVES = {"float16": 2.0**-13, "bfloat16": 2.0**-16}  # an ulp of float32 in ulp of these
_OPERANDS = {1: ("x",), 2: ("x", "y"), 3: ("x", "y", "z")}


class _Call(NamedTuple):
    """A planned call: allocating the result and launching remain; `launch` is None for an empty result."""

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
    """An op that makes each element of its result from one element of each operand.

    Parameters
    ----------
    name : str
    expression : str or mapping of str to str
        MSL, of ``x``, ``y``, ``z`` and the parameters; ``T`` is the type that is computed in. A mapping gives one for
        each group of kinds: ``{"f": "floor(x / y)", "iu": "floor_quotient(x, y)"}``.
    reference : callable
        The same in NumPy.
    doc : str
        One line.
    kinds : str
        Which loops there are, when `expression` is not a mapping: ``b`` bool, ``i`` signed, ``u`` unsigned, ``f``
        floating. An op of floats alone takes integers and bool as float32.
    result : {"same", "bool"}
    operands : int or tuple of str
        How many arrays, or their names; those named in `masks` are bool whatever the loop is.
    parameters : mapping of str to float
        Scalars with their defaults, which the kernel is given as ``constant float&``.
    ulp : float
        The error allowed for floats, in units in the last place of float32; for narrower floats, what remains of it
        after rounding the result. 0.5 is "correctly rounded".
    domain : tuple of float
        Where floats for the benchmark, and the first samples, are taken from.
    math : {"precise", "fast"}
        How it is compiled.
    check : callable, optional
        ``check(name, operands)`` looks at every call's operands, and raises.
    preamble : str
        MSL that precedes the kernel.
    size, native, cite, aliases, numpy, flops, family
        As in `OpRow`.
    """

    def __init__(  # noqa: PLR0913  (a row has many columns)
        self,
        name: str,
        expression: str | Mapping[str, str],
        reference: Callable[..., Any],
        doc: str,
        *,
        kinds: str = "f",
        result: Literal["same", "bool"] = "same",
        operands: int | tuple[str, ...] = 1,
        masks: tuple[str, ...] = (),
        parameters: Mapping[str, float] | None = None,
        ulp: float = 4,
        domain: tuple[float, float] = (-10, 10),
        math: Literal["precise", "fast"] = "precise",
        check: Check | None = None,
        preamble: str = "",
        size: Callable[..., Any] | None = None,
        native: bool = False,
        cite: str = "",
        family: str = "elementwise",
        aliases: tuple[str, ...] = (),
        numpy: tuple[Callable[..., Any], ...] = (),
        flops: float = 1,
    ) -> None:
        groups = {kinds: expression} if isinstance(expression, str) else dict(expression)
        names = _OPERANDS[operands] if isinstance(operands, int) else operands
        self.formula = Formula(name, doc, groups, names, masks, dict(parameters or {}), result, preamble)
        self.operands = names
        self.masks = frozenset(masks)
        self.parameters = self.formula.parameters
        self.kinds = self.formula.kinds
        self.domain = domain
        self.math = math
        self._check = check
        self._count = len(names)
        self._defaults = _packed(self.parameters)
        self._plans: dict[Any, _Call] = {}
        takes = [d for k in self.kinds for d in LOOPS[k]]
        row = OpRow(
            family, reference, ALL if self.kinds == "f" else tuple(d for d in ALL if d in takes),
            _tolerance(ulp) if result == "same" and "f" in self.kinds else {},
            ("elementwise.h",), aliases, _answers(reference, numpy), flops, cite, native, (), size,
        )  # fmt: skip
        super().__init__(described(self.formula, row, dict(self.parameters)), row)

    # --- kernels ---------------------------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        """The MSL that it runs; in a notebook it is shown in colours."""
        return Source("\n".join(self.formula.text(group) for group in self.formula.groups))

    def program(self, dtype: Any, engine: Engine) -> Program:
        """Return the program for a dtype to compute in; each of its kernels is compiled at its first call."""
        device = device_of(engine.caps)
        group = self.formula.group(kind_of(dtype))
        text = self.formula.text(group, several=device.waits, streams=device.streams < NEVER)
        return compile(text, math=self.math, engine=engine.name, name=self.name)

    # --- a call ----------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, out: Array | None = None, **options: Any) -> Any:
        """Start the op; return the array that it fills."""
        count = self._count
        operands = args[:count]
        values = self._values(args[count:], options) if options or len(args) != count else self._defaults
        if self._check is not None:
            self._check(self.name, operands)
        if out is not None:
            return self._into(operands, out, values)
        key: tuple[Any, ...] = ()
        for a in operands:  # a comprehension would cost a call
            key += ((a.form or a.formed()) if type(a) is Array else type(a),)
        plan = self._plans.get(key)
        if plan is None:
            return self._planned(key, operands, values)
        launch, _, _, result, shape, size, pool, form, scalars = plan  # at once: each name would cost as much
        if scalars or launch is None:
            return self._start(plan, operands, plan.fresh(), values)
        made = Array(pool.take(size), result, shape, None, 0, form)
        launch.start_on((*operands, made), values)
        return made

    def _values(self, rest: tuple[Any, ...], options: dict[str, Any]) -> tuple[bytearray, ...]:
        """Pack the parameters of a call."""
        names = tuple(self.parameters)
        chosen = {**self.parameters, **dict(zip(names, rest, strict=False)), **options}
        twice = len(rest) + len(options) != len({*names[: len(rest)], *options})
        if twice or len(rest) > len(names) or len(chosen) != len(names):
            named = [f"{k}={v!r}" for k, v in options.items()]
            given = ", ".join([*["…"] * self._count, *map(repr, rest), *named])
            raise TypeError(f"{self.name}: takes {self.__signature__}; got ({given}).")
        try:
            return _packed(chosen)
        except (struct.error, TypeError, OverflowError):
            raise TypeError(f"{self.name}: {', '.join(names)} must be numbers; got {chosen}.") from None

    def _planned(self, key: Any, operands: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
        traced = next((o for o in operands if isinstance(o, Traced)), None)
        if traced is not None:
            return traced.trace.apply(self.formula, operands, values)
        taken = self._take(operands, None)
        plan = self._plan(taken, None)
        self._keep(key, plan, taken.ready, operands)
        return self._start(plan, tuple(taken.ready), plan.fresh(), values)

    def _take(self, operands: tuple[Any, ...], out: Array | None) -> Taken:
        if len(operands) < self._count:
            raise TypeError(f"{self.name}: takes {self.__signature__}; got {len(operands)} operands.")
        return take(self.formula, self.row.dtypes, operands, out)

    def _keep(self, key: Any, plan: _Call, ready: list[Any], operands: tuple[Any, ...]) -> None:
        """Remember a plan for calls alike, unless it is for operands that had to be converted first."""
        if all(r is o or type(r) is not Array for r, o in zip(ready, operands, strict=True)):
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            self._plans[key] = plan

    def _plan(self, taken: Taken, out: Array | None) -> _Call:
        ready, shape, loop, result, engine = taken
        launch = None if 0 in shape else self._launch(taken, out)
        size = rounded(math.prod(shape) * result.itemsize)
        scalars = any(type(a) is not Array for a in ready)
        form = form_of(result, shape, contiguous_strides(shape, result.itemsize), 0, engine)
        return _Call(launch, engine, loop, result, shape, size, pool_of(engine), form, scalars)

    def _launch(self, taken: Taken, out: Array | None) -> Launch:
        ready, shape, loop, result, engine = taken
        strips = [strip(a, shape) for a in ready]
        strips.append(_fresh(shape) if out is None else strip(out, shape))
        nbytes = sum(a.itemsize for a in ready if type(a) is Array) + result.itemsize
        planned = plan_elementwise(shape, strips, device_of(engine.caps), nbytes)
        kernel = self.program(loop, engine)[self.formula.kernel(loop.name, planned.kinds)]
        return Launch(kernel.binary, planned.grid, planned.threadgroup, (planned.record,)).kept(engine)

    def _start(self, plan: _Call, operands: tuple[Any, ...], out: Array, values: tuple[Any, ...]) -> Array:
        if plan.launch is not None:
            if plan.scalars:
                operands = tuple(o if type(o) is Array else np.array(o, plan.loop) for o in operands)
            plan.launch.start_on((*operands, out), values)
        return out

    # --- into an array that is there already -----------------------------------------------------------------------

    def _into(self, operands: tuple[Any, ...], out: Array, values: tuple[Any, ...]) -> Array:
        if type(out) is not Array:
            raise TypeError(f"{self.name}: out must be a metalnb array; got {type(out).__name__}.")
        block, clash = out.block, False
        forms: list[Any] = []
        for a in operands:
            if type(a) is not Array:
                forms.append(type(a))
                continue
            forms.append(a.form or a.formed())
            if a is not out and (a.block is block or block.viewers) and _clash(a, out):  # usually no call is needed
                clash = True
        forms.append(out.form or out.formed())
        key = tuple(forms)
        plan = None if clash else self._plans.get(key)
        if plan is not None and plan.engine is block.engine:
            if plan.scalars or plan.launch is None:
                return self._start(plan, operands, out, values)
            plan.launch.start_on((*operands, out), values)
            return out
        taken = self._take(operands, out)
        self._fits(out, taken.shape, taken.result)
        if clash or taken.result != out.dtype:  # elements still to be read must not be overwritten
            plan = self._plan(taken, None)
            return copy_into(out, self._start(plan, tuple(taken.ready), plan.fresh(), values))
        plan = self._plan(taken, out)
        self._keep(key, plan, taken.ready, operands)
        return self._start(plan, tuple(taken.ready), out, values)

    def _fits(self, out: Array, shape: tuple[int, ...], result: DType) -> None:
        if shape != out.shape:
            message = f"{self.name}: the result has shape {shape}, out has {out.shape}. Pass an out of {shape}."
            raise ArgumentError(message)
        if out.repeats:
            raise ArgumentError(f"{self.name}: out repeats its elements (strides {out.strides}). Pass out.copy().")
        if result != out.dtype and not np.can_cast(result, out.dtype, "same_kind"):
            raise TypeError(f"{self.name}: a result of {result} does not fit into out of {out.dtype}. "
                            f"Omit out, or pass one of {result}.")  # fmt: skip


def strip(operand: Any, shape: tuple[int, ...]) -> Strip:
    """Lay an operand over the result's shape; a scalar is the same everywhere."""
    if type(operand) is not Array:
        return Strip((0,) * len(shape), 0)
    size = operand.dtype.itemsize
    strides = stretched(operand.strides, operand.shape, shape)
    return Strip(tuple(s // size for s in strides), operand.offset // size)


def _fresh(shape: tuple[int, ...]) -> Strip:
    step, strides = 1, []
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return Strip(tuple(reversed(strides)), 0)


def _clash(a: Array, out: Array) -> bool:
    """Return whether writing one element of `out` may change another one of `a` that is still to be read."""
    if a.block is not out.block and not (a.block.shared and out.block.shared):
        return False
    same = (a.offset, a.strides, a.shape, a.dtype) == (out.offset, out.strides, out.shape, out.dtype)
    return not (same and a.block.host is out.block.host) and np.may_share_memory(a.host, out.host)


def _tolerance(ulp: float) -> dict[str, float]:
    return {"float32": ulp, **{dtype: 0.5 + ulp * part for dtype, part in _HALVES.items()}}


def _packed(values: Mapping[str, Any]) -> tuple[bytearray, ...]:
    return tuple(bytearray(struct.pack("<f", v)) for v in values.values())


def _answers(reference: Callable[..., Any], numpy: tuple[Callable[..., Any], ...]) -> tuple[Callable[..., Any], ...]:
    """Return NumPy's functions that an op implements: the reference, when it is one of them."""
    return (*((reference,) if isinstance(reference, np.ufunc) else ()), *numpy)
