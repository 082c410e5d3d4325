"""Determine whether an array can be viewed in another shape without a copy."""

from __future__ import annotations

import itertools

__all__ = ["reshaped"]

Shape = tuple[int, ...]


def reshaped(shape: Shape, strides: Shape, to: Shape, itemsize: int) -> Shape | None:
    """Return the strides of a view in another shape with the same number of elements; None if a copy is needed.

    Axes of both shapes are paired into groups with the same number of elements; within a group the given axes must be
    contiguous with each other. Source: the idea is from NumPy's ``reshape``, "Internal memory layout of an ndarray".
    """
    if 0 in to:
        return _spread((), to, itemsize)
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    found: list[int] = []
    i = j = 0
    while j < len(to):
        if to[j] == 1 and i == len(old):
            found.append(itemsize)
            j += 1
            continue
        first, start = i, j
        mine, theirs = old[i][0] if i < len(old) else 1, to[j]
        i, j = i + 1, j + 1
        while mine != theirs:
            if mine < theirs:
                mine, i = mine * old[i][0], i + 1
            else:
                theirs, j = theirs * to[j], j + 1
        group = old[first:i]
        if any(a[1] != b[0] * b[1] for a, b in itertools.pairwise(group)):
            return None
        found += _spread((), to[start:j], group[-1][1] if group else itemsize)
    return tuple(found)


def _spread(found: Shape, sizes: Shape, step: int) -> Shape:
    """Return the strides of axes that fill a stretch whose elements are `step` apart."""
    strides = list(found)
    for n in reversed(sizes):
        strides.insert(len(found), step)
        step *= max(n, 1)
    return tuple(strides)
