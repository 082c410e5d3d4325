"""An engine that compiles to PTX and runs nothing: what the engine `cuda` would receive, without a GPU."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from metalnb.engine.base import Binary, Caps, Grid, SharedMemory
from metalnb.engine.cuda.ptx import cuda_source
from metalnb.engine.observation import Observable, Stopwatch
from metalnb.engine.unit import Unit


class PtxBinary(Binary):
    threadgroup_bytes = 0

    def __init__(self, unit: Unit) -> None:
        self.unit = unit


class Ticket:
    done = counted = False

    def __init__(self) -> None:
        self.elapsed = Stopwatch()

    def wait(self) -> None:
        self.elapsed.stop()


class PtxEngine(SharedMemory, Observable):
    name = "ptx"
    caps = Caps("a GPU that is not here", {}, processors=132)

    def __init__(self) -> None:
        self.seen: dict[str, tuple[Unit, int]] = {}  # by source: the unit, and the largest threadgroup

    def text(self, unit: Unit) -> str:
        return cuda_source(unit)

    def compile(self, unit: Unit) -> PtxBinary:
        return PtxBinary(unit)

    def alloc(self, nbytes: int) -> Any:
        return np.zeros(nbytes, np.uint8)

    def start(self, binary: PtxBinary, _arguments: Sequence[Any], _grid: Grid, threadgroup: Grid) -> Ticket:
        text = cuda_source(binary.unit)
        threads = threadgroup[0] * threadgroup[1] * threadgroup[2]
        self.seen[text] = (binary.unit, max(threads, self.seen.get(text, (binary.unit, 0))[1]))
        return Ticket()


def open_engine(_device: int = 0) -> PtxEngine:
    return PtxEngine()
