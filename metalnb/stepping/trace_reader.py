"""Turn the records of a traced threadgroup, in execution order, into each thread's steps with ticks."""

from __future__ import annotations

from typing import Any

from metalnb.engine.cpu.traced_run import MemoryAccess, Move, Region, Step, TracedRun
from metalnb.engine.unit import Unit

from .lockstep import StepPlaces, Told, lockstep
from .statements import Marked
from .trace_record import Touch, TraceMemory, TraceStep
from .variable_values import Decoder, bare, element_of

__all__ = ["TraceReader"]


class TraceReader:
    """Turns events into steps.

    Attributes
    ----------
    memory : list of TraceMemory
    sizes : list of int
        Bytes of an element of each.
    lost : set of int
        The threads that were stopped at an access outside all memory.
    """

    def __init__(self, unit: Unit, text: Marked, ran: TracedRun, layouts: Any, threads: int) -> None:
        self.unit, self.text, self.ran = unit, text, ran
        self.count = threads
        self.decoder = Decoder(layouts, self._pointed)
        self.lost: set[int] = set()
        self.memory: list[TraceMemory] = []
        self.sizes: list[int] = []
        self._numbers: dict[int, tuple[int, int]] = {}  # region -> memory, bytes of an element
        self._bytes: dict[int, bytearray] = {}
        self._describe()

    def _describe(self) -> None:
        """Find the contents of each region, by its parameter or by the variables that refer to it."""
        named: dict[int, tuple[str, str]] = {}
        for event in self.ran.events:
            if isinstance(event, Step):
                for name, value in zip(self.text.sites[event.site].names, event.values, strict=False):
                    if "__local" in value.type and not value.type.endswith("*__private"):
                        named.setdefault(value.address, (name, value.type))
        pointers = self._parameters()
        for i, region in enumerate(self.ran.regions):
            if region.parameter >= 0:
                param = self.unit.signature.params[region.parameter]
                kind = pointers.get(param.name, param.type.name)
                name, shape = param.name, element_of(kind)
                space = param.space
            else:
                name, spelled = named.get(region.start, (f"threadgroup memory {i}", "char[1]"))
                shape, space = element_of(spelled), "threadgroup"
            self._add(i, region, name, space, shape.element, shape.extents)

    def _parameters(self) -> dict[str, str]:
        """Return the targets of the kernel's pointers and references, by name."""
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
            initial = tuple(
                self.decoder.value(element, data[k * size : k * size + size]) for k in range(len(data) // size)
            )
        self._numbers[i] = (len(self.memory), size)
        self._bytes[i] = bytearray(region.initial or bytes(region.size))  # a store may be to a part of an element
        self.sizes.append(size)
        self.memory.append(TraceMemory(name, space, element, shape, initial))

    def _pointed(self, address: int) -> str:
        """Return a pointer's target as text; a pointer out of bounds keeps the name of its array."""
        if not address:
            return "null"
        reach = {True: (9 << 30, 17 << 30), False: (0, 0)}  # the addresses around the arguments are unused
        for i, region in enumerate(self.ran.regions):
            before, after = reach[region.is_argument]
            if region.start - before <= address <= region.start + region.size + after:
                number, size = self._numbers[i]
                return f"&{self.memory[number].name}[{(address - region.start) // size}]"
        return "…"

    def threads(self) -> tuple[tuple[tuple[TraceStep, ...], ...], int]:
        """Return each thread's steps, and the tick after the last one."""
        steps: list[list[_Open]] = [[] for _ in range(self.count)]
        told: list[list[Told]] = [[] for _ in range(self.count)]
        where = [StepPlaces(self.text.sites) for _ in range(self.count)]
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
            tuple(
                self._step(each, tick, k, told[t])
                for k, (each, tick) in enumerate(zip(steps[t], ticks[t], strict=True))
            )
            for t in range(self.count)
        )
        return made, max((each[-1].tick + 1 for each in made if each), default=0)

    def _touch(self, event: MemoryAccess) -> Touch:
        number, size = self._numbers[event.region]
        first, last = event.offset // size, (event.offset + len(event.data) - 1) // size
        element = self.memory[number].type
        now = self._bytes[event.region]
        now[event.offset : event.offset + len(event.data)] = event.data
        values = tuple(
            self.decoder.value(element, bytes(now[k * size : (k + 1) * size])) for k in range(first, last + 1)
        )
        return Touch(number, first, last - first + 1, event.written, values)

    def _step(self, each: _Open, tick: int, k: int, told: list[Told]) -> TraceStep:
        site = self.text.sites[each.event.site]
        variables = {}
        for name, value in zip(site.names, each.event.values, strict=False):  # a thread not chosen has no values
            if "__local" in value.type and not value.type.endswith("*__private"):
                continue  # threadgroup memory is shown in full
            found = self.decoder.value(value.type, value.data)
            if found is not None:
                variables[name] = found
        barrier = k + 1 < len(told) and told[k + 1].epoch > told[k].epoch
        return TraceStep(
            site.line, site.column, site.width, site.function, tick, barrier, site.kind == "end", variables,
            each.caller,
            tuple(each.touched),
        )  # fmt: skip


class _Open:
    def __init__(self, event: Step, caller: int, touched: list[Touch]) -> None:
        self.event, self.caller, self.touched = event, caller, touched
