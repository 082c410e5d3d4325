"""The CPU engine: SPIR-V on an OpenCL CPU device, on NumPy's own memory.

The device is Intel's CPU runtime from PyPI (``intel-opencl-rt``), or any other OpenCL CPU device that takes SPIR-V
and shares the process's memory (fine-grain system SVM).
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import os
import struct
import sys
import threading
import warnings
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from metalnb import cache
from metalnb.errors import CompileError, Diagnostic, EngineUnavailable, KernelFault
from metalnb.msl.lower import ENTRY, Unit, opencl

from . import clang
from .base import Caps, Grid
from .indices import signed_indices

__all__ = ["CpuEngine", "open_engine"]

_INSTALL = "pip install pyopencl intel-opencl-rt intel-cmplr-lib-rt"


def open_engine() -> CpuEngine:
    """Open the engine. The device itself is reached for when it is first needed.

    Raises
    ------
    EngineUnavailable
        When this machine has no OpenCL CPU device that will do.
    """
    clang.clang()
    if importlib.util.find_spec("pyopencl") is None:
        message = f"engine 'cpu' needs pyopencl: {_INSTALL}"
        raise EngineUnavailable(message)
    opened = CpuEngine()
    if not _find_runtime():  # somebody else's OpenCL, or none: found out now rather than at the first call
        opened.connect()
    return opened


def _find_runtime() -> bool:
    """Point OpenCL's loader at Intel's runtime: the wheel's own .icd file names a path that does not exist."""
    if "OCL_ICD_VENDORS" in os.environ:
        return False
    vendors = cache.folder() / "vendors" / cache.digest(sys.prefix)[:12]
    entry = vendors / "intel.icd"
    try:
        if not (entry.exists() and Path(entry.read_text(encoding="utf-8").strip()).exists()):
            library = _intel_library()
            if library is None:
                return False
            vendors.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = vendors / f".intel.{os.getpid()}.{threading.get_ident()}"
            fresh.write_text(f"{library}\n", encoding="utf-8")
            fresh.replace(entry)
    except OSError as error:
        message = f"engine 'cpu' needs a folder it can write: {vendors}: set METALNB_CACHE to one"
        raise EngineUnavailable(message) from error
    os.environ["OCL_ICD_VENDORS"] = str(vendors)
    return True


def _intel_library() -> Path | None:
    import importlib.metadata

    try:
        files = importlib.metadata.files("intel-opencl-rt") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    library = next((Path(str(f.locate())).resolve() for f in files if f.name == "libintelocl.so"), None)
    return library if library is not None and library.exists() else None


def _connect() -> Any:
    """Find the device."""
    import pyopencl as cl

    try:
        platforms = cl.get_platforms()
    except cl.Error:
        platforms = []
    devices = [d for p in platforms for d in p.get_devices() if d.type & cl.device_type.CPU and _takes_spirv(d)]
    if not devices:
        message = f"engine 'cpu' found no OpenCL CPU device that takes SPIR-V and shares memory: {_INSTALL} (x86-64)"
        raise EngineUnavailable(message)
    return devices[0]


def _takes_spirv(device: Any) -> bool:
    import pyopencl as cl

    try:
        shared = device.svm_capabilities & cl.device_svm_capabilities.FINE_GRAIN_SYSTEM
        return bool(shared) and "SPIR-V" in device.il_version
    except (cl.Error, AttributeError):
        return False


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


class _Device:
    """The OpenCL device, its context and its queue."""

    def __init__(self, device: Any) -> None:
        import pyopencl as cl

        self.cl = cl
        self.device = device
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.identity = f"{device.name}|{device.driver_version}|{device.version}"
        self.caps = Caps(
            device=str(device.name).strip(),
            versions={"OpenCL": device.version, "driver": device.driver_version, "pyopencl": cl.VERSION_TEXT},
        )

    def build(self, code: bytes) -> Any:
        """Build a module, from the cache if its device code is there."""
        cl, kept = self.cl, cache.store()
        key = cache.digest(code, self.identity)
        binary = kept.get(key, "device")
        if binary is not None:
            try:
                return _build(cl.Program(self.context, [self.device], [binary]))
            except cl.Error:  # from another build of the runtime: made again
                pass
        program = _build(cl.Program(self.context, code))
        kept.put(key, "device", program.get_info(cl.program_info.BINARIES)[0])
        return program


_quiet = threading.Lock()


def _build(program: Any) -> Any:
    """Build without pyopencl's warning that the compiler said something: it always says how well it vectorised."""
    with _quiet, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program.build(cache_dir=False)


class CpuEngine:
    """Runs kernels on an OpenCL CPU device."""

    name = "cpu"

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def connect(self) -> _Device:
        """Reach for the device: loads the OpenCL runtime, once.

        Raises
        ------
        EngineUnavailable
        """
        with self._lock:
            return self._device

    @functools.cached_property
    def _device(self) -> _Device:
        return _Device(_connect())

    @property
    def caps(self) -> Caps:
        """What the device can do."""
        return self.connect().caps

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
            if grid[1] == grid[2] == 1:
                event = cl.enqueue_nd_range_kernel(device.queue, kernel, grid[:1], threadgroup[:1])
            else:
                event = cl.enqueue_nd_range_kernel(device.queue, kernel, grid, threadgroup)
        return CpuTicket((event,), arguments)

    def _kernel(self, unit: Unit, variant: Variant) -> Any:
        device = self.connect()
        code = clang.spirv(unit, opencl(unit, flat=variant.flat, wide=variant.wide))
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
    device: _Device, kernel: Any, bound: list[Any], grid: Grid, threadgroup: Grid, held: Any,
) -> CpuTicket:  # fmt: skip
    """Start a dispatch whose threadgroups are rows, one launch for each size of threadgroup."""
    groups = tuple(-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
    events, regions = [], []
    for first, count, size in _regions(grid, threadgroup):
        region = bytearray(struct.pack("15I", *first, *size, *threadgroup, *grid, *groups))
        row = size[0] * size[1] * size[2]
        kernel.set_args(*bound, device.cl.SVM(region))
        whole = (count[0] * row, count[1], count[2])
        events.append(device.cl.enqueue_nd_range_kernel(device.queue, kernel, whole, (row, 1, 1)))
        regions.append(region)
    return CpuTicket(events, (held, regions))


def _refused(unit: Unit, error: Exception) -> Diagnostic:
    text = str(error)
    message = "the device's compiler refused the kernel: " + text.strip().splitlines()[-1]
    hint = ""
    if "Undefined" in text or "undefined" in text or "unresolved" in text.lower():
        hint = "a function is declared but never defined"
    line = unit.signature.line
    return Diagnostic(line, 1, f"{unit.signature.name}: {message}", unit.cell.edited.line(line), unit.cell.name, hint)


def _regions(grid: Grid, threadgroup: Grid) -> Iterator[tuple[Grid, Grid, Grid]]:
    """Cut a grid into at most eight boxes of equal threadgroups: (first group, groups, threads of each)."""
    axes = []
    for threads, group in zip(grid, threadgroup, strict=True):
        whole, rest = divmod(threads, group)
        parts = [(0, whole, group)] if whole else []
        axes.append(parts + ([(whole, 1, rest)] if rest else []))
    for box in itertools.product(*axes):
        first, count, size = zip(*box, strict=True)
        yield first, count, size
