"""Run a reduction: a monoid of ``reduce.metal``, or a user's own, over some axes of an array."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ..arrays.array import Array, empty
from ..arrays.memory import Block
from ..arrays.stream import start
from ..arrays.types import DTYPES, is_float, kind_of
from ..engine.base import Grid
from ..program import Program
from .build import compile
from .folds import axes_of_view, plan
from .moving import copied

__all__ = ["ACCUMULATORS", "Monoid", "accumulator", "build", "reduced", "tag"]

DType = np.dtype[Any]
Shape = tuple[int, ...]

_PLANS = 4096
_VARIANTS = {"": "{}", "_first": "First<{}>", "_later": "Later<{}>", "_between": "Between<{}>"}
# MSL's types that are added up in, and what stands for them in memory.
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
_NO_VALUE = np.zeros(1, np.float32)


class Monoid(NamedTuple):
    """What ``reduce.metal`` is told to reduce with; see "Monoids" there.

    Attributes
    ----------
    functor : str
        A struct template of ``reduce.metal`` or of `text`.
    element, result : str
        What is read and what is written, as ``storage.h`` names them.
    part, acc : str
        MSL's types that a lane and then the whole reduction are added up in.
    text : str
        MSL that defines the functor, when it is not one of the file's.
    """

    functor: str
    element: str
    result: str
    part: str
    acc: str
    text: str = ""

    @property
    def spelled(self) -> str:
        """The functor as MSL names it."""
        return f"{self.functor}<{self.element}, {self.result}, {self.part}, {self.acc}>"


class _Launch(NamedTuple):
    binary: Any
    record: Any
    grid: Grid
    threadgroup: Grid
    outputs: int
    dtype: DType


@functools.cache  # NumPy takes microseconds to name a dtype
def tag(dtype: DType) -> str:
    """Name a dtype as ``storage.h`` does; a bool is read as the byte that it is."""
    return "uchar" if dtype == np.bool_ else DTYPES[dtype.name]


def accumulator(dtype: DType) -> str:
    """Name the MSL type that sums for a result of a dtype are kept in: float for floats, integers of their own kind."""
    if is_float(dtype):
        return "float"
    signed = kind_of(dtype) == "i"
    if dtype.itemsize == 8:
        return "long" if signed else "ulong"
    return "int" if signed else "uint"


def reduced(
    x: Array, axes: Shape, monoid: Monoid, result: DType, *, about: Array | float | None = None, scale: float = 1
) -> Array:
    """Reduce some axes of an array that is not empty along them.

    Parameters
    ----------
    x : Array
    axes : tuple of int
    monoid : Monoid
        Its `element` is x's dtype, its `result` the dtype `result`.
    result : numpy.dtype
    about : Array or float, optional
        What ``load`` is given beside each element: a number, or float32 values of the result's shape, without gaps.
    scale : float
        What ``finish`` is given beside the total.

    Returns
    -------
    Array
        Of the shape that is left, without gaps.
    """
    gone = set(axes)
    shape = tuple(n for i, n in enumerate(x.shape) if i not in gone)
    if 0 in shape:
        return empty(shape, result, x.engine)
    own = isinstance(about, Array)
    form = (monoid, result, own, float(scale), x.engine.name)
    launches = _launches(x.dtype.itemsize, x.shape, x.strides, x.offset, axes, form)
    if launches is None:
        x = copied(x.viewed(x.host.transpose((*(i for i in range(x.ndim) if i not in gone), *axes))))
        launches = _launches(x.dtype.itemsize, x.shape, x.strides, 0, tuple(range(len(shape), x.ndim)), form)
        if launches is None:
            raise AssertionError("rows without gaps can be reduced")
    return _run(launches, x, shape, about)


def _run(launches: tuple[_Launch, ...], x: Array, shape: Shape, about: Array | float | None) -> Array:
    """Start the dispatches, each on what the one before it has written."""
    engine = x.block.engine
    value, held = _NO_VALUE, tuple[Block, ...]()
    if isinstance(about, Array):
        value, held = about.block.host, (about.block,)
    elif about is not None:
        value = np.full(1, about, np.float32)
    block = x.block
    for launch in launches:
        last = launch is launches[-1]
        out = empty(shape if last else (launch.outputs,), launch.dtype, engine)
        arguments = [block.host, value, out.block.host, launch.record]
        start(engine, launch.binary, arguments, launch.grid, launch.threadgroup, (block, *held, out.block))
        block = out.block
    return out


@functools.lru_cache(_PLANS)
def _launches(
    itemsize: int, shape: Shape, strides: Shape, offset: int, axes: Shape, form: tuple[Monoid, DType, bool, float, str]
) -> tuple[_Launch, ...] | None:
    """Plan a reduction and compile what it needs; None when the array must be copied first."""
    monoid, result, own, scale, engine = form
    view = axes_of_view(shape, (s // itemsize for s in strides), axes)
    acc = ACCUMULATORS[monoid.acc]
    steps = plan(view, offset // itemsize, acc.itemsize, scale, own=own)
    if steps is None:
        return None
    program = build(monoid, engine)
    launches = []
    for i, step in enumerate(steps):
        last = i == len(steps) - 1
        variant = ("" if last else "_first") if i == 0 else ("_later" if last else "_between")
        binary = program[step.kernel + variant].binary
        dtype = result if last else acc
        launches.append(_Launch(binary, step.record, step.grid, step.threadgroup, step.outputs, dtype))
    return tuple(launches)


@functools.cache
def build(monoid: Monoid, engine: str) -> Program:
    """Compile a monoid's kernels: each way to walk, first, last and in between. A kernel is built when it is wanted."""
    lines = ["#include <metalnb/reduce.metal>", monoid.text]
    for kernel in ("rows", "columns", "each"):
        for suffix, wrapper in _VARIANTS.items():
            made = f"reduce_{kernel}<{wrapper.format(monoid.spelled)}>"
            lines.append(f'template [[host_name("{kernel}{suffix}")]] [[kernel]] decltype({made}) {made};')
    return compile("\n".join(lines) + "\n", math="precise", engine=engine, name=f"{monoid.functor.lower()}.metal")
