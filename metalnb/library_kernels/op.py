"""The record of an op, which states once everything about the op except its code.

An op is one row. From the row come the function, its docstring, its tests (``tests/library/test_library.py``), its
benchmark (``benchmarks/library.py``), its line in the package's ``README.md``, and the NumPy functions that it
implements. The calls that the tests make are in ``samples``. There are two ways to write a row:

* an elementwise op is an `Elementwise`: its MSL as a `Formula`, and its other properties as `OpInfo`; any other op is a
  plain function of arrays under the decorator `op`::

      @op("reduction", reference=np.sum, dtypes=NUMERIC, kernels=("reduce.metal",))
      def sum(x, /, *, axis=None, dtype=None, keepdims=False):
          '''Return the sum of the elements. …'''

`table.py` gathers all rows; a module of rows must be named there.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..display import Source
from .launching.programs import kernel_source

__all__ = ["ALL", "BOOL", "FLOATS", "INTEGERS", "NUMERIC", "SIGNED", "UNSIGNED", "LeastTraffic", "Op", "OpRow", "op"]

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float16", "bfloat16")
BOOL = ("bool",)
INTEGERS = SIGNED + UNSIGNED
NUMERIC = INTEGERS + FLOATS
ALL = BOOL + NUMERIC


class LeastTraffic(NamedTuple):
    """The least bytes that a call must move, and its operations.

    Attributes
    ----------
    bytes : int
        Each input read once, each output written once.
    flops : int
        Arithmetic operations.
    """

    bytes: int
    flops: int = 0


@dataclass(frozen=True)
class OpRow:
    """The description of an op.

    Attributes
    ----------
    family : str
        ``elementwise``, ``activation``, ``neural``, ``reduction``, ``scan``, ``linear``, ``moving``, ``creation``,
        ``sorting``, ``searching``, ``sets``; ``own`` for an op of the user.
    reference : callable
        The same op in NumPy, which receives float64 for floats.
    dtypes : tuple of str
        The dtypes of its arrays.
    tolerance : mapping of str to float
        Allowed error for each floating dtype, in units in the last place of that dtype at the result's size;
        integers are exact.
    kernels : tuple of str
        The ``.metal`` files that it runs, the main one first.
    aliases : tuple of str
        Further names of the function.
    numpy : tuple of callable
        The NumPy functions that the op implements. The reference is included if it is a NumPy function.
    flops : float
        Arithmetic operations for each element of the result.
    cite : str
        The source of the definition, unless it is the array API standard under the same name.
    native : bool
        Whether the reference receives floats in the dtype itself instead of float64.
    parts : tuple of Op
        Ops that the op calls; its source includes their MSL.
    size : callable, optional
        Computes the magnitude that the tolerance is relative to, from the reference's arguments (in float64) and its
        result. For sums that cancel it is the magnitude of the terms; by default it is that of the result.
    """

    family: str
    reference: Callable[..., Any]
    dtypes: tuple[str, ...] = ALL
    tolerance: Mapping[str, float] = field(default_factory=dict)
    kernels: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    numpy: tuple[Callable[..., Any], ...] = ()
    flops: float = 1
    cite: str = ""
    native: bool = False
    parts: tuple[Op, ...] = ()
    size: Callable[..., Any] | None = None


class Op:
    """A function of the library: call it with arrays. `row` describes it, `source` is the MSL that it runs."""

    __name__: str

    def __init__(self, function: Callable[..., Any], row: OpRow) -> None:
        functools.update_wrapper(self, function)
        self.row = row
        self.__signature__ = inspect.signature(function)
        self._function = function

    @property
    def name(self) -> str:
        """The op's name."""
        return self.__name__

    @property
    def doc(self) -> str:
        """The first line of its docstring."""
        return (self.__doc__ or "").strip().split("\n", 1)[0]

    @property
    def source(self) -> str:
        """The MSL that it runs; a notebook shows it in colors."""
        return Source("\n".join([*(p.source for p in self.row.parts), *(kernel_source(k) for k in self.row.kernels)]))

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Start the op and return the arrays that it fills."""
        if args and hasattr(type(args[0]), "__metal_traced__"):  # part of a fused function
            traced = args[0].__metal_traced__(self.name, args, options)
            if traced is not NotImplemented:
                return traced
        try:
            return self._function(*args, **options)
        except TypeError:
            if "dim" in options:  # PyTorch's name for axis
                raise TypeError(f"{self.name}: dim={options['dim']} is axis={options['dim']} here.") from None
            raise

    def __metal_traffic__(self, *args: Any, **options: Any) -> LeastTraffic:
        """Return the least bytes that a call must move: those of its arguments and results."""
        result = self(*args, **options)
        inputs = [a for a in (*args, *options.values()) if hasattr(a, "nbytes")]
        outputs = [r for r in (result if isinstance(result, (tuple, list)) else (result,)) if hasattr(r, "nbytes")]
        count = max((a.size for a in (*inputs, *outputs)), default=0)
        return LeastTraffic(sum(a.nbytes for a in (*inputs, *outputs)), int(self.row.flops * count))

    def __repr__(self) -> str:
        return f"<metalnb.{self.name}{self.__signature__}: {self.doc}>"

    def __reduce__(self) -> str:
        return self.name


def op(family: str, **row: Any) -> Callable[[Callable[..., Any]], Op]:
    """Turn a function into an op; `OpRow` lists the properties that the decorator can declare."""

    def decorate(function: Callable[..., Any]) -> Op:
        return Op(function, OpRow(family, **row))

    return decorate
