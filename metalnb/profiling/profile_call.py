"""`profile`: repeat a call in the counted build, and assign its counts to the author's lines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np

from metalnb.call.kernel import Dispatch, Kernel
from metalnb.engine.base import Pointed
from metalnb.engine.cpu.profiled.counted_run import run_counted
from metalnb.engine.cpu.profiled.counts import ATOMIC, READ, THREADGROUP, WRITE, AccessCount, Counts
from metalnb.engine.unit import Unit, threadgroup_variables
from metalnb.errors import ArgumentError, LaunchError
from metalnb.program.host_visible import require_host_visible
from metalnb.timing.progress import progress

from .cost_records import SECTOR, AccessCost, BarrierCost, BufferUse, LineCost
from .device_table import device_of
from .latest_counts import remember
from .profile_record import DEVICES_SHOWN, Profile
from .vector_accesses import merge_components

__all__ = ["profile", "profile_dispatch"]

_MAX_BANKS = 64


def profile(
    kernel: Any, *args: Any, seconds: float = 1.0, banks: int = 32, device: str = "", **call: Any,
) -> Profile:  # fmt: skip
    """Count the cost of a kernel's call, line by line.

    A notebook shows the source with a heat map in the gutter and the figures beside each line; a click on an access
    draws its 32 lanes and their positions in memory. Nothing is timed: the counts are those of a GPU's SIMD-groups of
    32, and do not depend on this machine.

    Parameters
    ----------
    kernel : Kernel or Dispatch
        A kernel for any engine; the counted build of the engine ``cpu`` runs it.
    *args, **call
        As for a call of the kernel, ``grid=`` and ``threadgroup=`` among them. The arrays are not changed.
    seconds : float, optional
        The time after which no further threadgroup is started. The threadgroups that ran are spread evenly over the
        grid, and their counts are scaled. A dispatch whose accesses are not all proven to be in bounds first runs in
        full, to check them.
    banks : int, optional
        The number of banks of threadgroup memory, each 4 bytes wide: 1 to 64.
    device : str, optional
        The GPU for which a model estimates the least time: ``"M4 Max"``, a name in
        `metalnb.profiling.device_table.DEVICES`; by default an M2 and an H100.

    Returns
    -------
    Profile

    Raises
    ------
    ArgumentError, LaunchError
        As a call of the kernel; also if the number of banks or seconds is impossible, or the device is unknown.
    CompileError
        If the kernel does not compile, or does not run in vector registers; the message says why.

    Examples
    --------
    >>> import metalnb as mnb, numpy as np
    >>> twice = mnb.compile('''
    ... kernel void twice(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
    ...     out[i] = 2 * x[4 * i];
    ... }''').twice
    >>> found = mnb.profile(twice, np.ones(4096, np.float32), np.zeros(1024, np.float32))
    >>> found.flops, [(a.name, a.sectors // a.runs) for a in found.accesses]
    (1024, [('x', 16), ('out', 4)])
    """
    _check(seconds, banks)
    devices = (device_of(device).name,) if device else DEVICES_SHOWN
    if isinstance(kernel, Dispatch) and not args and not call:
        dispatch = kernel
    elif isinstance(kernel, Kernel):
        dispatch = kernel.prepare(*args, **call)
    else:
        message = f"profile: takes a kernel and the arguments of its call; got {type(kernel).__name__}."
        raise ArgumentError(message)
    return profile_dispatch(dispatch, float(seconds), int(banks), devices)


def _check(seconds: Any, banks: Any) -> None:
    if not isinstance(banks, Integral) or not 1 <= int(banks) <= _MAX_BANKS:
        raise ArgumentError(f"profile: banks= must be an integer from 1 to {_MAX_BANKS}; got {banks!r}.")
    if not isinstance(seconds, Real) or not float(seconds) > 0:
        raise ArgumentError(f"profile: seconds= must be a positive number; got {seconds!r}.")


def profile_dispatch(
    dispatch: Dispatch, seconds: float, banks: int = 32, devices: tuple[str, ...] = DEVICES_SHOWN,
) -> Profile:  # fmt: skip
    """Count the cost of a bound dispatch, as `profile` does."""
    unit = dispatch.kernel.unit
    name = unit.signature.name
    if 0 in dispatch.grid:
        raise LaunchError(f"profile: {name}: grid {dispatch.grid} is empty: nothing would run.")
    require_host_visible(dispatch, "profile")
    with progress(f"{name}: counting") as report_progress, _restored_pointees(dispatch):
        counts = run_counted(
            unit, dispatch.arguments, dispatch.grid, dispatch.threadgroup, seconds, banks, report_progress,
        )  # fmt: skip
    result = _record(dispatch, counts, banks, devices)
    remember(dispatch, result)
    return result


def _record(dispatch: Dispatch, counts: Counts, banks: int, devices: tuple[str, ...]) -> Profile:
    unit = dispatch.kernel.unit
    scale = Fraction(counts.groups, counts.sampled)
    argument_bytes = sum(a for a in dispatch.arguments if isinstance(a, int))
    accesses = [_access(unit, counts, merge_components(unit, counts, count), scale) for count in counts.accesses]
    barriers = [BarrierCost(b.line, round(b.rounds * scale), b.waited, b.slowest) for b in counts.barriers if b.rounds]
    return Profile(
        kernel=unit.signature.name, source=unit.cell.edited.original, grid=dispatch.grid,
        threadgroup=dispatch.threadgroup, groups=counts.groups, sampled=counts.sampled,
        lines=tuple(_lines(counts, accesses, scale)), barriers=tuple(barriers),
        buffers=tuple(_buffers(unit, counts, accesses, scale)), registers=counts.registers,
        threadgroup_bytes=counts.threadgroup_bytes + argument_bytes, banks=banks, devices=devices,
    )  # fmt: skip


def _lines(counts: Counts, accesses: list[AccessCost], scale: Fraction) -> Iterator[LineCost]:
    """Yield the lines with any cost, in source order."""
    numbers = sorted({*counts.lines, *(a.line for a in accesses)})
    for number in numbers:
        line_counts = counts.lines.get(number)
        line_accesses = tuple(sorted((a for a in accesses if a.line == number), key=lambda a: (a.column, a.kind)))
        if line_counts is None or not (line_counts.operations.total or line_counts.branches or line_accesses):
            continue
        o = line_counts.operations
        flops, special, integer, other, simd, private = (
            round(n * scale) for n in (o.flops, o.special, o.integer, o.other, line_counts.simd, o.private)
        )
        yield LineCost(
            line=number, runs=round(line_counts.runs * scale), lanes=line_counts.active / max(1, line_counts.issued),
            flops=flops, special=special, integer=integer, other=other, simd=simd, private=private,
            branches=round(line_counts.branches * scale), divergent=round(line_counts.divergent * scale),
            accesses=line_accesses,
        )  # fmt: skip


@contextlib.contextmanager
def _restored_pointees(dispatch: Dispatch) -> Iterator[None]:
    """Restore, at the end, the arrays that structs point to: only the other arguments are copies."""
    structs = [a for a in dispatch.arguments if isinstance(a, Pointed)]
    saved = [(memory, memory.copy()) for struct in structs for memory in struct.memories]
    try:
        yield
    finally:
        for memory, contents in saved:
            np.copyto(memory, contents)


def _access(unit: Unit, counts: Counts, count: AccessCount, scale: Fraction) -> AccessCost:
    name, space, start = _memory(unit, counts, count)
    kind = "atomic" if count.kind == ATOMIC else "read" if count.kind == READ else "write"
    reaches_dram = space != "constant"  # constant memory has its own cache
    runs, lanes, sectors, lines, used, passes, least, contended = (
        round(n * scale)
        for n in (count.runs, count.lanes, count.sectors * reaches_dram, count.lines * reaches_dram, count.used,
                  count.passes, count.least, count.contended)
    )  # fmt: skip
    sample = tuple(None if at is None else at - start for at in count.sample)
    return AccessCost(
        line=count.line, column=unit.cell.original_column(count.line, count.column), name=name, space=space,
        kind=kind, size=count.size, runs=runs, lanes=lanes, sectors=sectors, lines=lines, used=used, passes=passes,
        least=least, contended=contended, repeated=count.repeated, sample=sample, group=count.group,
    )  # fmt: skip


def _memory(unit: Unit, counts: Counts, count: AccessCount) -> tuple[str, str, int]:
    """Return the name of the accessed memory, its address space, and its offset in its region."""
    if count.region >= 0:
        param = unit.signature.params[count.region]
        return param.name, param.space, 0
    if count.region != THREADGROUP:
        return "a table of constants", "constant", 0
    first = next((at for at in count.sample if at is not None), 0)
    variables = threadgroup_variables(unit)
    for offset, size, number in counts.variables:
        if offset <= first < offset + size:
            name = variables[number][1] if number < len(variables) else "threadgroup memory"
            return name, "threadgroup", offset
    params = [p.name for p in unit.signature.params if p.space == "threadgroup"]
    return (params[0] if len(params) == 1 else "threadgroup memory"), "threadgroup", 0


def _buffers(unit: Unit, counts: Counts, accesses: list[AccessCost], scale: Fraction) -> Iterator[BufferUse]:
    for number, marks in counts.marks.items():
        param = unit.signature.params[number]
        buffer_accesses = [a for a in accesses if a.name == param.name and a.space == param.space]
        if not buffer_accesses:
            continue
        sector_bytes = -(-marks.nbytes // SECTOR) * SECTOR
        read, written = (min(sector_bytes, round(marks.sectors(bit) * SECTOR * scale)) for bit in (READ, WRITE))
        distinct = min(marks.nbytes, round(marks.distinct * scale))
        yield BufferUse(
            param.name, param.space, marks.nbytes, distinct, read, written, sum(a.asked for a in buffer_accesses),
        )  # fmt: skip
