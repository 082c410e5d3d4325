"""`trace`: one threadgroup of a call, run once more, statement by statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metalnb.arrays.stream import synchronize
from metalnb.call.kernel import Kernel
from metalnb.engine.base import Grid
from metalnb.engine.native.traced_run import Access, Move, Region, Step, TracedRun, run_traced
from metalnb.engine.unit import Unit
from metalnb.errors import ArgumentError, CompileError
from metalnb.msl.libclang.parse import parse

from .lockstep import LANES, Told, lockstep, places
from .record import Touch, Trace, TraceMemory, TraceStep
from .statements import Marked, marked, structs
from .values import Decoder, bare, element_of

__all__ = ["trace"]


_ALL = 256  # threads of a threadgroup whose variables are all kept; of a larger one, those of a SIMD-group


def trace(kernel: Any, *args: Any, thread: Any = None, group: Any = None, **call: Any) -> Trace:
    """Run one threadgroup of a call, and keep what each of its threads did, statement by statement.

    A notebook shows the result as a stepper: the source with the current line, a thread's variables, the memory that the
    threads share with who wrote each element, and where all threads stand.

    Parameters
    ----------
    kernel : Kernel
        For any engine that shares Python's memory; what runs is the engine ``native``'s traced build.
    *args, **call
        As for a call of the kernel, ``grid=`` and ``threadgroup=`` among them. The arrays given are left as they are.
    thread : int or tuple of int, optional
        The position in the grid of the thread to show first; its threadgroup runs. By default the group's first one.
    group : int or tuple of int, optional
        The position of the threadgroup that runs, in place of ``thread``; by default the first one.

    Returns
    -------
    Trace

    Raises
    ------
    ArgumentError
        For a thread or a group that the grid does not have, or for both.
    ArgumentError, LaunchError
        As a call of the kernel.
    CompileError
        When the kernel cannot be traced.
    EngineUnavailable
        Where the traced build does not run: outside Linux.

    Notes
    -----
    Of a threadgroup of more than 256 threads the variables of one SIMD-group are kept, that of ``thread``.

    Only this threadgroup runs, so what others would have written is not there. The lanes of a SIMD-group are shown in
    lockstep; a kernel with a race may show values here that it would not have on a device: see `faults`. Functions of
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
        message = f"trace: takes a kernel and the arguments of its call; got {type(kernel).__name__}."
        raise ArgumentError(message)
    dispatch = kernel.prepare(*args, **call)
    if dispatch.residents:
        synchronize(kernel.engine.name)  # what was started before may still be writing
    grid, threadgroup = dispatch.grid, dispatch.threadgroup
    place, chosen = _chosen(thread, group, grid, threadgroup)
    groups = [-(-g // t) for g, t in zip(grid, threadgroup, strict=True)]
    number = (place[2] * groups[1] + place[1]) * groups[0] + place[0]
    size = _grid(min(t, g - p * t) for g, t, p in zip(grid, threadgroup, place, strict=True))
    unit = kernel.unit
    parsed = parse(unit.cell, unit.headers, version=unit.version)
    index = (chosen[2] * size[1] + chosen[1]) * size[0] + chosen[0]
    count = size[0] * size[1] * size[2]
    first = index // LANES * LANES
    text, ran = _ran(parsed, unit, dispatch, number, range(count) if count <= _ALL else range(first, first + LANES))
    reader = _Reader(unit, text, ran, structs(parsed), count)
    threads, ticks = reader.threads()
    return Trace(
        kernel.signature.name, unit.cell.edited.original, grid, threadgroup, place, size, index, threads,
        tuple(reader.memory), ticks, ran.full, tuple(sorted(reader.lost)),
    )  # fmt: skip


def _ran(parsed: Any, unit: Unit, dispatch: Any, number: int, looked_at: range) -> tuple[Marked, TracedRun]:
    """Run the kernel; without the bodies of lambdas where clang does not take these."""
    try:
        text = marked(parsed)
        return text, run_traced(unit, text.text, dispatch.arguments, dispatch.grid, dispatch.threadgroup, number, looked_at)
    except CompileError:
        text = marked(parsed, nested=False)
        return text, run_traced(unit, text.text, dispatch.arguments, dispatch.grid, dispatch.threadgroup, number, looked_at)


def _chosen(thread: Any, group: Any, grid: Grid, threadgroup: Grid) -> tuple[Grid, Grid]:
    """Return the threadgroup's position, and the thread's in it."""
    if thread is not None and group is not None:
        message = "trace: takes thread=, a position in the grid, or group=, a threadgroup's position; got both."
        raise ArgumentError(message)
    if thread is not None:
        at = _position(thread, "thread", grid)
        return _grid(a // t for a, t in zip(at, threadgroup, strict=True)), _grid(
            a % t for a, t in zip(at, threadgroup, strict=True)
        )
    groups = _grid(-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
    return _position(0 if group is None else group, "group", groups), (0, 0, 0)


def _grid(numbers: Any) -> Grid:
    x, y, z = numbers
    return x, y, z


def _position(given: Any, name: str, limits: Grid) -> Grid:
    numbers = tuple(given) if isinstance(given, Sequence) else (given,)
    whole = 1 <= len(numbers) <= 3 and all(isinstance(n, int) for n in numbers)
    at = _grid((*numbers, 0, 0)[:3]) if whole else (-1, -1, -1)
    if not all(0 <= a < n for a, n in zip(at, limits, strict=True)):
        what = "threads" if name == "thread" else "threadgroups"
        message = f"trace: {name}= is a position among {limits} {what}, x first; got {given!r}."
        raise ArgumentError(message)
    return at


class _Reader:
    """Makes steps of events."""

    def __init__(self, unit: Unit, text: Marked, ran: TracedRun, layouts: Any, threads: int) -> None:
        self.unit, self.text, self.ran = unit, text, ran
        self.count = threads
        self.decoder = Decoder(layouts, self._pointed)
        self.lost: set[int] = set()
        self.memory: list[TraceMemory] = []
        self._numbers: dict[int, tuple[int, int]] = {}  # region -> memory, bytes of an element
        self._bytes: dict[int, bytearray] = {}
        self._describe()

    def _describe(self) -> None:
        """Find what lies in each region: by its parameter, or by the variables that refer to it."""
        named = {}
        for event in self.ran.events:
            if isinstance(event, Step):
                for name, value in zip(self.text.sites[event.site].names, event.values, strict=False):
                    if "__local" in value.type and not value.type.endswith("*__private"):
                        named.setdefault(value.address, (name, value.type, self.text.sites[event.site].function))
        pointers = self._parameters()
        for i, region in enumerate(self.ran.regions):
            if region.parameter >= 0:
                param = self.unit.signature.params[region.parameter]
                kind = pointers.get(param.name, param.type.name)
                name, shape = param.name, element_of(kind)
                space = param.space
            else:
                name, spelled, _ = named.get(region.start, (f"threadgroup memory {i}", "char[1]", ""))
                shape, space = element_of(spelled), "threadgroup"
            self._add(i, region, name, space, shape.element, shape.extents)

    def _parameters(self) -> dict[str, str]:
        """Return what the kernel's pointers and references point to, by name."""
        found: dict[str, str] = {}
        own = {p.name for p in self.unit.signature.params}
        for event in self.ran.events:
            if isinstance(event, Step) and event.values:
                for name, value in zip(self.text.sites[event.site].names, event.values, strict=True):
                    if name in own and name not in found:
                        kind = bare(value.type)
                        found[name] = kind.removesuffix("*").strip()
                return found
        return found

    def _add(self, i: int, region: Region, name: str, space: str, element: str, extents: tuple[int, ...]) -> None:
        size = self.decoder.size(element) or 1
        elements = max(1, region.size // size)
        shape = extents if extents and region.parameter < 0 else (elements,)
        initial = None
        if region.initial is not None:
            data = region.initial
            initial = tuple(self.decoder.value(element, data[k * size : k * size + size]) for k in range(len(data) // size))
        self._numbers[i] = (len(self.memory), size)
        self._bytes[i] = bytearray(region.initial or bytes(region.size))  # a store may be to a part of an element
        self.memory.append(TraceMemory(name, space, element, shape, initial))

    def _pointed(self, address: int, kind: str) -> str:
        """Return what a pointer points to, as text; one that has gone astray still has the name of what it left."""
        if not address:
            return "null"
        reach = {True: (9 << 30, 17 << 30), False: (0, 0)}  # around what was given lie addresses of nothing else
        for i, region in enumerate(self.ran.regions):
            before, after = reach[region.given]
            if region.start - before <= address <= region.start + region.size + after:
                number, size = self._numbers[i]
                return f"&{self.memory[number].name}[{(address - region.start) // size}]"
        return "…"

    def threads(self) -> tuple[tuple[tuple[TraceStep, ...], ...], int]:
        """Return each thread's steps, and the tick after the last one."""
        steps: list[list[_Open]] = [[] for _ in range(self.count)]
        told: list[list[Told]] = [[] for _ in range(self.count)]
        where = [places(self.text.sites) for _ in range(self.count)]
        callers: list[list[int]] = [[] for _ in range(self.count)]
        for event in self.ran.events:
            t = event.thread
            if isinstance(event, Step):
                told[t].append(Told(where[t].step(event.site), event.epoch))
                steps[t].append(_Open(event, callers[t][-1] if callers[t] else -1, []))
            elif isinstance(event, Move):
                if event.enters:
                    where[t].enter()
                    callers[t].append(len(steps[t]) - 1)
                else:
                    where[t].leave()
                    callers[t][-1:] = []
            elif event.region < 0:
                self.lost.add(t)
            elif steps[t]:
                steps[t][-1].touched.append(self._touch(event))
        ticks = lockstep(told)
        made = tuple(
            tuple(self._step(each, tick, k, told[t]) for k, (each, tick) in enumerate(zip(steps[t], ticks[t], strict=True)))
            for t in range(self.count)
        )
        return made, max((each[-1].tick + 1 for each in made if each), default=0)

    def _touch(self, event: Access) -> Touch:
        number, size = self._numbers[event.region]
        first, last = event.offset // size, (event.offset + len(event.data) - 1) // size
        element = self.memory[number].type
        now = self._bytes[event.region]
        now[event.offset : event.offset + len(event.data)] = event.data
        values = tuple(self.decoder.value(element, bytes(now[k * size : (k + 1) * size])) for k in range(first, last + 1))
        return Touch(number, first, last - first + 1, event.written, values)

    def _step(self, each: _Open, tick: int, k: int, told: list[Told]) -> TraceStep:
        site = self.text.sites[each.event.site]
        variables = {}
        for name, value in zip(site.names, each.event.values, strict=False):  # a thread not looked at has no values
            if "__local" in value.type and not value.type.endswith("*__private"):
                continue  # threadgroup memory is shown as a whole
            found = self.decoder.value(value.type, value.data)
            if found is not None:
                variables[name] = found
        barrier = k + 1 < len(told) and told[k + 1].epoch > told[k].epoch
        return TraceStep(
            site.line, site.column, site.width, site.function, tick, barrier, site.kind == "end", variables, each.caller,
            tuple(each.touched),
        )  # fmt: skip


class _Open:
    def __init__(self, event: Step, caller: int, touched: list[Touch]) -> None:
        self.event, self.caller, self.touched = event, caller, touched
