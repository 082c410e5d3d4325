"""``validate``: find a call's errors, and where its outputs differ from the expected ones."""

from __future__ import annotations

import sys
from typing import Any

from metalnb.call.kernel import Kernel
from metalnb.errors import ArgumentError

from .access_report import Validation
from .device_run import run_on_device
from .expected_outputs import compare_outputs
from .validated_call import SECONDS, Watcher, run_and_judge

__all__ = ["validate"]


def validate(
    kernel: Any, *args: Any, expected: Any = None, rtol: float | None = None, atol: float | None = None,
    seconds: float = SECONDS, device: bool = False, **call: Any,
) -> Validation:  # fmt: skip
    """Run a call with every access watched; report its errors, by line and thread.

    The call runs on copies, in a build that checks each load, store and atomic, also through pointers, references,
    structs and helpers. The findings apply only to this call. The faults are

    - ``beyond``: an access outside a buffer, a threadgroup variable or an array;
    - ``race``: two threads access one element, at least one of them writes, and nothing orders them: there is no
      barrier between them in their threadgroup or SIMD-group, or they are in different threadgroups;
    - ``never written``: a read of threadgroup memory that no thread of the threadgroup has written, or of a thread's
      own variable of a floating-point type;
    - ``barrier``: a ``threadgroup_barrier`` that some thread of the threadgroup never reached, or at whose place it
      reached a different one;
    - ``nan`` and ``infinity``: an output has a value of this kind that no input had; the finding names the operation
      that first produced it, and its operands;
    - ``conversion``: a float that does not fit the integer that it is converted to;
    - ``shift``: a shift by as many bits as the type has, or more;
    - ``lane``: a shuffle or broadcast from a lane that takes no part, because it is on another path or has ended, or
      that the SIMD-group does not have;
    - ``misaligned``: an access at an address that is not a multiple of its size;
    - ``endless``: a loop that had not ended when the time was up.

    Notes, which a correct kernel may have too, are ``missing write``, elements of an output that no thread wrote, and
    ``written twice``, elements that another thread wrote again, after a barrier, before they were read.

    Parameters
    ----------
    kernel : Kernel
        A kernel for any engine that shares Python's memory; the validated build of the engine ``cpu`` runs it.
    *args, **call
        As for a call of the kernel. The arrays are not changed.
    expected : callable, array, tuple or dict of arrays, optional
        The expected contents of the outputs, the arrays that the kernel may write; or a function that computes them. It
        is called with copies of the arguments: by the names of its own parameters if the kernel has all of these, else
        as in the call. It returns one array for each output, or a dict by name; or it writes them in place. A function
        is also called for smaller sizes that the threadgroup does not divide, if the arguments can be cut to one.
    rtol, atol : float, optional
        The relative and absolute tolerance of floats: by default 1e-5 and 1e-6, for half 1e-2 and 1e-3. Integers must
        be equal.
    seconds : float
        The time limit. A grid that would take longer is sampled: its first threadgroups, and some spread evenly over
        the rest.
    device : bool, optional
        Whether to run the call on the kernel's own device, under Metal's shader validation, which needs the engine
        `metal` and macOS 15. On a Mac only this is available: findings of the kind ``reported``, in Apple's words.

    Returns
    -------
    Validation

    Raises
    ------
    ArgumentError, LaunchError, KernelFault
        As for a call of the kernel, except that arrays too short for the grid are accepted, and accesses beyond them
        are reported.
    EngineUnavailable
        If neither the validated build, which needs Linux, nor shader validation can run here.

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
    run: Watcher = run_on_device if device or sys.platform != "linux" else run_and_judge
    if expected is None:
        return run(kernel.rehearse(*args, **call), seconds)[0]
    return compare_outputs(kernel, args, call, expected, seconds, (rtol, atol), run)
