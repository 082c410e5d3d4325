"""The bytes that a dispatch must move, counted from its signature and its arrays.

This is a lower bound, so the bandwidth computed from it is never too high: each input is read once and each output is
written once, however often the kernel accesses them. Facts that only the author can know (parts of an array that are
never accessed, a gather that visits an element twice) are passed as ``bytes=``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from metalnb.call.kernel import Dispatch
from metalnb.display import nbytes as spelled
from metalnb.engine.staging import binding_of
from metalnb.errors import ArgumentError, CompileError, EngineUnavailable, KernelFault
from metalnb.msl.signature import Param
from metalnb.profiling.latest_counts import KnownCounts, summarize
from metalnb.profiling.profile_call import profile_dispatch

from .bottleneck import BYTES
from .records import Traffic

__all__ = [
    "PROTOCOL", "call_traffic", "check_count", "copy_notes", "count_profiled", "dispatch_traffic", "override",
    "sizes_traffic",
]  # fmt: skip

PROTOCOL = "__metal_traffic__"
_SECONDS = 0.2  # seconds for counting


def dispatch_traffic(dispatch: Dispatch) -> Traffic:
    """Count the bytes of a bound dispatch; the few bytes of scalars are left out."""
    pairs = zip(dispatch.kernel.signature.params, dispatch.arguments, strict=True)
    return sizes_traffic((p, getattr(a, "nbytes", 0)) for p, a in pairs if a is not None)


def sizes_traffic(pairs: Iterable[tuple[Param, int]]) -> Traffic:
    """Count the bytes of a dispatch from its parameters and the size of each array."""
    bytes_read = bytes_written = bytes_updated = 0
    unsure_names, unused_names = [], []
    for param, nbytes in pairs:
        if param.space == "threadgroup" or (param.reference and not param.writable):
            continue
        use = param.use or ("write" if param.writable else "read")
        if use == "none":
            unused_names.append(param.name)
        bytes_read += nbytes if use in {"read", "update"} else 0
        bytes_written += nbytes if use in {"write", "update"} else 0
        bytes_updated += nbytes if use == "update" else 0
        if param.writable and not param.use:
            unsure_names.append(param.name)
    notes = [f"{_quote_names(unused_names)} counted as no bytes: the kernel does not use it"] if unused_names else []
    if unsure_names:
        notes.append(f"{_quote_names(unsure_names)} counted as written only: {BYTES} if the kernel reads it too")
    return Traffic(bytes_read, bytes_written, bytes_updated, notes=tuple(notes))


def count_profiled(dispatch: Dispatch, traffic: Traffic) -> tuple[Traffic, KnownCounts | None]:
    """Count a dispatch.

    Parameters
    ----------
    dispatch : Dispatch
    traffic : Traffic
        The traffic that follows from the dispatch's signature and arrays.

    Returns
    -------
    traffic : Traffic
        The counted operations and, if the entire dispatch ran, the counted bytes, each sector of 32 once. If the kernel
        cannot be counted, because it does not run in vector registers or its arrays are not in this machine's memory,
        this is the argument ``traffic``.
    counts : KnownCounts or None
        The counts; None if the kernel cannot be counted.
    """
    try:
        profile = profile_dispatch(dispatch, _SECONDS)
    except (ArgumentError, CompileError, EngineUnavailable, KernelFault):
        return traffic, None
    counts = summarize(profile)
    if profile.sampled < profile.groups:
        return Traffic(traffic.read, traffic.written, traffic.updated, profile.flops, traffic.notes), counts
    arrays = {p.name for p in dispatch.kernel.signature.params if p.writable or not p.reference}
    buffers = [b for b in profile.buffers if b.name in arrays]
    bytes_read, bytes_written = sum(b.read for b in buffers), sum(b.written for b in buffers)
    bytes_updated = sum(min(b.read, b.written) for b in buffers)
    return Traffic(bytes_read, bytes_written, bytes_updated, profile.flops), counts


def copy_notes(dispatch: Dispatch) -> tuple[str, ...]:
    """Describe the copies to a device and back that a dispatch makes of NumPy memory that the device cannot use."""
    engine = dispatch.kernel.engine
    is_shared = engine.caps.shared
    copies = getattr(engine, "copies", lambda _: False) if is_shared else (lambda a: binding_of(a) is None)
    pairs = zip(dispatch.kernel.signature.params, dispatch.arguments, strict=True)
    copied_arrays = [(p, a.nbytes) for p, a in pairs if isinstance(a, np.ndarray) and not p.reference and copies(a)]
    if not copied_arrays:
        return ()
    bytes_to, bytes_back = (sum(n for p, n in copied_arrays if to_device or p.writable) for to_device in (True, False))
    copies_text = f"{spelled(bytes_to)} to the device" + (f" and {spelled(bytes_back)} back" if bytes_back else "")
    cure = "mnb.array(x)" if is_shared else "mnb.asarray(x)"  # if memory is shared, asarray does not copy NumPy's
    note = f"not counted: the call copies NumPy's arrays, {copies_text}; arrays of metalnb, {cure}, stay on the device"
    return (note,)


def call_traffic(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Traffic:
    """Return a callable's traffic; it is empty if the callable does not report any.

    A function reports it by an attribute ``__metal_traffic__``, which is called with the arguments of the call and
    returns a `Traffic`, or anything with ``bytes`` and ``flops``.

    Raises
    ------
    ArgumentError
        If the attribute returns something else.
    """
    ask = getattr(function, PROTOCOL, None)
    if ask is None:
        return Traffic(0, 0)
    reported = ask(*args, **options)
    if isinstance(reported, Traffic):
        return reported
    try:
        nbytes, flops = reported.bytes, reported.flops
    except AttributeError:
        name = getattr(function, "__name__", type(function).__name__)
        rule = f"{PROTOCOL} returns a Traffic, or anything with bytes and flops"
        raise ArgumentError(f"{name}: {rule}; got {type(reported).__name__}.") from None
    return override(Traffic(0, 0), nbytes, flops)


def override(traffic: Traffic, nbytes: float | None, flops: float | None) -> Traffic:
    """Replace the count by the caller's own figures; the mix of reads and writes stays the same."""
    if nbytes is not None:
        counted_bytes = traffic.bytes
        bytes_read = round(nbytes * traffic.read / counted_bytes) if counted_bytes else round(nbytes / 2)
        bytes_updated = round(nbytes * traffic.updated / counted_bytes) if counted_bytes else 0
        notes = () if counted_bytes else ("half of its bytes are assumed to be read and half written",)
        traffic = Traffic(bytes_read, round(nbytes) - bytes_read, bytes_updated, traffic.flops, notes)
    return traffic if flops is None else replace(traffic, flops=flops)


def check_count(caller: str, name: str, value: Any) -> float | None:
    """Check a count that a caller passes.

    Raises
    ------
    ArgumentError
    """
    if value is None:
        return None
    try:
        number = math.nan if isinstance(value, (str, bool)) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise ArgumentError(f"{caller}: {name} is a number for one dispatch, 0 or more; got {value!r}.")
    return number


def _quote_names(names: list[str]) -> str:
    return ", ".join(f"'{n}'" for n in names)
