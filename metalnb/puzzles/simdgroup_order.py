"""The same kernel with its SIMD-groups in reverse order, which exposes a missing barrier.

A CPU runs the SIMD-groups of a threadgroup one after the other, the first one first, up to the next barrier. A kernel
that lacks a barrier can always be right in that order, and sometimes be wrong on a GPU. In the twin made here the
SIMD-group that runs first holds the last threads.
"""

from __future__ import annotations

import re

from metalnb.call.kernel import Kernel
from metalnb.validation import twin_of

__all__ = ["turned"]

_LANES = 32
# The inputs that stay the same when SIMD-groups change places; with any other the twin would be a different kernel.
_KEPT = {"thread_index_in_simdgroup", "threads_per_simdgroup", "threads_per_threadgroup", "threads_per_grid"}
_PLACE = "thread_position_in_threadgroup"
_HEAD = r"\bvoid\s+{name}\s*\(.*?\b(?:uint|ushort)\s+(\w+)\s*\[\[\s*{place}\s*\]\][^{{]*\{{"


def turned(kernel: Kernel, threadgroup: int) -> Kernel | None:
    """Return the twin for one threadgroup of a number of threads; None if there is none."""
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
