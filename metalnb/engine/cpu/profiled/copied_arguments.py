"""Copy the arrays that a dispatch writes, so that the author's arrays stay unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...unit import Unit

__all__ = ["copied_arguments"]

_LINE = 128  # bytes, aligned for any access


def copied_arguments(
    unit: Unit, arguments: Sequence[Any],
) -> tuple[list[Any], list[tuple[int, np.ndarray[Any, Any]]]]:  # fmt: skip
    """Return the arguments with copies of those that are written, and each array with its number.

    Overlapping arrays are copied as one piece.
    """
    written = {i for i, p in enumerate(unit.signature.params) if p.writable}
    arrays = [(i, _bytes_of(a)) for i, a in enumerate(arguments) if a is not None and not isinstance(a, int)]
    spans = sorted((a.ctypes.data, a.ctypes.data + a.nbytes, i) for i, a in arrays)
    by_number = dict(arrays)
    given, regions = list(arguments), []
    for span in _merged(spans):
        if not any(number in written for _, _, number in span):
            regions += [(number, by_number[number]) for _, _, number in span]
            continue
        first = min(s for s, _, _ in span)
        memory = np.empty(max(e for _, e, _ in span) - first + _LINE, np.uint8)
        at = -memory.ctypes.data % _LINE
        for start, end, number in span:
            copy = memory[at + start - first : at + end - first]
            copy[:] = by_number[number]
            given[number] = copy
            regions.append((number, copy))
    return given, sorted(regions, key=lambda region: region[0])


def _bytes_of(argument: Any) -> np.ndarray[Any, Any]:
    view = argument if isinstance(argument, np.ndarray) else np.frombuffer(argument, np.uint8)
    return np.ascontiguousarray(view).reshape(-1).view(np.uint8)


def _merged(spans: list[tuple[int, int, int]]) -> Iterator[list[tuple[int, int, int]]]:
    """Yield spans of memory in order, with overlapping ones merged."""
    together: list[tuple[int, int, int]] = []
    end = 0
    for span in spans:
        if together and span[0] >= end:
            yield together
            together = []
        together.append(span)
        end = max(end, span[1]) if len(together) > 1 else span[1]
    if together:
        yield together
