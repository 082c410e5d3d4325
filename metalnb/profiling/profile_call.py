"""`profile`: repeat a call in the counted build, and assign its counts to the author's lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from metalnb.arrays.stream import synchronize
from metalnb.call.kernel import Dispatch, Kernel
from metalnb.engine.cpu.profiled.counted_run import run_counted
from metalnb.engine.cpu.profiled.counts import ATOMIC, READ, THREADGROUP, WRITE, AccessCount, Counts
from metalnb.engine.unit import Unit
from metalnb.errors import ArgumentError, LaunchError
from metalnb.timing.progress import progress

from .cost_records import SECTOR, AccessCost, BarrierCost, BufferUse, LineCost
from .device_table import device_of
from .latest_counts import remember
from .profile_record import DEVICES_SHOWN, Profile
from .whole_vectors import merge_components

__all__ = ["profile", "profile_dispatch"]

_MOST_BANKS = 64
_VARIABLE = re.compile(r"\(&(\w+)\)[^;=]*= \$threadgroup_storage<__COUNTER__")


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
        For any engine; the counted build of the engine ``cpu`` runs it.
    *args, **call
        As for a call of the kernel, ``grid=`` and ``threadgroup=`` among them. The arrays are not changed.
    seconds : float, optional
        The time after which no further threadgroup is started. Those that ran are spread evenly over the grid, and
        their counts are scaled. A dispatch whose accesses are not all proven to be in bounds first runs in full, to
        check them.
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
        As a call of the kernel; for an impossible number of banks or seconds, or an unknown device.
    CompileError
        Also for a kernel that does not run in vector registers, with the reason.

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
    return profile_dispatch(dispatch, seconds, banks, devices)


def _check(seconds: Any, banks: Any) -> None:
    if not isinstance(banks, int) or not 1 <= banks <= _MOST_BANKS:
        raise ArgumentError(f"profile: banks= is a number from 1 to {_MOST_BANKS}; got {banks!r}.")
    if not isinstance(seconds, (int, float)) or not seconds > 0:
        raise ArgumentError(f"profile: seconds= is a time, more than 0; got {seconds!r}.")


def profile_dispatch(
    dispatch: Dispatch, seconds: float, banks: int = 32, devices: tuple[str, ...] = DEVICES_SHOWN,
) -> Profile:  # fmt: skip
    """Count the cost of a bound dispatch, as `profile` does."""
    unit = dispatch.kernel.unit
    name = unit.signature.name
    if 0 in dispatch.grid:
        raise LaunchError(f"profile: {name}: grid {dispatch.grid} is empty: nothing would run.")
    if dispatch.residents and not dispatch.kernel.engine.caps.shared:
        message = f"profile: {name}: its arrays are in a device's own memory. Pass NumPy's: numpy.asarray(x)."
        raise ArgumentError(message)
    if dispatch.residents:
        synchronize(dispatch.kernel.engine.name)  # earlier dispatches may still be writing
    with progress(f"{name}: counting") as told:
        counts = run_counted(unit, dispatch.arguments, dispatch.grid, dispatch.threadgroup, seconds, banks, told)
    found = _record(dispatch, counts, banks, devices)
    remember(dispatch, found)
    return found


def _record(dispatch: Dispatch, counts: Counts, banks: int, devices: tuple[str, ...]) -> Profile:
    unit = dispatch.kernel.unit
    scale = Fraction(counts.groups, counts.sampled)
    given = sum(a for a in dispatch.arguments if isinstance(a, int))
    accesses = [_access(unit, counts, merge_components(unit, counts, one), scale) for one in counts.accesses]
    return Profile(
        unit.signature.name, unit.cell.edited.original, dispatch.grid, dispatch.threadgroup, counts.groups,
        counts.sampled, tuple(_lines(counts, accesses, scale)),
        tuple(BarrierCost(b.line, round(b.rounds * scale), b.waited, b.slowest) for b in counts.barriers if b.rounds),
        tuple(_buffers(unit, counts, accesses, scale)), counts.registers, counts.threadgroup_bytes + given, banks,
        devices,
    )  # fmt: skip


def _lines(counts: Counts, accesses: list[AccessCost], scale: Fraction) -> Iterator[LineCost]:
    """Yield the lines with any cost, in source order."""
    numbers = sorted({*counts.lines, *(a.line for a in accesses)})
    for number in numbers:
        found = counts.lines.get(number)
        own = tuple(sorted((a for a in accesses if a.line == number), key=lambda a: (a.column, a.kind)))
        if found is None or not (found.operations.total or found.branches or own):
            continue
        o = found.operations
        flops, special, integer, other, simd, private = (
            round(n * scale) for n in (o.flops, o.special, o.integer, o.other, found.simd, o.private)
        )
        yield LineCost(
            number, round(found.runs * scale), found.active / max(1, found.issued), flops, special, integer, other,
            simd, private, round(found.branches * scale), round(found.divergent * scale), own,
        )  # fmt: skip


def _access(unit: Unit, counts: Counts, one: AccessCount, scale: Fraction) -> AccessCost:
    name, space, start = _memory(unit, counts, one)
    kind = "atomic" if one.kind == ATOMIC else "read" if one.kind == READ else "write"
    travels = space != "constant"  # constant memory has its own cache
    runs, lanes, sectors, lines, used, passes, least, contended = (
        round(n * scale)
        for n in (one.runs, one.lanes, one.sectors * travels, one.lines * travels, one.used, one.passes, one.least,
                  one.contended)
    )  # fmt: skip
    sample = tuple(None if at is None else at - start for at in one.sample)
    return AccessCost(
        one.line, unit.cell.edited.original_column(one.line, one.column), name, space, kind, one.size, runs, lanes,
        sectors, lines, used, passes, least, contended, one.repeated, sample, one.group,
    )  # fmt: skip


def _memory(unit: Unit, counts: Counts, one: AccessCount) -> tuple[str, str, int]:
    """Return the name of the accessed memory, its address space, and its offset in its region."""
    if one.region >= 0:
        param = unit.signature.params[one.region]
        return param.name, param.space, 0
    if one.region != THREADGROUP:
        return "a table of constants", "constant", 0
    first = next((at for at in one.sample if at is not None), 0)
    names = _VARIABLE.findall(unit.text) if not unit.headers else []
    for offset, size, number in counts.variables:
        if offset <= first < offset + size:
            return (names[number] if number < len(names) else "threadgroup memory"), "threadgroup", offset
    params = [p.name for p in unit.signature.params if p.space == "threadgroup"]
    return (params[0] if len(params) == 1 else "threadgroup memory"), "threadgroup", 0


def _buffers(unit: Unit, counts: Counts, accesses: list[AccessCost], scale: Fraction) -> Iterator[BufferUse]:
    for number, marks in counts.marks.items():
        param = unit.signature.params[number]
        own = [a for a in accesses if a.name == param.name and a.space == param.space]
        if not own:
            continue
        whole = -(-marks.nbytes // SECTOR) * SECTOR
        read, written = (min(whole, round(marks.sectors(bit) * SECTOR * scale)) for bit in (READ, WRITE))
        distinct = min(marks.nbytes, round(marks.distinct * scale))
        yield BufferUse(
            param.name, param.space, marks.nbytes, distinct, read, written, sum(a.asked for a in own),
        )  # fmt: skip
