"""The OpenCL device of the CPU engine: found, opened, and given programs to build.

It is Intel's CPU runtime from PyPI (``intel-opencl-rt``), or any other OpenCL CPU device that takes SPIR-V and shares
the process's memory (fine-grain system SVM).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import threading
import warnings
from typing import Any, NoReturn

from metalnb import cache
from metalnb.errors import EngineUnavailable, MetalnbWarning
from metalnb.msl.libclang.deep_stack import time_limit

from ..base import Caps
from .at_once import STATUS, bound_type, local_queue
from .compiler_process import OPTIONS, BuildFailed, CompilerProcess, NoCompilerProcess
from .leaving import at_end, leaving, stay
from .loader import vendors

__all__ = ["INSTALL", "Device", "LeftBehind", "open_device"]

INSTALL = "pip install pyopencl intel-opencl-rt intel-cmplr-lib-rt"


def open_device(compiler: CompilerProcess) -> Device:
    """Find the device and open it.

    Raises
    ------
    EngineUnavailable
        When there is none that will do.
    """
    import pyopencl as cl

    with vendors():
        try:
            platforms = cl.get_platforms()
        except cl.Error:
            platforms = []
    devices = [d for p in platforms for d in p.get_devices() if d.type & cl.device_type.CPU and _takes_spirv(d)]
    if not devices:
        message = f"engine 'cpu' found no OpenCL CPU device that takes SPIR-V and shares memory: {INSTALL} (x86-64)"
        raise EngineUnavailable(message)
    return Device(devices[0], compiler)


def _takes_spirv(device: Any) -> bool:
    import pyopencl as cl

    try:
        shared = device.svm_capabilities & cl.device_svm_capabilities.FINE_GRAIN_SYSTEM
        return bool(shared) and "SPIR-V" in device.il_version
    except (cl.Error, AttributeError):
        return False


class Device:
    """The OpenCL device, its context, its queue, and the process that compiles for it."""

    def __init__(self, device: Any, compiler: CompilerProcess) -> None:
        import pyopencl as cl

        self.compiler = compiler
        self._others: dict[str, CompilerProcess] = {}  # by their options
        self.cl = cl
        self.device = device
        self.context = cl.Context([device])
        # It notes when the device began and ended each command: of the 6 µs of a dispatch that takes 0.1.
        self.queue = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        self.last: Any = None  # the event of what was started last on that queue; None once it is known to have ended
        self._order = threading.Lock()
        self.svm = cl.SVM
        self.enqueue = cl.enqueue_nd_range_kernel
        self.bound_type = bound_type(cl)
        at_end()
        atexit.register(self.finish)  # Python's end frees the memory that a kernel may still be writing to
        self.identity = f"{device.name}|{device.driver_version}|{device.version}"
        self.caps = Caps(
            device=str(device.name).strip(),
            versions={"OpenCL": device.version, "driver": device.driver_version, "pyopencl": cl.VERSION_TEXT},
            clock="device",
            serial=True,
            threads=device.max_work_group_size,
            stops=True,
            ahead=device.name.lower().startswith("intel"),  # AMD's fetch more by themselves: docs/coming-from.md
        )

    @functools.cached_property
    def timed_queue(self) -> Any:
        """A second queue, for measuring: what other threads launch meanwhile does not wait behind its gate."""
        return self.cl.CommandQueue(self.context, properties=self.cl.command_queue_properties.PROFILING_ENABLE)

    @functools.cached_property
    def local_queue(self) -> Any:
        """A queue for brief dispatches, which run in the thread that enqueues them; None where there is no such."""
        return local_queue(self.cl, self.context, self.device)

    def started(self, event: Any) -> None:
        """Note what was started last on the queue."""
        with self._order:
            self.last = event

    def busy(self) -> bool:
        """Return whether something that was started on the queue has not ended."""
        with self._order:
            if self.last is not None and self.last.get_info(STATUS) > 0:
                return True
            self.last = None
        return False

    def argument(self, given: Any) -> Any:
        """Return an argument of a dispatch as OpenCL takes it."""
        if type(given) is self.bound_type or given is None:
            return given
        return self.cl.LocalMemory(given) if type(given) is int else self.cl.SVM(given)

    def finish(self) -> None:
        """Wait for all that is under way."""
        with contextlib.suppress(self.cl.Error):  # told to whoever waits for the dispatch that failed
            self.queue.finish()

    def build(
        self, code: bytes, *, vectorised: bool = True, options: str = OPTIONS, seconds: float | None = None,
    ) -> Any:  # fmt: skip
        """Build a module, from the cache if its device code is there. It is compiled in a process of its own, if any.

        Parameters
        ----------
        code : bytes
            SPIR-V.
        vectorised : bool
            False: each thread by itself, many times slower. The module must not have SIMD functions.
        options : str
            The compiler's: see `options_for`.
        seconds : float, optional
            That it may take; by default as long as any compiler (`time_limit`).

        Raises
        ------
        BuildFailed
            A module that crashed the compiler is remembered, and not tried again. So is one that took longer than the
            time given, where that was less than any compiler has.
        """
        kept = cache.store()
        key = cache.digest(code, self.identity, options, *(() if vectorised else ("not vectorised",)))
        binary = kept.get(key, "device")
        if binary is not None:
            with contextlib.suppress(self.cl.Error):  # from another build of the runtime: made again
                return self._load(binary)
        crash = kept.get(key, "crashes")
        if crash is not None:
            raise BuildFailed(crash.decode(errors="replace"), "crashed")
        seconds = time_limit() if seconds is None else seconds
        waited = kept.get(key, "hangs")
        if waited is not None and float(waited) >= seconds:
            raise BuildFailed(f"the device's compiler gave no answer in {waited.decode()} s", "hung")
        try:
            binary = self._compiled(options, code, vectorised, seconds)
        except NoCompilerProcess as error:
            return self._load(self._compiled_here(code, error))
        except BuildFailed as failed:
            if failed.kind == "crashed":
                kept.put(key, "crashes", failed.reason.encode())
            if failed.kind == "hung" and seconds < time_limit():
                kept.put(key, "hangs", f"{seconds:g}".encode())
            raise
        kept.put(key, "device", binary)
        return self._load(binary)

    def _compiled(self, options: str, code: bytes, vectorised: bool, seconds: float) -> bytes:
        if vectorised:
            return self._compiler(options).build(code, seconds)
        with contextlib.closing(CompilerProcess(_ONE_LANE, options=options)) as slow:
            return slow.build(code, seconds)

    def _compiler(self, options: str) -> CompilerProcess:
        """Return the process that compiles with some options; it is started when it is first asked."""
        if options == OPTIONS:
            return self.compiler
        with self._order:
            if options not in self._others:
                self._others[options] = CompilerProcess(options=options)
            return self._others[options]

    def _compiled_here(self, code: bytes, why: NoCompilerProcess) -> bytes:
        """Compile a module in this process, without `OPTIONS`; the binary is not another session's to find."""
        message = (
            f"the device's compiler cannot run in a process of its own ({why}): it runs in this one, which a kernel "
            "that crashes the compiler would end, and without the options that keep it from known faults"
        )
        warnings.warn(message, MetalnbWarning, stacklevel=3)
        program = self.cl.Program(self.context, code)
        try:
            return bytes(_build(program).get_info(self.cl.program_info.BINARIES)[0])
        except self.cl.Error as error:
            log = program.get_build_info(self.device, self.cl.program_build_info.LOG).strip()
            raise BuildFailed(log or str(error), "refused") from None

    def _load(self, binary: bytes) -> Any:
        if _UNREACHABLE in binary:
            message = "it was not vectorised, and its SIMD-group operations need that"
            raise BuildFailed(message, "refused")
        return _build(self.cl.Program(self.context, [self.device], [binary]))


class LeftBehind:
    """What stands in a fork for the device of the process that was forked: whoever asks it for anything is refused."""

    def __init__(self, device: Device | None) -> None:
        self._held = device  # to destroy its queue would be to wait for threads that are not here
        if device is not None:
            atexit.unregister(device.finish)

    def __getattr__(self, _name: str) -> NoReturn:
        message = (
            "engine 'cpu': this process was forked from one that had used the engine, and cannot use it itself. "
            "Start it anew: multiprocessing.get_context('spawn'), or fork before the first kernel."
        )
        raise EngineUnavailable(message)


# What a kernel prints before it ends the process, when the compiler gave up vectorising it: only such a binary has it.
_UNREACHABLE = b" execution breaks subgroup semantics"
_ONE_LANE = {"CL_CONFIG_CPU_VECTORIZER_MODE": "1"}


def _build(program: Any) -> Any:
    """Build without pyopencl's warning that the compiler said something: it always says how well it vectorised.

    The warning is not caught, for ``warnings.catch_warnings`` changes the filters of all threads, also while one of
    theirs is in force. It is what ``Program.build`` adds to the call below.
    """
    if leaving:
        stay()
    program._get_prg()._build(options=b"", devices=None)  # noqa: SLF001
    return program
