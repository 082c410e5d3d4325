"""Turn the records of a traced threadgroup, in execution order, into each thread's steps with ticks."""

from __future__ import annotations

from typing import Any

from metalnb.engine.cpu.traced_run import MemoryAccess, Move, Region, Step, TracedRun
from metalnb.engine.unit import Unit

from .lockstep import StepPositions, ThreadStep, lockstep
from .statements import MarkedSource
from .trace_record import Touch, TraceMemory, TraceStep
from .variable_values import Decoder, bare_type, element_of

__all__ = ["TraceReader"]


class TraceReader:
    """Turns events into steps.

    Attributes
    ----------
    memory : list of TraceMemory
    sizes : list of int
        The element size of each item of `memory`, in bytes.
    lost : set of int
        The threads that were stopped at an access outside all memory.
    """

    def __init__(self, unit: Unit, text: MarkedSource, run: TracedRun, layouts: Any, threads: int) -> None:
        self.unit, self.text, self.run = unit, text, run
        self.count = threads
        self.decoder = Decoder(layouts, self._pointer_text)
        self.lost: set[int] = set()
        self.memory: list[TraceMemory] = []
        self.sizes: list[int] = []
        self._numbers: dict[int, tuple[int, int]] = {}  # region -> memory, bytes of an element
        self._bytes: dict[int, bytearray] = {}
        self._describe()

    def _describe(self) -> None:
        """Find out what each region contains, from its parameter or from the variables that refer to it."""
        variables: dict[int, tuple[str, str]] = {}
        for event in self.run.events:
            if isinstance(event, Step):
                for name, value in zip(self.text.sites[event.site].names, event.values, strict=False):
                    if "__local" in value.type and not value.type.endswith("*__private"):
                        variables.setdefault(value.address, (name, value.type))
        pointers = self._parameters()
        for i, region in enumerate(self.run.regions):
            if region.parameter >= 0:
                param = self.unit.signature.params[region.parameter]
                kind = pointers.get(param.name, param.type.name)
                name, shape = param.name, element_of(kind)
                space = param.space
            else:
                name, type_name = variables.get(region.start, (f"threadgroup memory {i}", "char[1]"))
                shape, space = element_of(type_name), "threadgroup"
            self._add(i, region, name, space, shape.element, shape.extents)

    def _parameters(self) -> dict[str, str]:
        """Return the targets of the kernel's pointers and references, by name."""
        targets: dict[str, str] = {}
        names = {p.name for p in self.unit.signature.params}
        for event in self.run.events:
            if isinstance(event, Step) and event.values:
                for name, value in zip(self.text.sites[event.site].names, event.values, strict=True):
                    if name in names and name not in targets:
                        kind = bare_type(value.type)
                        targets[name] = kind.removesuffix("*").strip()
                return targets
        return targets

    def _add(self, i: int, region: Region, name: str, space: str, element: str, extents: tuple[int, ...]) -> None:
        size = self.decoder.size(element) or 1
        elements = max(1, region.size // size)
        shape = extents if extents and region.parameter < 0 else (elements,)
        initial = None
        if region.initial is not None:
            data = region.initial
            initial = tuple(
                self.decoder.value(element, data[k * size : k * size + size]) for k in range(len(data) // size)
            )
        self._numbers[i] = (len(self.memory), size)
        self._bytes[i] = bytearray(region.initial or bytes(region.size))  # a store may change only part of an element
        self.sizes.append(size)
        self.memory.append(TraceMemory(name, space, element, shape, initial))

    def _pointer_text(self, address: int) -> str:
        """Return a pointer's target as text; a pointer out of bounds keeps the name of its array."""
        if not address:
            return "null"
        reach = {True: (9 << 30, 17 << 30), False: (0, 0)}  # addresses around the arguments are unused
        for i, region in enumerate(self.run.regions):
            margin_before, margin_after = reach[region.is_argument]
            if region.start - margin_before <= address <= region.start + region.size + margin_after:
                number, size = self._numbers[i]
                return f"&{self.memory[number].name}[{(address - region.start) // size}]"
        return "…"

    def threads(self) -> tuple[tuple[tuple[TraceStep, ...], ...], int]:
        """Return each thread's steps, and the tick after the last one."""
        steps: list[list[_PendingStep]] = [[] for _ in range(self.count)]
        thread_steps: list[list[ThreadStep]] = [[] for _ in range(self.count)]
        trackers = [StepPositions(self.text.sites) for _ in range(self.count)]
        callers: list[list[int]] = [[] for _ in range(self.count)]
        for event in self.run.events:
            t = event.thread
            if isinstance(event, Step):
                thread_steps[t].append(ThreadStep(trackers[t].step(event.site), event.epoch))
                steps[t].append(_PendingStep(event, callers[t][-1] if callers[t] else -1, []))
            elif isinstance(event, Move):
                if event.enters:
                    trackers[t].enter()
                    callers[t].append(len(steps[t]) - 1)
                else:
                    trackers[t].leave()
                    callers[t][-1:] = []
            elif event.region < 0:
                self.lost.add(t)
            elif steps[t]:
                steps[t][-1].touched.append(self._touch(event))
        ticks = lockstep(thread_steps)
        traced = tuple(
            tuple(
                self._step(steps_of_thread, tick, k, thread_steps[t])
                for k, (steps_of_thread, tick) in enumerate(zip(steps[t], ticks[t], strict=True))
            )
            for t in range(self.count)
        )
        return traced, max((steps_of_thread[-1].tick + 1 for steps_of_thread in traced if steps_of_thread), default=0)

    def _touch(self, event: MemoryAccess) -> Touch:
        number, size = self._numbers[event.region]
        first, last = event.offset // size, (event.offset + len(event.data) - 1) // size
        element = self.memory[number].type
        memory = self._bytes[event.region]
        memory[event.offset : event.offset + len(event.data)] = event.data
        values = tuple(
            self.decoder.value(element, bytes(memory[k * size : (k + 1) * size])) for k in range(first, last + 1)
        )
        return Touch(number, first, last - first + 1, event.written, values)

    def _step(self, pending_step: _PendingStep, tick: int, k: int, thread_steps: list[ThreadStep]) -> TraceStep:
        site = self.text.sites[pending_step.event.site]
        variables = {}
        values = pending_step.event.values  # a thread that was not chosen has none
        for name, value in zip(site.names, values, strict=False):
            if "__local" in value.type and not value.type.endswith("*__private"):
                continue  # threadgroup memory is shown in full
            decoded = self.decoder.value(value.type, value.data)
            if decoded is not None:
                variables[name] = decoded
        barrier = k + 1 < len(thread_steps) and thread_steps[k + 1].epoch > thread_steps[k].epoch
        return TraceStep(
            line=site.line, column=site.column, width=site.width, function=site.function, tick=tick, barrier=barrier,
            end=site.kind == "end", variables=variables, caller=pending_step.caller,
            touched=tuple(pending_step.touched),
        )  # fmt: skip


class _PendingStep:
    def __init__(self, event: Step, caller: int, touched: list[Touch]) -> None:
        self.event, self.caller, self.touched = event, caller, touched
