"""The grid, the threadgroup, and the shape of outputs: defaults, and the checks before every dispatch."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from metalnb.engine.base import Grid
from metalnb.errors import ArgumentError, LaunchError, MetalnbWarning
from metalnb.msl.signature import Signature
from metalnb.plurals import quantity

from .argument_binding import Slot

__all__ = [
    "MAX_THREADS", "Shape", "check_grid", "check_own_elements", "check_shape", "check_threadgroup",
    "default_threadgroup", "dimensions", "grid_of_call", "grid_of_groups", "grid_of_shape", "listed", "position_width",
    "read_iterators",
]  # fmt: skip

Shape = tuple[int, ...]

MAX_THREADS = 1024
_SIMD = 32
_DEFAULT = 256
_DIMENSIONS = 3
_LIMIT = 2**32 - 1
_UNORDERED = (str, bytes, bytearray, AbstractSet, Mapping)


def dimensions(grid: Grid) -> int:
    """Return a grid's number of dimensions, without trailing dimensions of length 1."""
    return 3 if grid[2] > 1 else 2 if grid[1] > 1 else 1


def position_width(signature: Signature) -> int:
    """Return the number of dimensions that the kernel's position inputs distinguish; 3 if it has none."""
    widths = [i.width for i in signature.inputs if "position_in" in i.attribute]
    return max(widths, default=_DIMENSIONS)


def check_grid(signature: Signature, grid: Any) -> Grid:
    """Check a caller's grid and extend it to three dimensions.

    Raises
    ------
    LaunchError
    """
    sizes = _triple(signature, "grid", grid, least=0)
    width = position_width(signature)
    if any(n > 1 for n in sizes[width:]) and all(sizes):
        position = next(i for i in signature.inputs if "position_in" in i.attribute and i.width == width)
        extents = listed(grid)
        message = (
            f"{signature.name}: grid {extents} has {len(extents)} dimensions, but the kernel's position has only "
            f"{width}: '{position.name}' [[{position.attribute}]] is {position.type}. "
            f"Declare it {position.type.rstrip('23')}{len(extents)}, or pass a grid of {width}."
        )
        raise LaunchError(message)
    return sizes


def grid_of_groups(
    signature: Signature, groups: Any, threadgroup: Any, grid: Any, device_limit: int = MAX_THREADS,
) -> tuple[Shape, Any]:  # fmt: skip
    """Return the grid of a launch in threadgroups, and the threadgroup.

    Raises
    ------
    LaunchError
    """
    if grid is not None:
        message = "grid= counts threads and groups= threadgroups: pass one of them"
        raise LaunchError(f"{signature.name}: {message}; got grid={grid!r}, groups={groups!r}.")
    counts = _triple(signature, "groups", groups, least=0, unit="threadgroups")
    rank = len(listed(groups))
    unlimited = (_LIMIT, _LIMIT if rank > 1 else 1, _LIMIT if rank > 2 else 1)
    group = check_threadgroup(signature, threadgroup, unlimited, device_limit=device_limit)
    rank = max(rank, dimensions(group))
    sizes = tuple(n * size for n, size in zip(counts, group, strict=True))[:rank]
    if max(sizes) > _LIMIT:
        message = f"groups={groups!r} of threadgroup {group[:rank]} is a grid of {sizes}; each is below 2^32"
        raise LaunchError(f"{signature.name}: {message}. Pass fewer threadgroups.")
    return sizes, group


def grid_of_shape(signature: Signature, shape: tuple[int, ...]) -> Grid:
    """Turn an array's shape, in elements, into a grid: the last axis is x.

    Raises
    ------
    LaunchError
        If the kernel's positions cannot distinguish the shape's axes, and it cannot be treated as one long row.
    """
    width = position_width(signature)
    if width == 1:
        shape = (math.prod(shape),)
    if max(shape, default=0) > _LIMIT:
        message = f"an array of {max(shape):,} elements along an axis of the grid; each is below 2^32"
        raise LaunchError(f"{signature.name}: {message}. Pass grid=(…), x first, or the array in parts.")
    if len(shape) > width:
        message = (
            f"{signature.name}: an array of shape {shape} has {len(shape)} axes, but the kernel's positions have "
            f"{width}. Pass grid=(…), x first."
        )
        raise LaunchError(message)
    sizes = [*reversed(shape), 1, 1, 1]
    return (sizes[0], sizes[1], sizes[2])


