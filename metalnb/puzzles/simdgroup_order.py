"""The same kernel, its SIMD-groups met in the other order: what a missing barrier leaves to chance.

A CPU runs the SIMD-groups of a threadgroup one after the other, the first one first, up to the next barrier. A kernel
that lacks a barrier can be right in just that order, always, and wrong on a GPU, now and then. In the twin made here
the SIMD-group that runs first holds the last threads.
"""

from __future__ import annotations

import re

from metalnb.kernel import Kernel
from metalnb.validation import twin_of

__all__ = ["turned"]

_LANES = 32
# What stays true of a thread when SIMD-groups change places; with any other input the twin would be another kernel.
_KEPT = {"thread_index_in_simdgroup", "threads_per_simdgroup", "threads_per_threadgroup", "threads_per_grid"}
_PLACE = "thread_position_in_threadgroup"
_HEAD = r"\bvoid\s+{name}\s*\(.*?\b(?:uint|ushort)\s+(\w+)\s*\[\[\s*{place}\s*\]\][^{{]*\{{"


def turned(kernel: Kernel, threadgroup: int) -> Kernel | None:
    """Make the twin, for one threadgroup of a number of threads; None where there is none."""
    inputs = {i.attribute for i in kernel.signature.inputs}
    if threadgroup <= _LANES or threadgroup % _LANES or inputs - _KEPT != {_PLACE}:
        return None
    pattern = _HEAD.format(name=re.escape(kernel.signature.name), place=_PLACE)
    head = re.search(pattern, kernel.source, re.DOTALL)
    if head is None:
        return None
    t, start, end, text = head[1], head.start(1), head.end(1), kernel.source
    place = f" uint {t} = {t}_run % {_LANES} + ({threadgroup // _LANES - 1} - {t}_run / {_LANES}) * {_LANES}; "
    source = f"{text[:start]}{t}_run{text[end : head.end()]}{place}{text[head.end() :]}"
    return twin_of(kernel, source)
