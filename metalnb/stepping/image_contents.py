"""Choose the part of a two-dimensional array that a stepper draws, and keep its contents before the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .trace_record import TraceImage, TraceMemory, TraceStep

__all__ = ["images_of"]

_LARGEST_WHOLE = 48  # arrays of up to this many rows and columns are drawn in full
_AROUND = 2  # pixels around the accessed elements
_SMALLEST_PART = 32  # a part has at least this many rows and columns, or the entire array
_MAX_NUMBERS = 1 << 14  # most numbers in a picture


def images_of(
    arrays: Mapping[str, Any], bound: Mapping[str, Any], memory: Sequence[TraceMemory], sizes: Sequence[int],
    threads: Sequence[Sequence[TraceStep]],
) -> dict[int, TraceImage]:  # fmt: skip
    """Return an image for each two-dimensional array that the threads access, by its index in ``memory``.

    Parameters
    ----------
    arrays : mapping of str to array
        The call's arguments by parameter, for their shapes.
    bound : mapping of str to array or buffer
        The arguments' memory.
    memory : sequence of TraceMemory
    sizes : sequence of int
        The element size of each item of `memory`, in bytes.
    threads : sequence of sequences of TraceStep
    """
    ranges_by_memory: dict[int, list[range]] = {}
    for steps in threads:
        for step in steps:
            for touch in step.touched:
                ranges_by_memory.setdefault(touch.memory, []).append(range(touch.first, touch.first + touch.length))
    images = {}
    for number, ranges in ranges_by_memory.items():
        name = memory[number].name
        if memory[number].space != "threadgroup" and name in arrays and name in bound:
            image = _image(arrays[name], bound[name], sizes[number], np.unique(np.concatenate(ranges)))
            if image is not None:
                images[number] = image
    return images


def _image(array: Any, bound: Any, size: int, accessed: Any) -> TraceImage | None:
    """Return the part of an array around the accessed elements; None for an array that is not an image."""
    shape, dtype = tuple(np.shape(array)), np.dtype(array.dtype)
    parts = shape[-1] if len(shape) > 2 and shape[-1] in {3, 4} else 1
    numbers_per_element = size // dtype.itemsize  # numbers in an element, as the kernel sees it
    if len(shape) < 2 or dtype.kind not in "fiub" or numbers_per_element not in {1, parts} or 0 in shape:
        return None
    plane = shape[:-1] if parts > 1 else shape
    rows, columns = int(np.prod(plane[:-1])), plane[-1]
    if min(rows, columns) < 2:
        return None
    pixels = accessed * numbers_per_element // parts
    y, x = np.unravel_index(pixels[pixels < rows * columns], (rows, columns))
    limit = int((_MAX_NUMBERS // parts) ** 0.5)
    first, steps, slices = [], [], []
    for indices, extent in ((y, rows), (x, columns)):
        start, end = _part(int(indices.min(initial=extent)), int(indices.max(initial=0)) + 1, extent)
        first.append(start)
        steps.append(-(-(end - start) // limit))
        slices.append(slice(start, end, steps[-1]))
    data = bound if isinstance(bound, np.ndarray) else np.frombuffer(bound, np.uint8)
    data_bytes = np.ascontiguousarray(data).reshape(-1).view(np.uint8)[: rows * columns * parts * dtype.itemsize]
    values = data_bytes.view(dtype).reshape(rows, columns, parts)[tuple(slices)].copy()
    return TraceImage((rows, columns), parts // numbers_per_element, (first[0], first[1]), (steps[0], steps[1]), values)


def _part(start: int, end: int, extent: int) -> tuple[int, int]:
    """Return the range of rows or columns to draw: all of them if they are few, else those that are accessed."""
    if extent <= _LARGEST_WHOLE:
        return 0, extent
    start, end = max(0, start - _AROUND), min(extent, end + _AROUND)
    missing = max(0, _SMALLEST_PART - (end - start))
    start = max(0, min(start - missing // 2, extent - _SMALLEST_PART))
    return start, min(extent, max(end, start + _SMALLEST_PART))
