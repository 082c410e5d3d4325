"""Determine whether an array can be viewed in another shape without a copy."""

from __future__ import annotations

import itertools

__all__ = ["reshape_strides"]

Shape = tuple[int, ...]


def reshape_strides(shape: Shape, strides: Shape, target: Shape, itemsize: int) -> Shape | None:
    """Return the strides of a view in another shape with the same number of elements; None if a copy is needed.

    Axes of both shapes are paired into groups with the same number of elements; within a group the given axes must be
    contiguous with each other. Source: the idea is from NumPy's ``reshape``, "Internal memory layout of an ndarray".
    """
    if 0 in target:
        return _fill_strides(target, itemsize)
    axes = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    result: list[int] = []
    i = j = 0
    while j < len(target):
        if target[j] == 1 and i == len(axes):
            result.append(itemsize)
            j += 1
            continue
        first, start = i, j
        old_count, new_count = axes[i][0] if i < len(axes) else 1, target[j]
        i, j = i + 1, j + 1
        while old_count != new_count:
            if old_count < new_count:
                old_count, i = old_count * axes[i][0], i + 1
            else:
                new_count, j = new_count * target[j], j + 1
        group = axes[first:i]
        if any(a[1] != b[0] * b[1] for a, b in itertools.pairwise(group)):
            return None
        result += _fill_strides(target[start:j], group[-1][1] if group else itemsize)
    return tuple(result)


def _fill_strides(sizes: Shape, step: int) -> Shape:
    """Return the strides of axes that fill a stretch whose elements are `step` apart."""
    strides: list[int] = []
    for n in reversed(sizes):
        strides.insert(0, step)
        step *= max(n, 1)
    return tuple(strides)
