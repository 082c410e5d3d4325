"""unique and the array API's variants of it: a sort, and the runs of equal elements in it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from ...arrays.array import Array, empty
from ...program import Program
from ..launching.compaction import Compaction, count_kept, kept_positions, kept_values
from ..launching.copying import as_array, convert, make_contiguous
from ..launching.element_bits import as_bits, order_of, width
from ..launching.gather import gather
from ..launching.launcher import dispatch
from ..launching.programs import program
from ..launching.radix_sort import sort_rows
from ..op import ALL, op
from ..planning.device import LANES

__all__ = [
    "UniqueAll", "UniqueCounts", "UniqueInverse", "unique", "unique_all", "unique_counts", "unique_inverse",
    "unique_values",
]  # fmt: skip

_KERNELS = ("search.metal", "sort.metal", "sort_serial.metal", "radix.h", "order.h")
_VALUES = ("search.metal", "thin_serial.metal", *_KERNELS[1:])
_INT64, _UINT32 = np.dtype(np.int64), np.dtype(np.uint32)
_SHORTEST, _LONGEST = 1 << 17, 1 << 31  # between these lengths, dropping duplicates before the sort may pay off
_SAMPLES, _SAMPLE = 16, 4096  # tiles sampled for an estimate, and elements per tile
_TILE = 1 << 18


class UniqueAll(NamedTuple):
    """Distinct values, their first occurrences, each element's index among them, their counts."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """Distinct values, and how often each occurs."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """Distinct values, and the position of each element among them."""

    values: Array
    inverse_indices: Array


class _Runs(NamedTuple):
    """A flattened array, sorted, with its runs of equal elements."""

    values: Array
    starts: Array
    order: Array | None  # None unless requested
    compaction: Compaction  # that found the starts
    shape: tuple[int, ...]

    def counts(self) -> Array:
        """Return the length of each run."""
        n, m = self.compaction.bits.size, self.starts.size
        out = empty((m,), _INT64, self.starts.engine)
        if m:
            dispatch(self.compaction.kernels.run_lengths, self.starts, out, {"n": n, "count": m}, grid=m)
        return out

    def indices(self) -> Array:
        """Return the index of each value's first occurrence, since the sort is stable."""
        return convert(gather("unique", cast("Array", self.order), self.starts, 0), _INT64)

    def inverse(self) -> Array:
        """Return the index of each element's run."""
        out = empty(self.shape, _INT64, self.starts.engine)
        if out.size:
            name = f"keep_inverse_{self.compaction.test}_{width(self.compaction.bits.dtype)}"
            self.compaction.start(name, self.order, out)
        return out


def _runs(caller: str, x: Any, *, indexed: bool, equal_nan: bool = False) -> _Runs:
    x = as_array(caller, x)
    sorted_keys = sort_rows(make_contiguous(x).reshape(-1), indexed=indexed)
    rule = "starts" if equal_nan else "distinct"
    compaction = count_kept(caller, sorted_keys.keys, rule)
    starts = kept_positions(compaction)
    return _Runs(gather(caller, sorted_keys.keys, starts, 0), starts, sorted_keys.indices, compaction, x.shape)


def _values(caller: str, x: Any, *, equal_nan: bool = False) -> Array:
    flat = make_contiguous(as_array(caller, x)).reshape(-1)
    keys = sort_rows(_drop_duplicates(flat)).keys
    rule = "starts" if equal_nan else "distinct"
    return kept_values(count_kept(caller, keys, rule), keys)


