"""The grid and the threadgroup: defaults, and the checks that stand before every dispatch."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from typing import Any

from .engine.base import Grid
from .errors import LaunchError
from .msl.signature import Signature

__all__ = [
    "check_grid", "check_places", "check_threadgroup", "default_threadgroup", "dimensions", "grid_of_shape",
    "position_width",
]  # fmt: skip

MAX_THREADS = 1024
_SIMD = 32
_DEFAULT = 256
_DIMENSIONS = 3
_LIMIT = 2**32 - 1


def dimensions(grid: Grid) -> int:
    """Count a grid's dimensions, without those at the end that are 1."""
    return 3 if grid[2] > 1 else 2 if grid[1] > 1 else 1


def position_width(signature: Signature) -> int:
    """Number of dimensions that the kernel's own position inputs can tell apart; 3 when it has none."""
    widths = [i.width for i in signature.inputs if "position_in" in i.attribute]
    return max(widths, default=_DIMENSIONS)


def check_grid(signature: Signature, grid: Any) -> Grid:
    """Check a caller's grid, and fill it up to three dimensions.

    Raises
    ------
    LaunchError
    """
    sizes = _triple(signature, "grid", grid, least=0)
    width = position_width(signature)
    if any(n > 1 for n in sizes[width:]) and all(sizes):
        given = next(i for i in signature.inputs if "position_in" in i.attribute and i.width == width)
        used = tuple(grid)
        message = (
            f"{signature.name}: grid {used} has {sum(1 for _ in used)} dimensions, but the kernel tells only {width}: "
            f"'{given.name}' [[{given.attribute}]] is {given.type}. Declare it {given.type.rstrip('23')}{len(used)}, "
            f"or pass a grid of {width}."
        )
        raise LaunchError(message)
    return sizes


def grid_of_shape(signature: Signature, shape: tuple[int, ...]) -> Grid:
    """Turn an array's shape, in elements, into a grid: the last axis is x.

    Raises
    ------
    LaunchError
        When the kernel's positions cannot tell the shape's axes apart and it cannot be taken as one long row.
    """
    width = position_width(signature)
    if width == 1:
        return (math.prod(shape), 1, 1)
    if len(shape) > width:
        message = (
            f"{signature.name}: an array of shape {shape} has {len(shape)} axes, but the kernel's positions have "
            f"{width}. Pass grid=(…), x first."
        )
        raise LaunchError(message)
    sizes = [*reversed(shape), 1, 1, 1]
    return (sizes[0], sizes[1], sizes[2])


def default_threadgroup(signature: Signature, grid: Grid) -> Grid:
    """Choose a threadgroup: 256 threads (or the kernel's own maximum), 32 wide where there is more than one row."""
    budget = signature.max_threads or _DEFAULT
    flat = grid[1] == grid[2] == 1
    x = max(1, min(grid[0], budget if flat else _SIMD, budget))
    y = max(1, min(grid[1], budget // x))
    z = max(1, min(grid[2], budget // (x * y)))
    return (x, y, z)


def check_threadgroup(
    signature: Signature,
    threadgroup: Any,
    grid: Grid,
    most: int = MAX_THREADS,
    tuned: Mapping[int, Grid] | None = None,
) -> Grid:
    """Check a caller's threadgroup, or choose one.

    Parameters
    ----------
    tuned : mapping of int to tuple of 3 int, optional
        Threadgroups to choose, by the number of the grid's dimensions.

    Raises
    ------
    LaunchError
    """
    if threadgroup is None:
        found = tuned.get(dimensions(grid)) if tuned else None
        if found is None:
            return default_threadgroup(signature, grid)
        x, y, z = (max(1, min(n, size)) for n, size in zip(found, grid, strict=True))
        return (x, y, z)
    sizes = _triple(signature, "threadgroup", threadgroup, least=1)
    threads = math.prod(sizes)
    shown = tuple(threadgroup) if isinstance(threadgroup, Iterable) else (threadgroup,)
    if threads > MAX_THREADS:
        message = f"{signature.name}: threadgroup {shown} is {threads} threads; Metal allows {MAX_THREADS}."
        raise LaunchError(message)
    limit = min(signature.max_threads or most, most)
    if threads > limit:
        why = "[[max_total_threads_per_threadgroup]]" if signature.max_threads else "what the engine can run"
        message = f"{signature.name}: threadgroup {shown} is {threads} threads; this kernel allows {limit} ({why})."
        raise LaunchError(message)
    return sizes


def check_places(signature: Signature, grid: Grid, threadgroup: Grid) -> None:
    """Refuse a threadgroup of which some thread has no place in an array of threadgroup memory.

    Raises
    ------
    LaunchError
    """
    x, y, z = (min(n, size) for n, size in zip(threadgroup, grid, strict=True))
    for name, attribute, count in signature.places:
        used = {"thread_position_in_threadgroup": x, "thread_index_in_threadgroup": x * y * z}.get(attribute)
        most = count if used is not None else count * _SIMD
        threads = x * y * z if used is None else used
        if threads > most:
            what = "SIMD-group" if used is None else "thread"
            message = (
                f"{signature.name}: a threadgroup of {' × '.join(str(n) for n in threadgroup if n > 1)} threads is too "
                f"large for its '{name}': each {what} uses the element at its own place [[{attribute}]], and there are "
                f"{count:,}. Pass a threadgroup of at most {most:,} threads, or make '{name}' larger."
            )
            raise LaunchError(message)


def _triple(signature: Signature, what: str, given: Any, least: int) -> Grid:
    values = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    try:
        sizes = [operator.index(v) for v in values]
    except TypeError:
        sizes = []
    if not 1 <= len(sizes) <= _DIMENSIONS or any(not least <= n <= _LIMIT for n in sizes):
        bound = "at least 1" if least else "not negative"
        rule = f"1 to 3 whole numbers of threads, x first, each {bound} and below 2^32"
        message = f"{signature.name}: {what} is {rule}; got {given!r}."
        raise LaunchError(message)
    sizes += [1] * (_DIMENSIONS - len(sizes))
    return (sizes[0], sizes[1], sizes[2])
