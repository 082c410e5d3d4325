"""The methods of an array: each is the function of the same name, with NumPy's habits of calling it."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .core import Core
from .implementations import implementations
from .promotion import as_dtype, kind_of

__all__ = ["Methods"]


def _named(method: Any, name: str, op: str) -> Any:
    method.__name__, method.__qualname__ = name, f"Array.{name}"
    method.__doc__ = f"As `metalnb.{op}` of this array."
    return method


def _over(op: str, name: str | None = None) -> Any:
    """Make the method of a reduction: NumPy lets the axis go by position, the array API by name only."""

    def method(self: Any, axis: Any = None, **options: Any) -> Any:
        return implementations[op](self, axis=axis, **options)

    return _named(method, name or op, op)


def _spread(op: str, name: str | None = None) -> Any:
    """Make the method of a variance: NumPy's ``ddof`` is the array API's ``correction``."""

    def method(
        self: Any, axis: Any = None, *, correction: float = 0.0, ddof: float | None = None, **options: Any
    ) -> Any:
        return implementations[op](self, axis=axis, correction=correction if ddof is None else ddof, **options)

    return _named(method, name or op, op)


def _as(op: str, name: str | None = None) -> Any:
    """Make a method from a function that takes this array first."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return implementations[op](self, *args, **options)

    return _named(method, name or op, op)


def _many(given: tuple[Any, ...]) -> tuple[int, ...]:
    """Read ``f(2, 3)`` like ``f((2, 3))``."""
    return tuple(given[0]) if len(given) == 1 and hasattr(given[0], "__iter__") else given


class Methods(Core):
    """The methods of an `Array`: NumPy's names, and the array API's."""

    __slots__ = ()

    sum, prod, mean = _over("sum"), _over("prod"), _over("mean")
    max, min = _over("max"), _over("min")
    std, var = _spread("std"), _spread("var")
    any, all = _over("any"), _over("all")
    argmax, argmin = _over("argmax"), _over("argmin")
    cumsum, cumprod = _over("cumulative_sum", "cumsum"), _over("cumulative_prod", "cumprod")
    astype, repeat, swapaxes = _as("astype"), _as("repeat"), _as("swapaxes")
    clip, take, conj = _as("clip"), _as("take"), _as("conj")
    nonzero, searchsorted = _as("nonzero"), _as("searchsorted")

    @property
    def real(self) -> Self:
        """The real part: the array itself."""
        return self

    @property
    def imag(self) -> Self:
        """The imaginary part: zeros."""
        zeros: Self = implementations["imag"](self)
        return zeros

    def round(self, decimals: int = 0, *, out: Any = None) -> Any:
        """Return it rounded to decimals, as NumPy's method does: halves go to the even one.

        With decimals it is scaled by a power of ten, rounded and scaled back, in its own dtype.

        Raises
        ------
        TypeError
            For integers before the point: negative decimals of an integer array.
        """
        if decimals == 0 or kind_of(self.dtype) != "f":
            if decimals < 0:
                raise TypeError(f"round: {self.dtype} has no decimals to the left. Pass x.astype(mnb.float32).")
            return implementations["round"](self, out=out)
        scale = 10.0 ** abs(decimals)
        there, back = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
        whole = implementations["round"](implementations[there](self, scale))
        return implementations[back](whole, scale, out=out)

    @property
    def T(self) -> Self:  # noqa: N802  (the array API's name)
        """The view with its axes reversed: the transpose of a matrix.

        Raises
        ------
        ValueError
            When it has other than two axes (array API).
        """
        if len(self.shape) != 2:
            raise ValueError(f"T: needs 2 axes; got shape {self.shape}. Use x.mT, or mnb.permute_dims(x, axes).")
        return self.viewed(self.host.T)

    @property
    def mT(self) -> Self:  # noqa: N802  (the array API's name)
        """The view with the last two axes exchanged.

        Raises
        ------
        ValueError
            When it has fewer than two axes.
        """
        if len(self.shape) < 2:
            raise ValueError(f"mT: needs at least 2 axes; got shape {self.shape}.")
        return self.viewed(self.host.swapaxes(-1, -2))

    def item(self, *index: int) -> Any:
        """Return one element as a Python scalar; without an index, the only one."""
        return self.read().item(*index)

    def tolist(self) -> Any:
        """Return nested lists of Python scalars."""
        return self.read().tolist()

    def tobytes(self) -> bytes:
        """Return the elements' bytes, last axis fastest."""
        return self.read().tobytes()

    def copy(self) -> Self:
        """Return an array of the same elements with memory of its own."""
        copied: Self = implementations["astype"](self, self.dtype)
        return copied

    def reshape(self, *shape: Any, copy: bool | None = None) -> Self:
        """Return the elements in another shape, as `metalnb.reshape`: ``reshape(2, -1)`` or ``reshape((2, -1))``."""
        shaped: Self = implementations["reshape"](self, _many(shape), copy=copy)
        return shaped

    def ravel(self) -> Self:
        """Return the elements as one row: a view where possible."""
        return self.reshape(-1)

    def flatten(self) -> Self:
        """Return a copy of the elements as one row."""
        return self.reshape(-1, copy=True)

    def transpose(self, *axes: Any) -> Self:
        """Return the view with its axes in another order, by default reversed."""
        named = axes if len(axes) != 1 or axes[0] is not None else ()
        order = _many(named) if named else tuple(reversed(range(self.ndim)))
        turned: Self = implementations["permute_dims"](self, order)
        return turned

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self:
        """Return a view of the diagonals, by default of the first two axes, as NumPy's method does."""
        found: Self = implementations["diagonal"](self, offset, axis1, axis2)
        return found

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Self:
        """Return the sums of the diagonals, by default of the first two axes, as NumPy's method does."""
        found: Self = implementations["trace"](self, offset=offset, axis1=axis1, axis2=axis2, dtype=dtype)
        return found

    def squeeze(self, axis: Any = None) -> Self:
        """Return the view without axes of one element: all of them, or those named."""
        chosen = tuple(d for d, n in enumerate(self.shape) if n == 1) if axis is None else axis
        squeezed: Self = implementations["squeeze"](self, chosen)
        return squeezed

    def sort(self, axis: int = -1, **options: Any) -> None:
        """Sort in place, as NumPy's method does; `metalnb.sort` gives a sorted copy."""
        whole: Any = self
        whole[...] = implementations["sort"](self, axis=axis, **options)

    def argsort(self, axis: int = -1, **options: Any) -> Self:
        """Return the positions that would sort it, as `metalnb.argsort`."""
        order: Self = implementations["argsort"](self, axis=axis, **options)
        return order

    def dot(self, other: Any) -> Self:
        """Return the sums of products over its last axis and another's second to last, as `numpy.dot`."""
        product: Self = implementations["dot"](self, other)
        return product

    def fill(self, value: Any) -> None:
        """Set every element to a value."""
        whole: Any = self
        whole[...] = value

    def view(self, dtype: Any = None) -> Self:
        """Return a view that reads the same bytes as another dtype; for bool, a copy: whether each element is not 0.

        Raises
        ------
        ValueError
            When the sizes do not fit, as in NumPy.
        """
        wanted = self.dtype if dtype is None else as_dtype(dtype, "view")
        if wanted == self.dtype or wanted.kind != "b":
            return self.viewed(self.host.view(wanted))
        # Kernels take the byte of a bool for 0 or 1.
        truth: Self = implementations["not_equal"](self.viewed(self.host.view(np.uint8)), 0)
        return truth
