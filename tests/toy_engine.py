"""The smallest engine: it interprets the three kernels of ``test_engine_conformance.py``, in memory of its own."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metalnb.engine.base import Binary, Bytes, Caps, Grid, refuse_device
from metalnb.engine.observation import Observable, Stopwatch
from metalnb.engine.staging import DeviceMemory, Result, Staging
from metalnb.engine.unit import Unit
from metalnb.errors import CompileError, Diagnostic


def scale(arguments: list[Any], _grid: Grid, first: Grid, size: Grid) -> None:
    x, y, a = (m.view(np.float32) for m in arguments)
    threads = slice(first[0], first[0] + size[0])
    y[threads] = a[0] * x[threads]


def count(arguments: list[Any], grid: Grid, first: Grid, size: Grid) -> None:
    seen = arguments[0].view(np.uint32)[: 4 * math.prod(grid)].reshape(*grid[::-1], 4)
    threads = tuple(slice(f, f + s) for f, s in zip(first, size, strict=True))
    seen[threads[::-1]] += np.uint32((1, *size))


def turn(arguments: list[Any], _grid: Grid, first: Grid, size: Grid) -> None:
    part = np.zeros(arguments[1] // 4, np.uint32)
    part[: size[0]] = np.arange(first[0], first[0] + size[0])
    arguments[0].view(np.uint32)[first[0] : first[0] + size[0]] = part[: size[0]][::-1]


KERNELS = {f.__name__: f for f in (scale, count, turn)}


@dataclass
class ToyBinary(Binary):
    unit: Unit
    run: Callable[..., None]
    threadgroup_bytes: int = 0


@dataclass(eq=False)
class Ticket:
    staging: Staging
    results: list[Result]
    elapsed: Stopwatch = field(default_factory=Stopwatch)
    done = counted = False

    def wait(self) -> None:
        results, self.results = self.results, []
        self.staging.fetch(results)
        self.elapsed.stop()


class ToyEngine(Observable):
    caps = Caps("a toy", {}, shared=False)

    def __init__(self, device: int) -> None:
        self.name = f"toy:{device}" if device else "toy"
        self.staging = Staging(self)

    def text(self, unit: Unit) -> str:
        return unit.cell.edited.original

    def compile(self, unit: Unit) -> ToyBinary:
        if unit.signature.name not in KERNELS:
            raise CompileError([Diagnostic(unit.signature.line, 1, f"not one of {', '.join(KERNELS)}", "")])
        return ToyBinary(unit, KERNELS[unit.signature.name])

    def alloc(self, nbytes: int) -> DeviceMemory:
        return DeviceMemory(nbytes, np.zeros(nbytes, np.uint8))

    def copy_in(self, memory: DeviceMemory, offset: int, data: Bytes) -> None:
        memory.handle[offset : offset + data.size] = data

    def copy_out(self, memory: DeviceMemory, offset: int, into: Bytes) -> None:
        into[:] = memory.handle[offset : offset + into.size]

    def copy_within(self, target: DeviceMemory, offset: int, source: DeviceMemory, start: int, nbytes: int) -> None:
        self.copy_in(target, offset, source.handle[start : start + nbytes])

    def start(self, binary: Binary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> Ticket:
        given = zip(binary.unit.signature.params, arguments, strict=True)
        buffers = [(p.writable, a) for p, a in given if p.space != "threadgroup"]
        places, results = self.staging.bind(binary.unit.signature.name, buffers)
        found = (p.memory.handle[p.offset :] for p in places)
        bound = [a if isinstance(a, int) else next(found) for a in arguments]
        for first in itertools.product(*(range(0, g, t) for g, t in zip(grid, threadgroup, strict=True))):
            size = tuple(min(t, g - f) for f, g, t in zip(first, grid, threadgroup, strict=True))
            binary.run(bound, grid, first, size)
        ticket = Ticket(self.staging, results)
        self.staging.expect(ticket)
        return ticket


def open_engine(device: int = 0) -> ToyEngine:
    return ToyEngine(device) if device < 2 else refuse_device("toy", device, 2)
