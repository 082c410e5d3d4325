"""``validate``: find a call's errors, and where its outputs differ from the expected ones."""

from __future__ import annotations

import sys
from typing import Any

from metalnb.call.kernel import Kernel
from metalnb.errors import ArgumentError

from .access_report import Validation
from .device_run import device_judged
from .expected_outputs import compared
from .watched_call import SECONDS, Watcher, judged

__all__ = ["validate"]


def validate(
    kernel: Any, *args: Any, expected: Any = None, rtol: float | None = None, atol: float | None = None,
    seconds: float = SECONDS, device: bool = False, **call: Any,
) -> Validation:  # fmt: skip
    """Run a call with every access watched; say what is wrong, by line and thread.

    The call runs on copies, in a build in which each load, store and atomic is looked at, through pointers, references,
    structs and helpers too. The findings hold for this call only. Faults are

    - ``beyond``: an access outside a buffer, a threadgroup variable or an array;
    - ``race``: two threads at one element, one of which writes, with nothing that orders them: no barrier between them
      in their threadgroup or SIMD-group, or they are of different threadgroups;
    - ``never written``: a read of threadgroup memory that no thread of the threadgroup has written, or of a thread's
      own variable of a floating-point type;
    - ``barrier``: a ``threadgroup_barrier`` that some thread of the threadgroup never reached, or another one;
    - ``nan`` and ``infinity``: an output holds one that was not given; where it was made first, and of what;
    - ``conversion``: a float that does not fit the integer that it is converted to;
    - ``shift``: by as many bits as the type has, or more;
    - ``lane``: a shuffle or broadcast of a lane that takes no part, being on another path or at its end, or that the
      SIMD-group does not have;
    - ``misaligned``: an access at an address that is no multiple of its size;
    - ``endless``: a loop that was not over when the time was.

    Notes, which a right kernel may show too, are ``missing write``, elements of an output that no thread wrote, and
    ``written twice``, elements that another thread wrote again, after a barrier, before anybody had read them.

    Parameters
    ----------
    kernel : Kernel
        For any engine that shares Python's memory; the checked build is the engine ``cpu``'s.
    *args, **call
        As for a call of the kernel. The arrays given are left as they are.
    expected : callable, array, tuple or dict of arrays, optional
        What the outputs, the arrays that the kernel may write, should hold; or a function that says so. It is called
        with copies of the arguments: by the names of its own parameters where the kernel has all of these, else as the
        call stands. It returns one array for each output, or a dict by name; or it writes them in place. A function is
        also called for smaller sizes that the threadgroup does not divide, if the arguments can be cut to one.
    rtol, atol : float, optional
        The relative and absolute tolerance of floats: by default 1e-5 and 1e-6, for half 1e-2 and 1e-3. Integers must
        be equal.
    seconds : float
        Time to run for. A grid that would take longer is sampled: its first threadgroups, and some that lie evenly
        after them.
    device : bool, optional
        True runs the call on the kernel's own device, under Metal's shader validation, where the engine `metal` and
        macOS 15 have it. On a Mac this is all that is available: findings of the kind ``reported``, in Apple's words.

    Returns
    -------
    Validation

    Raises
    ------
    ArgumentError, LaunchError, KernelFault
        As for a call of the kernel, except that arrays too short for the grid are accepted, and the accesses beyond
        them found.
    EngineUnavailable
        Where neither the checked build, which needs Linux, nor shader validation runs.

    Examples
    --------
    >>> import metalnb as mnb, numpy as np
    >>> steps = mnb.compile('''
    ... kernel void steps(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
    ...     device const float* p = x + i;
    ...     out[i] = p[1] - p[0];
    ... }''').steps
    >>> mnb.validate(steps, np.zeros(40, np.float32), grid=40, shapes={"out": 40})
    steps: 1 fault, 40 threads, 120 accesses
      x    40 elements, 79 reads, 1 beyond
      out  40 elements, 40 writes
    line 4: thread 39 reads x[40], beyond the end: x has 40 elements.
        out[i] = p[1] - p[0];
                 ^
    """
    if not isinstance(kernel, Kernel):
        message = f"validate: takes a kernel and the arguments of its call; got {type(kernel).__name__}."
        raise ArgumentError(message)
    run: Watcher = device_judged if device or sys.platform != "linux" else judged
    if expected is None:
        return run(kernel.rehearse(*args, **call), seconds)[0]
    return compared(kernel, args, call, expected, seconds, (rtol, atol), run)
