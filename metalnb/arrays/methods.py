"""The methods of an array that do more than call an op of the same name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from .implementations import implementations
from .op_methods import OpMethods
from .promotion import as_dtype, kind_of

__all__ = ["Methods"]


def _many(given: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the arguments of ``f(2, 3)`` like those of ``f((2, 3))``."""
    return tuple(given[0]) if len(given) == 1 and hasattr(given[0], "__iter__") else given


class Methods(OpMethods):
    """The methods of an `Array`: NumPy's names, and the array API's."""

    __slots__ = ()

    @property
    def real(self) -> Self:
        """The real part: the array itself."""
        return self

    @property
    def imag(self) -> Self:
        """The imaginary part: zeros."""
        zeros: Self = implementations["imag"](self)
        return zeros

    def round(self, decimals: int = 0, *, out: Self | None = None) -> Self:
        """Return it rounded to decimals, as NumPy's method does: halves go to the even neighbour.

        With decimals it is scaled by a power of ten, rounded and scaled back, in its own dtype.

        Raises
        ------
        TypeError
            For negative decimals of an integer array.
        """
        if decimals == 0 or kind_of(self.dtype) != "f":
            if decimals < 0:
                raise TypeError(f"round: {self.dtype} has no decimals to the left. Pass x.astype(mnb.float32).")
            rounded: Self = implementations["round"](self, out=out)
            return rounded
        scale = 10.0 ** abs(decimals)
        there, back = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
        whole = implementations["round"](implementations[there](self, scale))
        scaled: Self = implementations[back](whole, scale, out=out)
        return scaled

    @property
    def T(self) -> Self:  # noqa: N802  (the array API's name)
        """The view with its axes reversed: the transpose of a matrix.

        Raises
        ------
        ValueError
            If the array does not have two axes (array API).
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
            If the array has fewer than two axes.
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
        """Return an array with the same elements and its own memory."""
        copied: Self = implementations["astype"](self, self.dtype)
        return copied

    def reshape(self, *shape: int | Iterable[int], copy: bool | None = None) -> Self:
        """Return the elements in another shape, as `metalnb.reshape`: ``reshape(2, -1)`` or ``reshape((2, -1))``."""
        shaped: Self = implementations["reshape"](self, _many(shape), copy=copy)
        return shaped

    def ravel(self) -> Self:
        """Return the flattened array: a view where possible."""
        return self.reshape(-1)

    def flatten(self) -> Self:
        """Return a flattened copy."""
        return self.reshape(-1, copy=True)

    def transpose(self, *axes: int | Iterable[int] | None) -> Self:
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

    def sort(self, axis: int = -1, *, descending: bool = False, stable: bool = True) -> None:
        """Sort in place, as NumPy's method does; `metalnb.sort` returns a sorted copy."""
        whole: Any = self
        whole[...] = implementations["sort"](self, axis=axis, descending=descending, stable=stable)

    def fill(self, value: Any) -> None:
        """Set every element to a value."""
        whole: Any = self
        whole[...] = value

    def view(self, dtype: Any = None) -> Self:
        """Return a view that reads the same bytes as another dtype; for bool a copy of whether each element is not 0.

        Raises
        ------
        ValueError
            If the sizes do not fit, as in NumPy.
        """
        wanted = self.dtype if dtype is None else as_dtype(dtype, "view")
        if wanted == self.dtype or wanted.kind != "b":
            return self.viewed(self.host.view(wanted))
        # Kernels assume that a bool's byte is 0 or 1.
        truth: Self = implementations["not_equal"](self.viewed(self.host.view(np.uint8)), 0)
        return truth