def check_shape(kernel: str, name: str, shape_argument: Any) -> Shape:
    """Check the shape that a caller passes for an omitted buffer.

    Raises
    ------
    ArgumentError
    """
    try:
        shape = tuple(map(operator.index, listed(shape_argument)))
    except TypeError:
        shape = (-1,)
    if any(n < 0 for n in shape):
        message = f"{kernel}: shapes[{name!r}] is a tuple of whole numbers, each 0 or more; got {shape_argument!r}."
        raise ArgumentError(message)
    return shape


def grid_of_call(
    signature: Signature, slots: Sequence[Slot], buffers: Sequence[Any], grid: Any, shapes: Mapping[str, Any]
) -> tuple[Grid, Shape]:
    """Return the grid of a call, and the corresponding shape in elements.

    Parameters
    ----------
    signature : Signature
    slots : sequence of Slot
    buffers : sequence
        The memory for each slot; None if the call leaves out its buffer.
    grid : int or tuple of int or None
        The caller's grid. The default is the shape of the first writable array or, if there is none, of the first array
        or the first output.
    shapes : mapping of str to shape
        The shapes of the outputs, by name.

    Raises
    ------
    LaunchError
    """
    if grid is not None:
        sizes = check_grid(signature, grid)
        return sizes, tuple(reversed(sizes[: len(listed(grid))]))
    arrays = [(s, b) for s, b in zip(slots, buffers, strict=True) if b is not None and not s.param.reference]
    shaping = next(((s, b) for s, b in arrays if s.param.writable), arrays[0] if arrays else None)
    if shaping is not None:
        shape = shaping[0].elements(shaping[1])
        if not shaping[0].param.every:
            _warn_of_grid(signature, shaping[0].param.name, math.prod(shape), arrays)
    else:
        missing = next((s.param.name for s in slots if s.param.writable and not s.param.reference), None)
        if missing is None or missing not in shapes:
            message = f"{signature.name}: no array determines the grid. Pass grid=(…): the number of threads, x first."
            raise LaunchError(message)
        shape = check_shape(signature.name, missing, shapes[missing])
    return grid_of_shape(signature, shape), shape


def _warn_of_grid(signature: Signature, name: str, threads: int, arrays: list[tuple[Slot, Any]]) -> None:
    """Warn if the grid seems to have a thread for each bin of a histogram, although the data is longer."""
    for slot, array in arrays:
        count = array.size // slot.components
        if slot.param.every and count > threads:
            shape = f"the grid has the shape of {name!r}, {quantity(threads, 'thread')}"
            data = f"each thread accesses its own element of {slot.param.name!r}, which has {count:,}"
            message = f"{signature.name}: {shape}, but {data}. Pass grid={count}."
            warnings.warn(message, MetalnbWarning, stacklevel=7)
            return


