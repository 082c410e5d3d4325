"""A second engine of this machine's cores, without a clock of its own: for what tells engines apart."""

import dataclasses

from metalnb.engine.cpu import CpuEngine


class SecondEngine(CpuEngine):
    name = "second"

    def __init__(self) -> None:
        super().__init__()
        self.caps = dataclasses.replace(self.caps, clock="wall")


def open_engine(_device: int = 0) -> SecondEngine:
    return SecondEngine()
