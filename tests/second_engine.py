"""A second engine on this machine's cores that poses as `cuda`, to test code that distinguishes engines."""

import dataclasses

from metalnb.engine.cpu import CpuEngine

__all__ = ["SecondEngine"]


class SecondEngine(CpuEngine):
    name = "cuda"

    def __init__(self) -> None:
        super().__init__()
        self.caps = dataclasses.replace(self.caps, clock="wall")