def default_threadgroup(signature: Signature, grid: Grid, limit: int = MAX_THREADS) -> Grid:
    """Choose a threadgroup: 256 threads (or the kernel's maximum), 32 wide if there is more than one row."""
    budget = min(signature.max_threads or _DEFAULT, limit)
    flat = grid[1] == grid[2] == 1
    x = max(1, min(grid[0], budget if flat else _SIMD, budget))
    y = max(1, min(grid[1], budget // x))
    z = max(1, min(grid[2], budget // (x * y)))
    return (x, y, z)


def check_threadgroup(
    signature: Signature,
    threadgroup: Any,
    grid: Grid,
    tuned: Mapping[int, Grid] | None = None,
    device_limit: int = MAX_THREADS,
) -> Grid:
    """Check a caller's threadgroup, or choose one.

    Parameters
    ----------
    tuned : mapping of int to tuple of 3 int, optional
        The threadgroup to choose for each number of grid dimensions.
    device_limit : int, optional
        The maximum number of threads in a threadgroup of the compiled kernel.

    Raises
    ------
    LaunchError
    """
    if threadgroup is None:
        tuned_size = tuned.get(dimensions(grid)) if tuned else None
        if tuned_size is None:
            return default_threadgroup(signature, grid, device_limit)
        x, y, z = (max(1, min(n, size)) for n, size in zip(tuned_size, grid, strict=True))
        return (x, y, z)
    sizes = _triple(signature, "threadgroup", threadgroup, least=1)
    threads = math.prod(sizes)
    extents = listed(threadgroup)
    if threads > MAX_THREADS:
        message = f"{signature.name}: threadgroup {extents} is {threads} threads; Metal allows {MAX_THREADS}."
        raise LaunchError(message)
    limit = min(signature.max_threads or MAX_THREADS, device_limit)
    if threads > limit:
        is_declared = limit == signature.max_threads
        reason = "[[max_total_threads_per_threadgroup]]" if is_declared else "this device has no more registers for it"
        size = f"threadgroup {extents} is {threads} threads"
        raise LaunchError(f"{signature.name}: {size}; this kernel allows {limit} ({reason}).")
    return sizes


def check_own_elements(signature: Signature, grid: Grid, threadgroup: Grid) -> None:
    """Refuse a threadgroup with more threads than an array in threadgroup memory has elements.

    Raises
    ------
    LaunchError
    """
    x, y, z = (min(n, size) for n, size in zip(threadgroup, grid, strict=True))
    for name, attribute, count in signature.own_elements:
        needed = {"thread_position_in_threadgroup": x, "thread_index_in_threadgroup": x * y * z}.get(attribute)
        allowed = count if needed is not None else count * _SIMD
        threads = x * y * z if needed is None else needed
        if threads > allowed:
            owner = "SIMD-group" if needed is None else "thread"
            message = (
                f"{signature.name}: a threadgroup of {' × '.join(str(n) for n in threadgroup if n > 1)} threads is too "
                f"large for its '{name}': each {owner} uses the element at its own [[{attribute}]], and there "
                f"are {count:,}. Pass a threadgroup of at most {quantity(allowed, 'thread')}, or make '{name}' larger."
            )
            raise LaunchError(message)


def listed(values: Any) -> tuple[Any, ...]:
    """Return several values as a tuple. Text and unordered collections become one value, which is not an integer."""
    is_single = isinstance(values, _UNORDERED) or getattr(values, "ndim", 1) == 0
    return tuple(values) if isinstance(values, Iterable) and not is_single else (values,)


def read_iterators(grid: Any, groups: Any, threadgroup: Any, shapes: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a call's sizes with iterators replaced by tuples, since an iterator can be read only once."""
    read_shapes = {name: _read_iterator(shape) for name, shape in shapes.items()}
    return (*map(_read_iterator, (grid, groups, threadgroup)), read_shapes)


def _read_iterator(values: Any) -> Any:
    return tuple(values) if isinstance(values, Iterator) else values


def _triple(signature: Signature, noun: str, value_argument: Any, least: int, unit: str = "threads") -> Grid:
    try:
        sizes = [operator.index(v) for v in listed(value_argument)]
    except TypeError:
        sizes = []
    if not 1 <= len(sizes) <= _DIMENSIONS or any(not least <= n <= _LIMIT for n in sizes):
        rule_for_each = "at least 1" if least else "not negative"
        rule = f"1 to 3 whole numbers of {unit}, x first, each {rule_for_each} and below 2^32"
        message = f"{signature.name}: {noun} is {rule}; got {value_argument!r}."
        raise LaunchError(message)
    sizes += [1] * (_DIMENSIONS - len(sizes))
    return (sizes[0], sizes[1], sizes[2])
