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
from metalnb.engine.staging import place_of
from metalnb.errors import ArgumentError, CompileError, EngineUnavailable, KernelFault
from metalnb.msl.signature import Param
from metalnb.profiling.latest_counts import KnownCounts, summarize
from metalnb.profiling.profile_call import profile_dispatch

from .bottleneck import BYTES
from .records import Traffic

__all__ = ["PROTOCOL", "apart", "checked", "counted", "of_call", "of_dispatch", "of_sizes", "overridden"]

PROTOCOL = "__metal_traffic__"
_SECONDS = 0.2  # seconds for counting


def of_dispatch(dispatch: Dispatch) -> Traffic:
    """Count the bytes of a bound dispatch; the few bytes of scalars are left out."""
    pairs = zip(dispatch.kernel.signature.params, dispatch.arguments, strict=True)
    return of_sizes((p, getattr(a, "nbytes", 0)) for p, a in pairs if a is not None)


def of_sizes(pairs: Iterable[tuple[Param, int]]) -> Traffic:
    """Count the bytes of a dispatch from its parameters and the size of each array."""
    read = written = updated = 0
    unsure, unused = [], []
    for param, nbytes in pairs:
        if param.space == "threadgroup" or (param.reference and not param.writable):
            continue
        use = param.use or ("write" if param.writable else "read")
        if use == "none":
            unused.append(param.name)
        read += nbytes if use in {"read", "update"} else 0
        written += nbytes if use in {"write", "update"} else 0
        updated += nbytes if use == "update" else 0
        if param.writable and not param.use:
            unsure.append(param.name)
    notes = [f"{_named(unused)} counted as no bytes: the kernel does not use it"] if unused else []
    if unsure:
        notes.append(f"{_named(unsure)} counted as written only: {BYTES} if the kernel reads it too")
    return Traffic(read, written, updated, notes=tuple(notes))


def counted(dispatch: Dispatch, known: Traffic) -> tuple[Traffic, KnownCounts | None]:
    """Count a dispatch.

    Parameters
    ----------
    dispatch : Dispatch
    known : Traffic
        The traffic that follows from its signature and its arrays.

    Returns
    -------
    traffic : Traffic
        Its operations; also its bytes, each sector of 32 once, if all of it ran. ``known`` if the kernel cannot be
        counted: because it does not run in vector registers, or its arrays are not in this machine's memory.
    said : KnownCounts or None
        The counts; None if the kernel cannot be counted.
    """
    try:
        found = profile_dispatch(dispatch, _SECONDS)
    except (ArgumentError, CompileError, EngineUnavailable, KernelFault):
        return known, None
    said = summarize(found)
    if found.sampled < found.groups:
        return Traffic(known.read, known.written, known.updated, found.flops, known.notes), said
    arrays = {p.name for p in dispatch.kernel.signature.params if p.writable or not p.reference}
    own = [b for b in found.buffers if b.name in arrays]
    read, written = sum(b.read for b in own), sum(b.written for b in own)
    updated = sum(min(b.read, b.written) for b in own)
    return Traffic(read, written, updated, found.flops), said


def apart(dispatch: Dispatch) -> tuple[str, ...]:
    """Describe a dispatch's copies to a device and back, of NumPy memory that the device cannot use directly."""
    engine = dispatch.kernel.engine
    shared = engine.caps.shared
    copies = getattr(engine, "copies", lambda _: False) if shared else (lambda a: place_of(a) is None)
    pairs = zip(dispatch.kernel.signature.params, dispatch.arguments, strict=True)
    given = [(p, a.nbytes) for p, a in pairs if isinstance(a, np.ndarray) and not p.reference and copies(a)]
    if not given:
        return ()
    there, back = (sum(n for p, n in given if way or p.writable) for way in (True, False))
    copied = f"{spelled(there)} to the device" + (f" and {spelled(back)} back" if back else "")
    cure = "mnb.array(x)" if shared else "mnb.asarray(x)"  # if memory is shared, asarray does not copy NumPy's
    return (f"not counted: the call copies NumPy's arrays, {copied}; arrays of metalnb, {cure}, lie there",)


def of_call(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Traffic:
    """Return a callable's traffic; nothing is counted if it does not report any.

    A function reports it by an attribute ``__metal_traffic__``, which is called with the arguments of the call and
    returns a `Traffic`, or anything with ``bytes`` and ``flops``.

    Raises
    ------
    ArgumentError
        If it returns something else.
    """
    ask = getattr(function, PROTOCOL, None)
    if ask is None:
        return Traffic(0, 0)
    found = ask(*args, **named)
    if isinstance(found, Traffic):
        return found
    try:
        nbytes, flops = found.bytes, found.flops
    except AttributeError:
        name = getattr(function, "__name__", type(function).__name__)
        message = f"{name}: {PROTOCOL} returns a Traffic, or anything with bytes and flops; got {type(found).__name__}."
        raise ArgumentError(message) from None
    return overridden(Traffic(0, 0), nbytes, flops)


def overridden(counted: Traffic, nbytes: float | None, flops: float | None) -> Traffic:
    """Replace the count by the caller's own figures; the mix of reads and writes stays the same."""
    if nbytes is not None:
        known = counted.bytes
        read = round(nbytes * counted.read / known) if known else round(nbytes / 2)
        updated = round(nbytes * counted.updated / known) if known else 0
        mixed = () if known else ("half of its bytes are assumed to be read and half written",)
        counted = Traffic(read, round(nbytes) - read, updated, counted.flops, mixed)
    return counted if flops is None else replace(counted, flops=flops)


def checked(asks: str, name: str, value: Any) -> float | None:
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
        raise ArgumentError(f"{asks}: {name} is a number for one dispatch, 0 or more; got {value!r}.")
    return number


def _named(names: list[str]) -> str:
    return ", ".join(f"'{n}'" for n in names)
