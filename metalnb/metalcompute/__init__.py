"""A stand-in for metalcompute 0.2.9 that needs no Mac: ``import metalnb.metalcompute as mc``.

The names, the limits and the error texts are metalcompute's; the kernels run on metalnb's cpu engine. Facts read from
metalcompute's source are cited as ``metalcompute.c`` and ``metalcompute.swift``:

- MSL 2.3 with fast math, no function constants, no dynamic threadgroup memory; only buffers are bound, in order.
- A dispatch is one row of whole threadgroups, each as large as the kernel allows (1024 threads, or
  ``[[max_total_threads_per_threadgroup(n)]]`` rounded down to SIMD-groups of 32): threads with ids at and above the
  count run too.
- A plain Python buffer is copied in, and what the kernel writes to it is lost. An ``int`` where a buffer belongs
  is a new buffer of that many zero bytes, not a scalar.
- A call returns at once; deleting the handle waits. A handle without references is deleted at once, so the call waits.

Where this module differs, because Metal leaves the behavior undefined:

- Each buffer is followed by `memory.PADDING` spare bytes, where the threads above the count read zeros and write
  harmlessly. On a GPU they hit the rest of the last page, or are dropped.
- A kernel with more arguments than buffers is not run, and a ``RuntimeWarning`` says so; metalcompute reports nothing.
- A ``[[threadgroup(n)]]`` argument, and a maximum of fewer than 32 threads, raise `error`; metalcompute gives the
  first no memory, and ends the process at the second.
- Errors in the body of a template kernel are found by ``.function``, not by ``.kernel``.
- The compiler's text has Apple's form and positions; its wording comes from metalnb's front end, which also refuses
  more than 32 KiB of threadgroup memory in a program, where metalcompute fails at the call.
"""

from __future__ import annotations

from .codes import error
from .objects import Device, get_devices
from .simple import compile, init, release, rerun, run

__all__ = ["Device", "compile", "error", "get_devices", "init", "release", "rerun", "run"]
