"""Compile a kernel with its SIMD-groups in reverse order, which exposes a missing barrier.

A CPU runs the SIMD-groups of a threadgroup one after another, in order, up to the next barrier. A kernel that lacks a
barrier may always be right in that order, yet sometimes be wrong on a GPU. In the twin made here the SIMD-group that
runs first holds the last threads.
"""

from __future__ import annotations

from metalnb.call.kernel import Kernel
from metalnb.msl.text.edits import EditedText
from metalnb.msl.text.kernel_head import kernel_head
from metalnb.validation import twin_of

__all__ = ["reverse_simdgroups"]

_LANES = 32
# The inputs that stay the same when SIMD-groups are reordered; with any other input the twin would be a different
# kernel.
_SAME_INPUTS = {"thread_index_in_simdgroup", "threads_per_simdgroup", "threads_per_threadgroup", "threads_per_grid"}
_POSITION = "thread_position_in_threadgroup"


def reverse_simdgroups(kernel: Kernel, threadgroup: int) -> Kernel | None:
    """Return the twin for one threadgroup with the given number of threads; None if the kernel cannot have one."""
    inputs = {i.attribute: i for i in kernel.signature.inputs}
    if threadgroup <= _LANES or threadgroup % _LANES or inputs.keys() - _SAME_INPUTS != {_POSITION}:
        return None
    source = kernel.program.recipe.source
    match = kernel_head(source, kernel.signature)
    if match is None or inputs[_POSITION].width > 1:
        return None
    _, head = match
    t = inputs[_POSITION].name
    declaration = f" uint {t} = {t}_run % {_LANES} + ({threadgroup // _LANES - 1} - {t}_run / {_LANES}) * {_LANES}; "
    return twin_of(kernel, EditedText(source, [head.rename(t, f"{t}_run"), head.prepend(declaration)]).text)
