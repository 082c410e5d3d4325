"""`trace`: repeat one threadgroup of a call, statement by statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

from metalnb.call.kernel import Kernel
from metalnb.engine.base import Grid
from metalnb.engine.cpu.traced_run import TracedRun, run_traced
from metalnb.engine.unit import Unit
from metalnb.errors import ArgumentError, CompileError, LaunchError
from metalnb.msl.libclang.parse import parse
from metalnb.program.host_visible import require_host_visible
from metalnb.validation.expected_outputs import named_arrays

from .image_contents import images_of
from .lockstep import LANES
from .statements import MarkedSource, mark_statements
from .struct_layouts import structs
from .trace_reader import TraceReader
from .trace_record import KernelTrace, TraceMemory
from .wrong_write import aim_at, wrong_element

__all__ = ["trace"]


_ALL = 256  # for a threadgroup of at most this size the variables of all threads are kept, else those of a SIMD-group


def trace(
    kernel: Any, *args: Any, thread: Any = None, group: Any = None, until: Any = None, **call: Any
) -> KernelTrace:
    """Run one threadgroup of a call and record each of its threads, statement by statement.

    A notebook shows the result as a stepper: the source with the current line, a thread's variables, the shared memory
    with the thread that last wrote each element, and all threads' positions.

    Parameters
    ----------
    kernel : Kernel
        A kernel for any engine that shares Python's memory; the traced build of the engine ``cpu`` runs it.
    *args, **call
        As for a call of the kernel, ``grid=`` and ``threadgroup=`` among them. The arrays are not changed.
    thread : int or tuple of int, optional
        The position in the grid of the thread to show first; its threadgroup runs. By default the group's first one.
    group : int or tuple of int, optional
        The position of the threadgroup that runs, instead of ``thread``; by default the first one.
    until : Validation, Difference or str, optional
        A wrong element, instead of ``thread`` or ``group``: the stepper opens at the thread and the statement that last
        wrote it. A report of `validate` with ``expected=`` selects its first wrong element, ``"out[3, 5]"`` an element
        of an output.

    Returns
    -------
    KernelTrace

    Raises
    ------
    ArgumentError
        If the thread or group is outside the grid, if both are given, or if no thread wrote the element.
    ArgumentError, LaunchError
        As a call of the kernel; also if the grid is empty.
    CompileError
        If the kernel cannot be traced.
    EngineUnavailable
        If the traced build does not run here; it needs Linux.

    Notes
    -----
    For a threadgroup of more than 256 threads, only the variables of ``thread``'s SIMD-group are kept.

    Only this threadgroup runs, so the writes of other threadgroups are missing. The lanes of a SIMD-group are shown in
    lockstep; a kernel with a race may show values here that it would not have on a device: see `validate`. Functions of
    header cells are stepped over.

    Examples
    --------
    >>> import metalnb as mnb, numpy as np
    >>> twice = mnb.compile('''
    ... kernel void twice(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
    ...     float y = x[i];
    ...     y += y;
    ...     out[i] = y;
    ... }''').twice
    >>> [(step.line, step.variables.get("y")) for step in mnb.trace(twice, np.ones(3, np.float32)).threads[0]]
    [(3, None), (4, 1.0), (5, 2.0), (6, 2.0)]
    """
    if not isinstance(kernel, Kernel):
        message = (
            f"trace: takes a kernel and the arguments of its call; got {type(kernel).__name__}. The sum of a matrix's "
            "diagonal is metalnb.linalg.trace, or np.trace."
        )
        raise ArgumentError(message)
    dispatch = kernel.prepare(*args, **call)
    require_host_visible(dispatch, "trace")
    grid, threadgroup = dispatch.grid, dispatch.threadgroup
    if 0 in grid:
        raise LaunchError(f"trace: {kernel.signature.name}: grid {grid} is empty: nothing would run.")
    if until is not None and (thread is not None or group is not None):
        raise ArgumentError("trace: takes until=, an element that some thread wrote, or thread= or group=; got both.")
    element = wrong_element(until, dispatch, args, call) if until is not None else None
    group_position, thread_in_group = _resolve_position(element.thread if element else thread, group, grid, threadgroup)
    groups = [-(-g // t) for g, t in zip(grid, threadgroup, strict=True)]
    number = (group_position[2] * groups[1] + group_position[1]) * groups[0] + group_position[0]
    size = _grid(min(t, g - p * t) for g, t, p in zip(grid, threadgroup, group_position, strict=True))
    unit = kernel.unit
    parsed = parse(unit.cell, unit.headers, version=unit.version)
    index = (thread_in_group[2] * size[1] + thread_in_group[1]) * size[0] + thread_in_group[0]
    count = size[0] * size[1] * size[2]
    first = index // LANES * LANES
    traced_threads = range(count) if count <= _ALL else range(first, first + LANES)
    text, run = _run_traced(parsed, unit, dispatch, number, traced_threads)
    reader = TraceReader(unit, text, run, structs(parsed), count)
    threads, ticks = reader.threads()
    memory = _with_images(reader, dispatch, args, call, threads)
    aim = aim_at(element, memory, reader.sizes, threads, index) if element else None
    return KernelTrace(
        kernel=kernel.signature.name, source=unit.cell.edited.original, grid=grid, threadgroup=threadgroup,
        group=group_position, size=size, thread=index, threads=threads, memory=memory, ticks=ticks, full=run.is_full,
        lost=tuple(sorted(reader.lost)), aim=aim,
    )  # fmt: skip


def _with_images(reader: TraceReader, dispatch: Any, args: Any, call: Any, threads: Any) -> tuple[TraceMemory, ...]:
    """Return the memory that the threads share; two-dimensional arrays have their images."""
    bound = {
        p.name: a
        for p, a in zip(dispatch.kernel.signature.params, dispatch.arguments, strict=True)
        if a is not None and not isinstance(a, int) and not p.reference
    }
    images = images_of(named_arrays(dispatch, args, call), bound, reader.memory, reader.sizes, threads)
    return tuple(replace(m, image=images.get(i)) for i, m in enumerate(reader.memory))


def _run_traced(
    parsed: Any, unit: Unit, dispatch: Any, number: int, traced_threads: range
) -> tuple[MarkedSource, TracedRun]:
    """Run the kernel; omit lambda bodies if clang rejects the calls there."""
    try:
        text = mark_statements(parsed)
        return text, run_traced(
            unit, text.text, dispatch.arguments, dispatch.grid, dispatch.threadgroup, number, traced_threads
        )
    except CompileError:
        text = mark_statements(parsed, nested=False)
        return text, run_traced(
            unit, text.text, dispatch.arguments, dispatch.grid, dispatch.threadgroup, number, traced_threads
        )


def _resolve_position(thread: Any, group: Any, grid: Grid, threadgroup: Grid) -> tuple[Grid, Grid]:
    """Return the threadgroup's position, and the thread's position in it."""
    if thread is not None and group is not None:
        message = "trace: takes thread=, a position in the grid, or group=, a threadgroup's position; got both."
        raise ArgumentError(message)
    if thread is not None:
        position = _position(thread, "thread", grid)
        return _grid(a // t for a, t in zip(position, threadgroup, strict=True)), _grid(
            a % t for a, t in zip(position, threadgroup, strict=True)
        )
    groups = _grid(-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
    return _position(0 if group is None else group, "group", groups), (0, 0, 0)


def _grid(numbers: Any) -> Grid:
    x, y, z = numbers
    return x, y, z


def _position(requested: Any, name: str, limits: Grid) -> Grid:
    numbers = tuple(requested) if isinstance(requested, Sequence) else (requested,)
    is_position = 1 <= len(numbers) <= 3 and all(isinstance(n, Integral) for n in numbers)
    position = _grid((*map(int, numbers), 0, 0)[:3]) if is_position else (-1, -1, -1)
    if not all(0 <= a < n for a, n in zip(position, limits, strict=True)):
        unit = "threads" if name == "thread" else "threadgroups"
        message = f"trace: {name}= is a position among {limits} {unit}, x first; got {requested!r}."
        raise ArgumentError(message)
    return position
