"""Run a reduction over some axes of an array, with a monoid of ``reduce.metal`` or a user's monoid."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.promotion import DTYPES, is_float, kind_of
from ...engine import named
from ...program import Program
from ..planning.device import device_of
from ..planning.reduction_plan import axes_of_view, plan_reduction
from .copying import contiguous_copy, fill_with
from .launcher import Launch, no_value
from .programs import compile_templates

__all__ = ["ACCUMULATORS", "Monoid", "accumulator", "build", "reduce", "reduce_or_fill", "sum_dtype", "tag"]

DType = np.dtype[Any]
Shape = tuple[int, ...]

_PLANS = 4096
_VARIANTS = {"": "{}", "_first": "First<{}>", "_later": "Later<{}>", "_between": "Between<{}>"}
# The accumulator types in MSL, and the types that represent them in memory.
ACCUMULATORS: dict[str, DType] = {
    "float": np.dtype(np.float32),
    "int": np.dtype(np.int32),
    "uint": np.dtype(np.uint32),
    "long": np.dtype(np.int64),
    "ulong": np.dtype(np.uint64),
    "char": np.dtype(np.int8),
    "uchar": np.dtype(np.uint8),
    "short": np.dtype(np.int16),
    "ushort": np.dtype(np.uint16),
}


class Monoid(NamedTuple):
    """How ``reduce.metal`` combines elements; see "Monoids" there.

    Attributes
    ----------
    functor : str
        A struct template of ``reduce.metal`` or of `text`.
    element, result : str
        The types to read and to write, by their names in ``storage.h``.
    part, acc : str
        The MSL types of a lane's total and of the entire reduction's total.
    text : str
        MSL that defines the functor, if ``reduce.metal`` does not.
    """

    functor: str
    element: str
    result: str
    part: str
    acc: str
    text: str = ""

    @property
    def msl_name(self) -> str:
        """The functor's name in MSL."""
        return f"{self.functor}<{self.element}, {self.result}, {self.part}, {self.acc}>"


class _Stage(NamedTuple):
    """A dispatch, and the number of elements that it writes."""

    launch: Launch
    outputs: int
    dtype: DType


@functools.cache  # NumPy takes microseconds to name a dtype
def tag(dtype: DType) -> str:
    """Return a dtype's name in ``storage.h``; a bool is read as a byte."""
    return "uchar" if dtype == np.bool_ else DTYPES[dtype.name]


def accumulator(dtype: DType) -> str:
    """Return the MSL type in which to sum for a result's dtype: float for floats, else an integer of the same kind."""
    if is_float(dtype):
        return "float"
    is_signed = kind_of(dtype) == "i"
    if dtype.itemsize == 8:
        return "long" if is_signed else "ulong"
    return "int" if is_signed else "uint"


@functools.cache  # for the same reason as `tag`
def sum_dtype(dtype: DType) -> DType:
    """Return the dtype in which elements of a dtype are summed by default (array API, ``sum``)."""
    return dtype if is_float(dtype) else np.dtype(np.uint64 if kind_of(dtype) == "u" else np.int64)


def reduce(
    x: Array, axes: Shape, monoid: Monoid, result: DType, *, about: Array | float | None = None, scale: float = 1
) -> Array:
    """Reduce some axes of an array that is not empty along them.

    Parameters
    ----------
    x : Array
    axes : tuple of int
    monoid : Monoid
        Its `element` must be x's dtype, and its `result` the dtype `result`.
    result : numpy.dtype
    about : Array or float, optional
        The second argument of ``load``: a number, or contiguous float32 values of the result's shape.
    scale : float
        The second argument of ``finish``.

    Returns
    -------
    Array
        Contiguous, with the shape of the remaining axes.
    """
    reduced_axes = set(axes)
    shape = tuple(n for i, n in enumerate(x.shape) if i not in reduced_axes)
    if 0 in shape:
        return empty(shape, result, x.engine)
    has_own_center = isinstance(about, Array)
    form = (monoid, result, has_own_center, float(scale), x.engine.name)
    stages = _stages(x.dtype.itemsize, x.shape, x.strides, x.offset, axes, form)
    if stages is None:
        x = contiguous_copy(x.viewed(x.host.transpose((*(i for i in range(x.ndim) if i not in reduced_axes), *axes))))
        stages = _stages(x.dtype.itemsize, x.shape, x.strides, 0, tuple(range(len(shape), x.ndim)), form)
        if stages is None:
            raise AssertionError("contiguous rows can always be reduced")
    return _run(stages, x, shape, about)


