"""Scale a problem to larger and smaller sizes.

Axes and numbers that grow with the grid are recognized by their lengths: an axis or a whole number that equals an
extent of the grid or the product of its extents, is a small multiple of it, or is longer by a border. Nothing else
changes. If that is wrong, the caller passes a function that makes a call of another size.

The arrays of a smaller problem keep as much memory as the original ones. So a kernel that receives a length in an
unrecognized way (in a bit field, say) still reads its own memory. Larger sizes are offered only if every array grows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from metalnb.engine.base import Grid
from metalnb.errors import ArgumentError, LaunchError

from ..bound_call import BoundArgument, BoundCall, bound_call
from ..knobs import Knob, apply_settings, knobs

__all__ = ["Sizes"]

_MIN_THREADS = 64  # fewest threads along the longest extent
_GROWTH = 3  # doublings
_BYTES = 1 << 30  # most bytes for all arrays together
_BORDER = 16
_MULTIPLE = 64


class Sizes:
    """The sizes that a call can have.

    Attributes
    ----------
    factors : list of Fraction
        The factors of every extent of the grid, ascending; 1 is the original size.
    tied : list of Knob
        The whole numbers that follow the grid.
    """

    def __init__(self, call: BoundCall, launch_of: Callable[[Fraction], Mapping[str, Any]] | None = None) -> None:
        self.call = call
        self._launch_of = launch_of
        self._latest: tuple[Fraction, list[Any]] | None = None
        self._resized = call
        if launch_of is not None:
            self.tied: list[Knob] = []
            self._grids = dict(_grids_of(call, launch_of))
            self.factors = list(self._grids)
            return
        ties = _ties(call.grid, Fraction(2))
        self.tied = [k for k in knobs(call) if k.dtype.kind in "iu" and _scale_length(k.value, ties) is not None]
        self.factors = [f for f in _factors(call.grid) if f <= 1 or self._can_grow(f)]
        self._grids = {f: (_times(x, f), _times(y, f), _times(z, f)) for x, y, z in [call.grid] for f in self.factors}

    def grid(self, factor: Fraction) -> Grid:
        """Return the grid of a size."""
        return self._grids[factor]

    def number(self, knob: Knob, factor: Fraction) -> Any:
        """Return a scalar's value at a size, unless a slider sets it."""
        return _scale_length(knob.value, _ties(self.call.grid, factor)) if knob in self.tied else knob.value

    def values(self, factor: Fraction) -> list[Any]:
        """Return the arguments of a size, in buffer order; those of the latest size are kept.

        Raises
        ------
        MemoryError
        """
        if self._latest is None or self._latest[0] != factor:
            self._latest = None  # free the latest size first
            if self._launch_of is not None:
                launch = self._launch_of(factor)
                resized = self.call if factor == 1 else bound_call("dashboard", self.call.kernel, (), launch)
                self._resized = resized  # keeps the memory alive that pointers in the values refer to
                self._latest = factor, [p.value for p in resized.parts]
                return self._latest[1]
            ties = _ties(self.call.grid, factor)
            parts = self.call.parts
            values = [self._array(p, ties) if p.is_array else p.value for p in parts]
            settings: dict[Knob, Any] = {k: _scale_length(k.value, ties) for k in self.tied}
            self._latest = factor, apply_settings(parts, settings, values)
        return self._latest[1]

    def _array(self, part: BoundArgument, ties: list[tuple[int, int]]) -> Any:
        shape = _shape(part, ties)
        if shape is None or shape == part.shape:
            return part.value
        extents = shape + part.inner
        nbytes = math.prod(extents) * part.value.itemsize
        old_shape = part.shape if len(shape) == len(part.shape) else (math.prod(part.shape),)
        source = part.value.reshape(old_shape + part.inner)
        if shape[0] <= old_shape[0] and shape[1:] == old_shape[1:]:
            return source[: shape[0]]  # a view of longer memory, like the original
        memory = np.zeros(max(nbytes, part.value.nbytes), np.uint8)
        array = memory[:nbytes].view(part.value.dtype).reshape(extents)
        for corner in itertools.product(*(range(0, new, old) for new, old in zip(shape, old_shape, strict=True))):
            target = tuple(slice(start, start + old) for start, old in zip(corner, old_shape, strict=True))
            piece = array[target]  # cut off at the array's end
            piece[...] = source[tuple(slice(n) for n in piece.shape[: len(shape)])]
        return array

    def _can_grow(self, factor: Fraction) -> bool:
        ties = _ties(self.call.grid, factor)
        total = 0
        for part in self.call.parts:
            if part.is_array:
                shape = _shape(part, ties)
                if shape is None:
                    return False
                total += math.prod((*shape, *part.inner)) * part.value.itemsize
        return total <= _BYTES


def _grids_of(call: BoundCall, launch_of: Callable[[Fraction], Mapping[str, Any]]) -> Iterator[tuple[Fraction, Grid]]:
    """Yield each factor with its grid, up to the largest problem for which the caller has arrays."""
    for factor in _factors(call.grid):
        try:
            yield factor, call.grid if factor == 1 else call.kernel.prepare(**launch_of(factor)).grid
        except (ArgumentError, LaunchError):
            if factor < 1:
                raise
            return


def _factors(grid: Grid) -> list[Fraction]:
    longest = max(grid)
    halvings = max(0, math.floor(math.log2(longest / _MIN_THREADS))) if longest > _MIN_THREADS else 0
    return [Fraction(2) ** k for k in range(-min(halvings, 16), _GROWTH + 1)]


def _times(n: int, factor: Fraction) -> int:
    return n if n == 1 else max(1, round(n * factor))


def _ties(grid: Grid, factor: Fraction) -> list[tuple[int, int]]:
    """Return pairs of lengths: in the original grid, and at the new size."""
    pairs = [(n, _times(n, factor)) for n in grid if n > 1]
    product = math.prod(old for old, _ in pairs), math.prod(new for _, new in pairs)
    return [*dict.fromkeys(pairs), product] if len(pairs) > 1 else pairs


def _shape(part: BoundArgument, ties: list[tuple[int, int]]) -> tuple[int, ...] | None:
    """Return an array's new shape; None if it does not follow the grid."""
    axes = [_scale_length(n, ties) for n in part.shape]
    if any(axes):
        return tuple(new or old for new, old in zip(axes, part.shape, strict=True))
    total = _scale_length(math.prod(part.shape), ties[-1:])  # a 1-D grid on an array with several axes
    return None if total is None else (total,)


def _scale_length(length: int, ties: list[tuple[int, int]]) -> int | None:
    """Return the new length; None if it does not follow the grid."""
    for old, new in ties:
        if length == old:
            return new
    for old, new in ties:
        if old >= _MIN_THREADS and abs(length - old) <= _BORDER:
            return max(1, new + length - old)
    for old, new in ties:
        if old >= _MIN_THREADS and length % old == 0 and 0 < length // old <= _MULTIPLE:
            return length // old * new
    return None
