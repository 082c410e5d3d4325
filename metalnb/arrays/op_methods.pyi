# Written by tests/public_stub.py from the signatures of the ops (`make docs`). Do not edit.
"""The methods of an array that are ops: each calls the op of the same name, with NumPy's calling conventions.

Type checkers read ``op_methods.pyi``, which `make docs` writes from the signatures of the ops.
"""

from builtins import bool as _bool
from collections.abc import Sequence
from typing import Any, Literal

from metalnb import _ArrayLike, _Axis
from metalnb.arrays.array import Array
from metalnb.arrays.core import Core
from numpy.typing import DTypeLike

__all__ = ["OpMethods"]

class OpMethods(Core):
    """The methods of an `Array` that only call an op."""

    def sum(self, axis: _Axis | None = None, *, dtype: DTypeLike | None = None, keepdims: _bool = False) -> Array:
        """As `metalnb.sum` of this array."""

    def prod(self, axis: _Axis | None = None, *, dtype: DTypeLike | None = None, keepdims: _bool = False) -> Array:
        """As `metalnb.prod` of this array."""

    def mean(self, axis: _Axis | None = None, *, keepdims: _bool = False) -> Array:
        """As `metalnb.mean` of this array."""

    def max(self, axis: _Axis | None = None, *, keepdims: _bool = False) -> Array:
        """As `metalnb.max` of this array."""

    def min(self, axis: _Axis | None = None, *, keepdims: _bool = False) -> Array:
        """As `metalnb.min` of this array."""

    def std(
        self,
        axis: _Axis | None = None,
        *,
        correction: float = 0.0,
        ddof: float | None = None,
        keepdims: _bool = False,
    ) -> Array:
        """As `metalnb.std` of this array."""

    def var(
        self,
        axis: _Axis | None = None,
        *,
        correction: float = 0.0,
        ddof: float | None = None,
        keepdims: _bool = False,
    ) -> Array:
        """As `metalnb.var` of this array."""

    def any(self, axis: _Axis | None = None, *, keepdims: _bool = False) -> Array:
        """As `metalnb.any` of this array."""

    def all(self, axis: _Axis | None = None, *, keepdims: _bool = False) -> Array:
        """As `metalnb.all` of this array."""

    def argmax(self, axis: int | None = None, *, keepdims: _bool = False) -> Array:
        """As `metalnb.argmax` of this array."""

    def argmin(self, axis: int | None = None, *, keepdims: _bool = False) -> Array:
        """As `metalnb.argmin` of this array."""

    def cumsum(self, axis: int | None = None, *, dtype: DTypeLike | None = None, include_initial: _bool = False) -> Array:
        """As `metalnb.cumulative_sum` of this array."""

    def cumprod(self, axis: int | None = None, *, dtype: DTypeLike | None = None, include_initial: _bool = False) -> Array:
        """As `metalnb.cumulative_prod` of this array."""

    def astype(self, dtype: DTypeLike | None, /, *, copy: _bool = True, device: str | None = None) -> Array:
        """As `metalnb.astype` of this array."""

    def repeat(self, repeats: Any, /, axis: int | None = None) -> Array:
        """As `metalnb.repeat` of this array."""

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """As `metalnb.swapaxes` of this array."""

    def clip(self, min: Any = None, max: Any = None, *, out: Array | None = None) -> Array:
        """As `metalnb.clip` of this array."""

    def take(self, indices: Any, /, axis: int | None = None) -> Array:
        """As `metalnb.take` of this array."""

    def conj(self, *, out: Array | None = None) -> Array:
        """As `metalnb.conj` of this array."""

    def nonzero(self) -> tuple[Array, ...]:
        """As `metalnb.nonzero` of this array."""

    def searchsorted(self, x2: Any, /, side: Literal['left', 'right'] = 'left', sorter: _ArrayLike | None = None) -> Array:
        """As `metalnb.searchsorted` of this array."""

    def argsort(self, axis: int | None = -1, *, descending: _bool = False, stable: _bool = True) -> Array:
        """As `metalnb.argsort` of this array."""

    def dot(self, x2: _ArrayLike, /) -> Array:
        """As `metalnb.dot` of this array."""

    def squeeze(self, axis: int | Sequence[int] | None = None) -> Array:
        """As `metalnb.squeeze` of this array."""
