"""Copy the arrays that a dispatch writes, so that the author's arrays stay unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...unit import Unit

__all__ = ["copy_arguments"]

_LINE = 128  # bytes, aligned for any access


def copy_arguments(
    unit: Unit, arguments: Sequence[Any],
) -> tuple[list[Any], list[tuple[int, np.ndarray[Any, Any]]]]:  # fmt: skip
    """Return the arguments, with copies in place of those that are written, and each array with its number.

    Overlapping arrays are copied as one piece.
    """
    writable = {i for i, p in enumerate(unit.signature.params) if p.writable}
    arrays = [(i, _as_bytes(a)) for i, a in enumerate(arguments) if a is not None and not isinstance(a, int)]
    spans = sorted((a.ctypes.data, a.ctypes.data + a.nbytes, i) for i, a in arrays)
    by_number = dict(arrays)
    copies, regions = list(arguments), []
    for group in _group_overlapping(spans):
        if not any(number in writable for _, _, number in group):
            regions += [(number, by_number[number]) for _, _, number in group]
            continue
        first = min(s for s, _, _ in group)
        memory = np.empty(max(e for _, e, _ in group) - first + _LINE, np.uint8)
        at = -memory.ctypes.data % _LINE
        for start, end, number in group:
            copy = memory[at + start - first : at + end - first]
            copy[:] = by_number[number]
            copies[number] = copy
            regions.append((number, copy))
    return copies, sorted(regions, key=lambda region: region[0])


def _as_bytes(argument: Any) -> np.ndarray[Any, Any]:
    view = argument if isinstance(argument, np.ndarray) else np.frombuffer(argument, np.uint8)
    return np.ascontiguousarray(view).reshape(-1).view(np.uint8)


def _group_overlapping(spans: list[tuple[int, int, int]]) -> Iterator[list[tuple[int, int, int]]]:
    """Yield groups of overlapping spans, in order of their addresses."""
    group: list[tuple[int, int, int]] = []
    end = 0
    for span in spans:
        if group and span[0] >= end:
            yield group
            group = []
        group.append(span)
        end = max(end, span[1]) if len(group) > 1 else span[1]
    if group:
        yield group