def _run(stages: tuple[_Stage, ...], x: Array, shape: Shape, about: Array | float | None) -> Array:
    """Start the dispatches, each on the output of the previous one."""
    if isinstance(about, Array):
        value: Any = about
    else:
        value = no_value(x.device) if about is None else np.full(1, about, np.float32)
    for stage in stages:
        out = empty(shape if stage is stages[-1] else (stage.outputs,), stage.dtype, x.engine)
        stage.launch.start(x, value, out)
        x = out
    return x


def _shape_after(x: Array, axes: Shape, *, keepdims: bool) -> tuple[int, ...]:
    return tuple(1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes)


def reduce_or_fill(
    x: Array, axes: Shape, monoid: Monoid, result: DType, *, keepdims: bool, of_none: Any = None, caller: str = "",
    **options: Any,
) -> Array:
    """Reduce some axes of an array, which may be empty.

    Parameters
    ----------
    x, axes, monoid, result, **given
        As for `reduce`.
    keepdims : bool
        Whether to keep the axes, with length 1.
    of_none : number, optional
        The result if there are no elements.
    caller : str
        The name of the op, for errors.

    Raises
    ------
    ValueError
        If there are no elements and `of_none` is not given.
    """
    if 0 in x.shape:
        shape = _shape_after(x, axes, keepdims=keepdims)
        if of_none is None and 0 not in shape:
            message = f"{caller}: there are no elements to choose from: shape {x.shape}, reduced over axes {axes}."
            raise ValueError(message)
        return fill_with(empty(shape, result, x.engine), of_none or 0)
    result_array = reduce(x, axes, monoid, result, **options)
    return Array(
        result_array.block, result, _shape_after(x, axes, keepdims=True), None, 0,
    ) if keepdims else result_array  # fmt: skip


@functools.lru_cache(_PLANS)
def _stages(
    itemsize: int, shape: Shape, strides: Shape, offset: int, axes: Shape, form: tuple[Monoid, DType, bool, float, str]
) -> tuple[_Stage, ...] | None:
    """Plan a reduction and compile its kernels; return None if the array must be copied first."""
    monoid, result, has_own_center, scale, engine = form
    view = axes_of_view(shape, (s // itemsize for s in strides), axes)
    acc = ACCUMULATORS[monoid.acc]
    steps = plan_reduction(
        view, offset // itemsize, acc.itemsize, scale, device_of(named(engine).caps), has_center=has_own_center,
    )  # fmt: skip
    if steps is None:
        return None
    program = build(monoid, engine)
    stages = []
    for i, step in enumerate(steps):
        last = i == len(steps) - 1
        variant = ("" if last else "_first") if i == 0 else ("_later" if last else "_between")
        binary = program[step.kernel + variant].binary
        dtype = result if last else acc
        launch = Launch(binary, step.grid, step.threadgroup, (step.record,)).bind_records(named(engine))
        stages.append(_Stage(launch, step.outputs, dtype))
    return tuple(stages)


@functools.cache
def build(monoid: Monoid, engine: str) -> Program:
    """Compile a monoid's kernels, for each walk and for the first, last and middle stages. Each is built on demand."""
    sideways = ("rows_shared", "down") if device_of(named(engine).caps).waits else ("columns",)
    templates = {
        f"{kernel}{suffix}": f"reduce_{kernel}<{wrapper.format(monoid.msl_name)}>"
        for kernel in ("rows", "each", *sideways)
        for suffix, wrapper in _VARIANTS.items()
    }
    name = f"{monoid.functor.lower()}.metal"
    return compile_templates("reduce.metal", templates, engine, definitions=monoid.text, name=name)
