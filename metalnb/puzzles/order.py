"""The same kernel with the order of its SIMD-groups reversed: what a missing barrier leaves to chance.

A CPU runs the SIMD-groups of a threadgroup one after the other, the first one first, up to the next barrier. A kernel
that lacks a barrier can be right in just that order, always, and wrong on a GPU, now and then. In the twin made here
the SIMD-group that runs first holds the last threads.
"""

from __future__ import annotations

from metalnb.kernel import Kernel
from metalnb.msl.text.edits import EditedText
from metalnb.msl.text.kernel_head import kernel_head
from metalnb.validation import twin_of

__all__ = ["turned"]

_LANES = 32
# What stays true of a thread when SIMD-groups change places; with any other input the twin would be another kernel.
_KEPT = {"thread_index_in_simdgroup", "threads_per_simdgroup", "threads_per_threadgroup", "threads_per_grid"}
_PLACE = "thread_position_in_threadgroup"


def turned(kernel: Kernel, threadgroup: int) -> Kernel | None:
    """Make the twin, for one threadgroup of a number of threads; None where there is none."""
    inputs = {i.attribute: i for i in kernel.signature.inputs}
    if threadgroup <= _LANES or threadgroup % _LANES or inputs.keys() - _KEPT != {_PLACE}:
        return None
    found = kernel_head(kernel.source, kernel.signature)
    if found is None or inputs[_PLACE].width > 1:
        return None
    _, head = found
    t = inputs[_PLACE].name
    place = f" uint {t} = {t}_run % {_LANES} + ({threadgroup // _LANES - 1} - {t}_run / {_LANES}) * {_LANES}; "
    return twin_of(kernel, EditedText(kernel.source, [head.rename(t, f"{t}_run"), head.prepend(place)]).text)
