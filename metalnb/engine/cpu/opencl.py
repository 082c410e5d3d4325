"""The OpenCL device of the CPU engine: found, opened, and given programs to build.

It is Intel's CPU runtime from PyPI (``intel-opencl-rt``), or any other OpenCL CPU device that takes SPIR-V and shares
the process's memory (fine-grain system SVM).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from metalnb import cache
from metalnb.errors import EngineUnavailable

from ..base import Caps

__all__ = ["INSTALL", "Device", "open_device", "runtime"]

INSTALL = "pip install pyopencl intel-opencl-rt intel-cmplr-lib-rt"


def runtime() -> Path | None:
    """Return the folder that names Intel's runtime to OpenCL's loader; None when the runtime is not installed.

    The wheel's own .icd file names a path that does not exist. Without a cache that can be written, the folder lasts as
    long as the process.
    """
    vendors = cache.folder() / "vendors" / cache.digest(sys.prefix)[:12]
    entry = vendors / "intel.icd"
    try:
        if not (entry.exists() and Path(entry.read_text(encoding="utf-8").strip()).exists()):
            library = _intel_library()
            if library is None:
                return None
            cache.folder().mkdir(mode=0o700, parents=True, exist_ok=True)  # by itself: parents get the usual mode
            vendors.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = vendors / f".intel.{os.getpid()}.{threading.get_ident()}"
            fresh.write_text(f"{library}\n", encoding="utf-8")
            fresh.replace(entry)
    except OSError:
        return _passing_folder()
    return vendors


@functools.cache
def _passing_folder() -> Path | None:
    library = _intel_library()
    if library is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="metalnb-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "intel.icd").write_text(f"{library}\n", encoding="utf-8")
    return folder


def _intel_library() -> Path | None:
    import importlib.metadata

    try:
        files = importlib.metadata.files("intel-opencl-rt") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    library = next((Path(str(f.locate())).resolve() for f in files if f.name == "libintelocl.so"), None)
    return library if library is not None and library.exists() else None


def open_device() -> Device:
    """Find the device and open it.

    Raises
    ------
    EngineUnavailable
        When there is none that will do.
    """
    import pyopencl as cl

    with _vendors():
        try:
            platforms = cl.get_platforms()
        except cl.Error:
            platforms = []
    devices = [d for p in platforms for d in p.get_devices() if d.type & cl.device_type.CPU and _takes_spirv(d)]
    if not devices:
        message = f"engine 'cpu' found no OpenCL CPU device that takes SPIR-V and shares memory: {INSTALL} (x86-64)"
        raise EngineUnavailable(message)
    return Device(devices[0])


@contextlib.contextmanager
def _vendors() -> Iterator[None]:
    """Name Intel's runtime while OpenCL's loader looks for platforms, which it does once in a process."""
    folder = None if "OCL_ICD_VENDORS" in os.environ else runtime()
    if folder is None:
        yield
        return
    os.environ["OCL_ICD_VENDORS"] = str(folder)
    try:
        yield
    finally:
        del os.environ["OCL_ICD_VENDORS"]


def _takes_spirv(device: Any) -> bool:
    import pyopencl as cl

    try:
        shared = device.svm_capabilities & cl.device_svm_capabilities.FINE_GRAIN_SYSTEM
        return bool(shared) and "SPIR-V" in device.il_version
    except (cl.Error, AttributeError):
        return False


class Device:
    """The OpenCL device, its context and its queue."""

    def __init__(self, device: Any) -> None:
        import pyopencl as cl

        self.cl = cl
        self.device = device
        self.context = cl.Context([device])
        # It notes when the device began and ended each command: of the 6 µs of a dispatch that takes 0.1.
        self.queue = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        atexit.register(self.finish)  # Python's end frees the memory that a kernel may still be writing to
        self.identity = f"{device.name}|{device.driver_version}|{device.version}"
        self.caps = Caps(
            device=str(device.name).strip(),
            versions={"OpenCL": device.version, "driver": device.driver_version, "pyopencl": cl.VERSION_TEXT},
            clock="device",
            serial=True,
        )

    @functools.cached_property
    def timed_queue(self) -> Any:
        """A second queue, for measuring: what other threads launch meanwhile does not wait behind its gate."""
        return self.cl.CommandQueue(self.context, properties=self.cl.command_queue_properties.PROFILING_ENABLE)

    def finish(self) -> None:
        """Wait for all that is under way."""
        with contextlib.suppress(self.cl.Error):  # told to whoever waits for the dispatch that failed
            self.queue.finish()

    def build(self, code: bytes) -> Any:
        """Build a module, from the cache if its device code is there."""
        cl, kept = self.cl, cache.store()
        key = cache.digest(code, self.identity)
        binary = kept.get(key, "device")
        if binary is not None:
            with contextlib.suppress(cl.Error):  # from another build of the runtime: made again
                return self._load(binary)
        binary = _build(cl.Program(self.context, code)).get_info(cl.program_info.BINARIES)[0]
        kept.put(key, "device", binary)
        return self._load(binary)  # in 2 ms: the program that was compiled holds 3 MB more, for as long as it lives

    def _load(self, binary: bytes) -> Any:
        return _build(self.cl.Program(self.context, [self.device], [binary]))


_quiet = threading.Lock()


def _build(program: Any) -> Any:
    """Build without pyopencl's warning that the compiler said something: it always says how well it vectorised."""
    with _quiet, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program.build(cache_dir=False)
