"""The CPU engine: SPIR-V on an OpenCL CPU device, on NumPy's own memory.

Python's side of a dispatch; the device itself is in ``opencl.py``.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from metalnb.errors import CompileError, Diagnostic, EngineUnavailable, KernelFault
from metalnb.msl.lower import ENTRY, Unit, opencl

from . import clang
from .base import Caps, Grid
from .indices import signed_indices
from .liveouts import divergent_liveouts
from .opencl import INSTALL, Device, open_device, runtime
from .regions import regions

__all__ = ["CpuEngine", "open_engine"]


def open_engine() -> CpuEngine:
    """Open the engine. The device itself is reached for when it is first needed.

    Raises
    ------
    EngineUnavailable
        When this machine has no OpenCL CPU device that will do.
    """
    clang.clang()
    if importlib.util.find_spec("pyopencl") is None:
        message = f"engine 'cpu' needs pyopencl: {INSTALL}"
        raise EngineUnavailable(message)
    opened = CpuEngine()
    if "OCL_ICD_VENDORS" in os.environ or runtime() is None:
        opened.connect()  # somebody else's OpenCL, or none: found out now rather than at the first call
    return opened


class Variant(NamedTuple):
    """How a kernel is entered: each way is compiled when a dispatch first needs it.

    Attributes
    ----------
    flat : bool
        Threadgroups are dispatched as rows: OpenCL cuts sub-groups along x only, Metal across the group.
    wide : bool
        Positions or indices may be 2^31 or more.
    """

    flat: bool = False
    wide: bool = False


@dataclass(slots=True)
class CpuBinary:
    """A compiled kernel: its usual variant, and the others once they are wanted."""

    unit: Unit
    kernel: Any
    threadgroup_bytes: int
    max_threads: int
    others: dict[Variant, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class CpuTicket:
    """A dispatch under way on the CPU."""

    __slots__ = ("_events", "_held")

    def __init__(self, events: Sequence[Any], held: Any) -> None:
        self._events = events
        self._held = held

    def wait(self) -> float | None:
        """Wait, with the GIL released. The seconds are not told: the queue keeps no device clock."""
        import pyopencl as cl

        try:
            for event in self._events:
                event.wait()
        except cl.Error as error:
            message = f"the kernel failed on the device: {error}"
            raise KernelFault(message) from error
        self._events = ()
        self._held = None
        return None


class CpuEngine:
    """Runs kernels on an OpenCL CPU device."""

    name = "cpu"

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def connect(self) -> Device:
        """Reach for the device: loads the OpenCL runtime, once.

        Raises
        ------
        EngineUnavailable
        """
        with self._lock:
            return self._device

    @functools.cached_property
    def _device(self) -> Device:
        return open_device()

    @property
    def caps(self) -> Caps:
        """What the device can do."""
        return self.connect().caps

    def text(self, unit: Unit) -> str:
        """Give the cell, and the entry point after it."""
        return opencl(unit)

    def compile(self, unit: Unit) -> CpuBinary:
        """Compile one kernel: text to SPIR-V to the device's code, each kept on disk."""
        device = self.connect()
        kernel = self._kernel(unit, Variant())
        info = device.cl.kernel_work_group_info
        return CpuBinary(
            unit,
            kernel,
            kernel.get_work_group_info(info.LOCAL_MEM_SIZE, device.device),
            kernel.get_work_group_info(info.WORK_GROUP_SIZE, device.device),
        )

    def alloc(self, nbytes: int) -> Any:
        """Give plain memory: the device shares all of the process's."""
        import numpy as np

        return np.empty(nbytes, np.uint8)

    def launch(self, binary: CpuBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> CpuTicket:
        """Start a dispatch."""
        device = self._device
        cl = device.cl
        bound = [
            cl.LocalMemory(a) if type(a) is int else (None if a is None else cl.SVM(a)) for a in arguments
        ]
        variant = Variant(binary.unit.simd and threadgroup[1] * threadgroup[2] > 1, _is_wide(arguments, grid))
        with binary.lock:
            kernel = binary.kernel
            if variant != _USUAL:
                kernel = binary.others.get(variant) or self._kernel(binary.unit, variant)
                binary.others[variant] = kernel
            if variant.flat:
                return _launch_rows(device, kernel, bound, grid, threadgroup, arguments)
            kernel.set_args(*bound)
            if grid[1] == grid[2] == threadgroup[1] == threadgroup[2] == 1:
                event = cl.enqueue_nd_range_kernel(device.queue, kernel, grid[:1], threadgroup[:1])
            else:
                event = cl.enqueue_nd_range_kernel(device.queue, kernel, grid, threadgroup)
        return CpuTicket((event,), arguments)

    def _kernel(self, unit: Unit, variant: Variant) -> Any:
        device = self.connect()
        code = clang.spirv(unit, opencl(unit, flat=variant.flat, wide=variant.wide))
        code = divergent_liveouts(code)
        if not variant.wide:
            code = signed_indices(code)
        try:
            return device.cl.Kernel(device.build(code), ENTRY)
        except device.cl.Error as error:
            raise CompileError([_refused(unit, error)]) from error


_USUAL = Variant()
_WIDE = 2**31


def _is_wide(arguments: Sequence[Any], grid: Grid) -> bool:
    return max(grid) >= _WIDE or any(getattr(a, "nbytes", 0) >= _WIDE for a in arguments)


def _launch_rows(
    device: Device, kernel: Any, bound: list[Any], grid: Grid, threadgroup: Grid, held: Any,
) -> CpuTicket:  # fmt: skip
    """Start a dispatch whose threadgroups are rows, one launch for each size of threadgroup."""
    groups = tuple(-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
    events, kept = [], []
    for first, count, size in regions(grid, threadgroup):
        region = bytearray(struct.pack("15I", *first, *size, *threadgroup, *grid, *groups))
        row = size[0] * size[1] * size[2]
        kernel.set_args(*bound, device.cl.SVM(region))
        whole = (count[0] * row, count[1], count[2])
        events.append(device.cl.enqueue_nd_range_kernel(device.queue, kernel, whole, (row, 1, 1)))
        kept.append(region)
    return CpuTicket(events, (held, kept))


def _refused(unit: Unit, error: Exception) -> Diagnostic:
    text = str(error)
    message = "the device's compiler refused the kernel: " + text.strip().splitlines()[-1]
    hint = ""
    if "Undefined" in text or "undefined" in text or "unresolved" in text.lower():
        hint = "a function is declared but never defined"
    line = unit.signature.line
    return Diagnostic(line, 1, f"{unit.signature.name}: {message}", unit.cell.edited.line(line), unit.cell.name, hint)
