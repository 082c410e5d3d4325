"""The device's compiler in a process of its own: SPIR-V modules come in over a socket, device binaries go out.

``compiler_process.py`` runs this file by its path, in an isolated Python without site-packages: it imports nothing of
metalnb, and reaches OpenCL's loader through ctypes, so that it is ready in a quarter of the time that importing
pyopencl takes. Requests come on file descriptor 0: a length of 8 bytes, least first, and the module. Replies have one
byte before the length: ``B`` a binary, ``R`` the log of a module that was refused. The first reply comes unasked: ``B``
and nothing when the compiler is ready, ``E`` and the reason when there is none. What the runtime prints goes to another
file, which the parent reads when this process has died.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import sys
import threading
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_ulong, c_void_p
from typing import Any

# Of cl.h.
_CPU, _IL_VERSION, _SVM, _FINE_GRAIN_SYSTEM = 2, 0x105B, 0x1053, 8
_BUILD_LOG, _BINARY_SIZES, _BINARIES = 0x1183, 0x1165, 0x1166

# A kernel that does nothing: `kernel void k() {}`.
_NOTHING = bytes.fromhex(
    "0302230700010100000007000600000000000000110002000400000011000200060000000b000500010000004f70656e434c2e73"
    "746400000e00030002000000020000000f00040006000000020000006b0000001300020003000000210003000400000003000000"
    "3600050003000000020000000000000004000000f800020005000000fd00010038000100"
)

_DATA = 4 << 30  # bytes of private memory: thirty times what the kernels of the library take
_STACK = 64 << 20  # of this thread, which compiles: deep expressions recurse
_FILE = 64 << 20  # what the runtime may print
_IDLE = 600_000  # milliseconds without a request


def main(library: str) -> None:
    """Serve until the other end is closed, or nothing has been asked for a long time."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _limit()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        device = _Device(library)
    except (OSError, AttributeError, LookupError) as error:
        _reply(b"E", str(error).encode())
        return
    device.build(_NOTHING)  # what the compiler loads for its first kernel takes longer than most kernels
    _reply(b"B", b"")
    waiting = select.poll()
    waiting.register(0, select.POLLIN)
    while waiting.poll(_IDLE):
        _reply(*device.build(_read(int.from_bytes(_read(8), "little"))))
    os._exit(0)


def _limit() -> None:
    for what, most in ((resource.RLIMIT_DATA, _DATA), (resource.RLIMIT_STACK, _STACK), (resource.RLIMIT_FSIZE, _FILE)):
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash is an answer here
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123  (pathlib takes 8 ms)
            file.write("1000")  # where memory runs out this process ends, and not the notebook's
    except OSError:
        pass


def _end_with_parent() -> None:
    """End when the parent is gone, in the middle of a build too."""
    hung_up = select.poll()
    hung_up.register(0, 0)
    hung_up.poll()
    os._exit(0)


def _read(count: int) -> bytes:
    parts = []
    while count:
        part = os.read(0, min(count, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _reply(kind: bytes, body: bytes) -> None:
    view = memoryview(kind + len(body).to_bytes(8, "little") + body)
    while view:
        view = view[os.write(0, view) :]


class _Device:
    """The first CPU device that takes SPIR-V and shares memory, as ``opencl.py`` chooses it."""

    def __init__(self, library: str) -> None:
        self.cl = cl = ctypes.CDLL(library)
        for name in ("clCreateContext", "clCreateProgramWithIL"):
            getattr(cl, name).restype = c_void_p
        cl.clCreateProgramWithIL.argtypes = (c_void_p, c_char_p, c_size_t, POINTER(c_int))
        for name in ("clGetDeviceInfo", "clGetProgramInfo"):
            getattr(cl, name).argtypes = (c_void_p, c_uint, c_size_t, c_void_p, POINTER(c_size_t))
        cl.clGetProgramBuildInfo.argtypes = (c_void_p, c_void_p, c_uint, c_size_t, c_void_p, POINTER(c_size_t))
        cl.clGetDeviceIDs.argtypes = (c_void_p, c_ulong, c_uint, c_void_p, POINTER(c_uint))
        cl.clBuildProgram.argtypes = (c_void_p, c_uint, c_void_p, c_char_p, c_void_p, c_void_p)
        cl.clReleaseProgram.argtypes = (c_void_p,)
        self.device = next(filter(self._fits, self._devices()), None)
        if self.device is None:
            message = "no OpenCL CPU device that takes SPIR-V and shares memory"
            raise LookupError(message)
        status = c_int()
        self.one = (c_void_p * 1)(self.device)
        self.context = cl.clCreateContext(None, 1, self.one, None, None, byref(status))
        if not self.context:
            message = f"no OpenCL context: error {status.value}"
            raise LookupError(message)

    def _devices(self) -> list[int]:
        platforms, devices = (c_void_p * 64)(), (c_void_p * 64)()
        count, found = c_uint(), []
        self.cl.clGetPlatformIDs(64, platforms, byref(count))
        for platform in platforms[: count.value]:
            if self.cl.clGetDeviceIDs(platform, _CPU, 64, devices, byref(count)) == 0:
                found += [d for d in devices[: count.value] if d]
        return found

    def _fits(self, device: int) -> bool:
        version, shared = (ctypes.c_char * 4096)(), c_ulong()
        get = self.cl.clGetDeviceInfo
        return (
            get(device, _IL_VERSION, len(version), version, None) == 0
            and b"SPIR-V" in version.value
            and get(device, _SVM, 8, byref(shared), None) == 0
            and bool(shared.value & _FINE_GRAIN_SYSTEM)
        )

    def build(self, code: bytes) -> tuple[bytes, bytes]:
        cl, status = self.cl, c_int()
        program = cl.clCreateProgramWithIL(self.context, code, len(code), byref(status))
        if not program:
            return b"R", f"it is not taken for SPIR-V: error {status.value}".encode()
        try:
            error = cl.clBuildProgram(program, 1, self.one, b"", None, None)
            if error:
                return b"R", self._log(program) or f"error {error}".encode()
            size = c_size_t()
            cl.clGetProgramInfo(program, _BINARY_SIZES, ctypes.sizeof(size), byref(size), None)
            binary = ctypes.create_string_buffer(size.value)
            places = (c_void_p * 1)(ctypes.addressof(binary))
            error = cl.clGetProgramInfo(program, _BINARIES, ctypes.sizeof(places), places, None)
            return (b"R", f"no binary: error {error}".encode()) if error else (b"B", binary.raw)
        finally:
            cl.clReleaseProgram(program)

    def _log(self, program: Any) -> bytes:
        size = c_size_t()
        self.cl.clGetProgramBuildInfo(program, self.device, _BUILD_LOG, 0, None, byref(size))
        log = ctypes.create_string_buffer(size.value + 1)
        self.cl.clGetProgramBuildInfo(program, self.device, _BUILD_LOG, size.value, log, None)
        return log.value.strip()


if __name__ == "__main__":
    main(sys.argv[1])