def _drop_duplicates(x: Array) -> Array:
    """Drop most duplicates of a row before it is sorted, if there are many and this is fast."""
    if not x.engine.caps.serial or not _SHORTEST <= x.size < _LONGEST:
        return x
    sample = {"n": x.size, "tile": _SAMPLE, "step": x.size // _SAMPLES}
    counts = _thin_tiles(x, sample, _SAMPLES)[1].read()[:_SAMPLES].sum()
    if counts > _SAMPLES * _SAMPLE // 2:
        return x
    tiles = -(-x.size // _TILE)
    thinning = {"n": x.size, "tile": _TILE, "step": _TILE}
    bits, offsets = _thin_tiles(x, thinning, tiles)
    searching = program("search.metal", x.engine, KIND=order_of(x.dtype), DESCENDING=False)
    dispatch(searching.keep_offsets, offsets, tiles, grid=LANES, threadgroup=LANES)
    out = empty((int(offsets.read()[tiles]),), x.dtype, x.engine)
    joined_values = _thinning_program(x)[f"thinned_{width(x.dtype)}"]
    dispatch(joined_values, bits, as_bits(out), offsets, thinning, grid=tiles, threadgroup=1)
    return out


def _thin_tiles(x: Array, thinning: dict[str, int], tiles: int) -> tuple[Array, Array]:
    """Return the remaining elements, at the start of each tile, and their number in each tile."""
    bits = as_bits(x)
    out = empty((tiles * thinning["tile"],), bits.dtype, x.engine)
    counts = empty((tiles + 1,), _UINT32, x.engine)
    dispatch(_thinning_program(x)[f"thin_{width(x.dtype)}"], bits, out, counts, thinning, grid=tiles, threadgroup=1)
    return out, counts


def _thinning_program(x: Array) -> Program:
    return program("thin_serial.metal", x.engine, KIND=order_of(x.dtype), DESCENDING=False)


def _reference(*options: str) -> Callable[[Any], Any]:
    def reference(x: Any) -> Any:
        find: Any = np.unique
        result = find(x, **dict.fromkeys(options, True))
        if not isinstance(result, tuple):
            return result
        named = zip(result, ("", *options), strict=True)
        return tuple(f.reshape(x.shape) if o == "return_inverse" else f for f, o in named)

    return reference


_row = functools.partial(op, "sets", dtypes=ALL, flops=0, kernels=_KERNELS)


@_row(reference=_reference(), kernels=_VALUES)
def unique_values(x: Array, /) -> Array:
    """Return the distinct values of an array, sorted; each NaN is distinct (array API)."""
    return _values("unique_values", x)


@_row(reference=_reference("return_counts"))
def unique_counts(x: Array, /) -> UniqueCounts:
    """Return the distinct values of an array, sorted, and how often each occurs."""
    runs = _runs("unique_counts", x, indexed=False)
    return UniqueCounts(runs.values, runs.counts())


@_row(reference=_reference("return_inverse"))
def unique_inverse(x: Array, /) -> UniqueInverse:
    """Return the distinct values of an array, sorted, and the position of each element among them."""
    runs = _runs("unique_inverse", x, indexed=True)
    return UniqueInverse(runs.values, runs.inverse())


@_row(reference=_reference("return_index", "return_inverse", "return_counts"))
def unique_all(x: Array, /) -> UniqueAll:
    """Return the distinct values, sorted; where each first occurs; the position of each element among them; counts."""
    runs = _runs("unique_all", x, indexed=True)
    return UniqueAll(runs.values, runs.indices(), runs.inverse(), runs.counts())


@op(
    "sets", reference=np.unique, dtypes=ALL, flops=0, numpy=(np.unique,),
    kernels=_VALUES, cite="NumPy's unique",
)  # fmt: skip
def unique(
    ar: Array, /, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    *, equal_nan: bool = True,
) -> Any:  # fmt: skip
    """Return the distinct values of an array, sorted, as NumPy's function of this name does (NaN is one value).

    Parameters
    ----------
    ar : Array
    return_index, return_inverse, return_counts : bool
        Also return where each value first occurs, the position of each element among the values (in ar's shape), how
        often each occurs.
    equal_nan : bool
        Whether NaN is one value; if False, each NaN is distinct, as in `unique_values`.

    Returns
    -------
    Array, or tuple of Array
    """
    if not (return_index or return_inverse or return_counts):
        return _values("unique", ar, equal_nan=equal_nan)
    runs = _runs("unique", ar, indexed=return_index or return_inverse, equal_nan=equal_nan)
    parts = [runs.values]
    if return_index:
        parts.append(runs.indices())
    if return_inverse:
        parts.append(runs.inverse())
    if return_counts:
        parts.append(runs.counts())
    return parts[0] if len(parts) == 1 else tuple(parts)
