"""The methods of an array that do more than call an op of the same name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from .implementations import implementations
from .op_methods import OpMethods
from .promotion import as_dtype, kind_of

__all__ = ["Methods"]


def _flatten_arguments(args: tuple[Any, ...]) -> Any:
    """Return one tuple for the arguments of both ``f(2, 3)`` and ``f((2, 3))``."""
    return args[0] if len(args) == 1 and hasattr(args[0], "__iter__") else args


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
        """Return the array rounded to decimals, as NumPy's method does: halves go to the even neighbor.

        With decimals the array is scaled by a power of ten, rounded and scaled back, in its own dtype.

        Raises
        ------
        TypeError
            For negative decimals of an integer array.
        """
        if decimals == 0 or kind_of(self.dtype) != "f":
            if decimals < 0:
                raise TypeError(f"round: {self.dtype} has no decimals to the left. Pass x.astype(mnb.float32).")
            result: Self = implementations["round"](self, out=out)
            return result
        scale = 10.0 ** abs(decimals)
        scale_op, unscale_op = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
        scaled_integers = implementations["round"](implementations[scale_op](self, scale))
        decimal_result: Self = implementations[unscale_op](scaled_integers, scale, out=out)
        return decimal_result

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
        """Return one element as a Python scalar; without an index, the only element."""
        return self.read().item(*index)

    def tolist(self) -> Any:
        """Return nested lists of Python scalars."""
        return self.read().tolist()

    def tobytes(self) -> bytes:
        """Return the elements' bytes, last axis fastest."""
        return self.read().tobytes()

    def copy(self) -> Self:
        """Return an array with the same elements and its own memory."""
        result: Self = implementations["astype"](self, self.dtype)
        return result

    def reshape(self, *shape: int | Iterable[int], copy: bool | None = None) -> Self:
        """Return the elements in another shape, as `metalnb.reshape`: ``reshape(2, -1)`` or ``reshape((2, -1))``."""
        result: Self = implementations["reshape"](self, _flatten_arguments(shape), copy=copy)
        return result

    def ravel(self) -> Self:
        """Return the flattened array: a view where possible."""
        return self.reshape(-1)

    def flatten(self) -> Self:
        """Return a flattened copy."""
        return self.reshape(-1, copy=True)

    def transpose(self, *axes: int | Iterable[int] | None) -> Self:
        """Return the view with its axes in another order, by default reversed."""
        given_axes = axes if len(axes) != 1 or axes[0] is not None else ()
        order = _flatten_arguments(given_axes) if given_axes else tuple(reversed(range(self.ndim)))
        result: Self = implementations["permute_dims"](self, order)
        return result

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self:
        """Return a view of the diagonals, by default of the first two axes, as NumPy's method does."""
        result: Self = implementations["diagonal"](self, offset, axis1, axis2)
        return result

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Self:
        """Return the sums of the diagonals, by default of the first two axes, as NumPy's method does."""
        result: Self = implementations["trace"](self, offset=offset, axis1=axis1, axis2=axis2, dtype=dtype)
        return result

    def sort(self, axis: int = -1, *, descending: bool = False, stable: bool = True) -> None:
        """Sort in place, as NumPy's method does; `metalnb.sort` returns a sorted copy."""
        array: Any = self
        array[...] = implementations["sort"](self, axis=axis, descending=descending, stable=stable)

    def fill(self, value: Any) -> None:
        """Set every element to a value."""
        array: Any = self
        array[...] = value

    def view(self, dtype: Any = None) -> Self:
        """Return a view of the same bytes as another dtype; for bool, a copy that tells whether each element is not 0.

        Raises
        ------
        ValueError
            If the sizes do not fit, as in NumPy, or an element would be misaligned for a GPU.
        """
        target_dtype = self.dtype if dtype is None else as_dtype(dtype, "view")
        if target_dtype == self.dtype or target_dtype.kind != "b":
            seen = self.host.view(target_dtype)
            if seen.size and not seen.flags.aligned:
                rule = f"each element of {target_dtype} must start at a multiple of {target_dtype.alignment} bytes"
                raise ValueError(f"view: {rule}. Use x.copy().view(…).")
            return self.viewed(seen)
        # Kernels assume that a bool's byte is 0 or 1.
        truth: Self = implementations["not_equal"](self.viewed(self.host.view(np.uint8)), 0)
        return truth
