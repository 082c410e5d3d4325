"""A second engine of this machine's cores, which passes for `cuda`: for what tells engines apart."""

import dataclasses

from metalnb.engine.cpu import CpuEngine

__all__ = ["SecondEngine"]


class SecondEngine(CpuEngine):
    name = "cuda"

    def __init__(self) -> None:
        super().__init__()
        self.caps = dataclasses.replace(self.caps, clock="wall")
