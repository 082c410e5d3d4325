"""tinygrad's device METAL without a Mac: tinygrad's renderer writes the kernels, and metalnb runs them."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
from tinygrad.device import Allocator, Compiled, Compiler, Device, Program
from tinygrad.renderer.cstyle import MetalRenderer

import metalnb as mnb
from metalnb.dtypes import numpy_dtype

__all__ = ["NAME", "opened"]

NAME = "METAL"
_FAMILY = "Apple9"  # the GPU family to render for: with bfloat and SIMD-group matrices


class MetalCompiler(Compiler):
    """Passes on a kernel's source unchanged. tinygrad's renderer looks for a class with this name."""


class _Memory(Allocator[Any]):
    """An allocator of byte buffers."""

    def _alloc(self, size: int, options: Any) -> np.ndarray:
        return np.zeros(size, np.uint8)

    def _copyin(self, dest: np.ndarray, src: memoryview) -> None:
        dest[:] = np.frombuffer(src, np.uint8)

    def _copyout(self, dest: memoryview, src: np.ndarray) -> None:
        dest[:] = src.data

    def _offset(self, buf: np.ndarray, size: int, offset: int) -> np.ndarray:
        return buf[offset : offset + size]


class _Kernel(Program[Any]):
    """A rendered kernel, which runs on the engine that its device names at that time."""

    def __init__(self, dev: MetalDevice, obj: Any) -> None:
        self.device, self.name, self.text = dev, obj.name, obj.lib.decode()

    def __call__(
        self, *bufs: np.ndarray, global_size: tuple[int, ...] = (1, 1, 1), local_size: tuple[int, ...] = (1, 1, 1),
        vals: tuple[int, ...] = (), **_: Any,
    ) -> None:  # fmt: skip
        kernel = mnb.compile(self.text, engine=self.device.engine)[self.name]
        self.device.ran.append(self.text)
        params = kernel.signature.params
        arrays = [b.view(numpy_dtype(p.type.layout.scalar)) for b, p in zip(bufs, params, strict=False)]
        grid = tuple(groups * threads for groups, threads in zip(global_size, local_size, strict=True))
        kernel(*arrays, *vals, grid=grid, threadgroup=tuple(local_size))


class MetalDevice(Compiled):
    """The device that tinygrad opens as METAL.

    Attributes
    ----------
    engine : str
        The engine that runs the kernels.
    ran : list of str
        The sources of the kernels that have run.
    """

    def __init__(self, device: str) -> None:
        super().__init__(device, _Memory(self), [MetalRenderer], _Kernel, arch=_FAMILY)
        self.engine = "cpu"
        self.ran: list[str] = []


def opened() -> MetalDevice:
    """Return the device, installed in place of the one that needs a Mac."""
    module = ModuleType("tinygrad.runtime.ops_metal")
    module.MetalCompiler, module.MetalDevice = MetalCompiler, MetalDevice  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    return Device[NAME]
