"""Turn a unit into code in this process, with clang, a linker and the runtime; every step is cached on disk."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from metalnb import cache
from metalnb.errors import EngineUnavailable, KernelFault

from ..clang import driver
from ..clang.driver import Target
from .linking import link, run_tool

__all__ = [
    "ORDERED",
    "PRELUDE",
    "borrow_region",
    "compile_runtime",
    "cores",
    "flags_for",
    "host_target",
    "link_lanes",
    "load_kernel_library",
    "load_lane_library",
    "load_library",
    "pool",
    "target_triple",
]  # fmt: skip

_FOLDER = Path(__file__).parent
_RUNTIME = _FOLDER / "runtime"
PRELUDE = _FOLDER / "prelude.h"
_ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
_SYSTEMS = {"linux": "linux-gnu", "darwin": "macos11", "win32": "windows-gnu"}


def target_triple() -> str:
    """Return clang's name for this machine.

    Raises
    ------
    EngineUnavailable
    """
    machine = _ARCHITECTURES.get(platform.machine().lower())
    system = _SYSTEMS.get(sys.platform)
    if machine is None or system is None or (machine, system) == ("aarch64", "windows-gnu"):
        message = (
            f"engine 'cpu' is for x86-64 and aarch64 under Linux and macOS, and for x86-64 under Windows; "
            f"this is {platform.machine()} under {sys.platform}"
        )
        raise EngineUnavailable(message)
    return f"{machine}-{system}"


def processor() -> str:
    """Return a name for this processor's instruction set; code for it may not run on an older processor."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        flags = [line for line in lines if line.lower().startswith(("flags", "features", "cpu part", "model name"))]
        return cache.digest(*sorted(set(flags)))[:12]
    return cache.digest(platform.machine(), platform.processor())[:12]


@functools.cache
def flags() -> tuple[str, ...]:
    """Return clang's flags for this machine's code; METALNB_MARCH names an older processor, such as "x86-64-v3"."""
    march = os.environ.get("METALNB_MARCH", "native")
    return (*flags_for(target_triple()), f"-march={march}", f"-DMETALNB_PROCESSOR={processor()}")


def flags_for(triple: str) -> tuple[str, ...]:
    """Return clang's flags for a kind of machine."""
    # Except on x86, clang does not enable all of OpenCL, such as tables at program scope.
    extensions = () if triple.startswith("x86_64") else ("-Xclang", "-cl-ext=+all")
    return (f"--target={triple}", *extensions, *_PLAIN)


# Nothing unwinds, and pointers may be cast freely, as GPU compilers allow. Memory is aligned as NumPy aligns it, not
# for vectors. No division uses an estimated reciprocal, which turns 1/0 into NaN.
_PLAIN = (
    "-fPIC", "-fvisibility=hidden", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fno-exceptions",
    "-fno-strict-aliasing", "-fmax-type-align=8", "-mrecip=none", "-mprefer-vector-width=512", "-O3",
)  # fmt: skip


# For fibers: record each call site, and neither merge calls nor make tail calls. Otherwise `if (c) y = simd_sum(a);
# else y = simd_sum(b);` may become a single call, at which all lanes would converge.
ORDERED = ("-gdwarf-4", "-gline-tables-only", "-fno-optimize-sibling-calls", "-mllvm", "-enable-tail-merge=false")


@functools.cache
def host_target() -> Target:
    """Return this machine as a target for clang."""
    return Target("cpu", PRELUDE, flags())


def load_kernel_library(code: bytes, runtime: str, texts: Mapping[str, str]) -> tuple[ctypes.CDLL, bytes]:
    """Link a kernel's object file with the runtime and load it.

    Parameters
    ----------
    code : bytes
    runtime : {"loops", "fibers", "validation"}
    texts : mapping of str to str
        The unit's texts.

    Returns
    -------
    library, file
        The loaded library, and its bytes.
    """
    file = link(code, *_parts(runtime), triple=target_triple())
    library = load_library(file)
    if runtime != "loops":
        from .call_sites import call_site_ranks
        from .iteration_ends import find_iteration_ends

        library.metalnb_call_sites.restype = None
        key = cache.digest("call sites", file, *(part for text in sorted(texts.items()) for part in text))
        ends = find_iteration_ends(texts)
        ranks = cache.store().make(key, "cpu-call-sites", lambda: call_site_ranks(code, file, ends))
        library.metalnb_call_sites(ctypes.c_char_p(ranks or None))
        setattr(library, "ranks", ranks)  # noqa: B010  (kept as long as the library, which has no such attribute)
    return library, file


def load_lane_library(code: bytes) -> ctypes.CDLL:
    """Link the object file of a vectorized kernel with the runtime and load it."""
    return load_library(link_lanes(code, "lanes"))


def link_lanes(code: bytes, runtime: str) -> bytes:
    """Link the object file of a vectorized kernel with one of its runtimes: lanes, or counts."""
    return link(code, *_parts(runtime), triple=target_triple())


def _parts(runtime: str) -> list[bytes]:
    """Return the runtime's object files that a kernel is linked with."""
    parts = [compile_runtime(runtime)]
    if target_triple().startswith("x86_64"):
        parts.append(compile_runtime("half_conversions"))
    if sys.platform == "win32":
        parts.append(compile_runtime("windows_calls"))
    return parts


def compile_runtime(name: str, options: tuple[str, ...] = ()) -> bytes:
    """Compile a part of the runtime (``"fibers"``) or return the cached one; by default with this machine's flags."""
    compile_flags = options or flags()
    source = _RUNTIME / f"{name}.c"
    key = cache.digest(name, _runtime_digest(), driver.compiler_version(), *compile_flags)

    def build() -> bytes:
        with cache.store().scratch() as folder:
            out = folder / "out.o"
            run_tool(
                [*driver.clang_command(), *compile_flags, "-std=c17", "-nostdinc", "-c", str(source), "-o", str(out)]
            )  # fmt: skip
            return out.read_bytes()

    return cache.store().make(key, "cpu-runtime", build)


@functools.cache
def _runtime_digest() -> str:
    """Return a digest of the runtime's sources."""
    return cache.digest(*(source.read_bytes() for source in sorted(_RUNTIME.glob("*.[ch]"))))


def load_library(code: bytes) -> ctypes.CDLL:
    """Load a shared library into this process permanently."""
    if sys.platform == "win32":
        return ctypes.CDLL(str(_permanent_file(code)))
    with _temporary_file(code) as path:
        return ctypes.CDLL(str(path))


def _permanent_file(code: bytes) -> Path:
    """Return a permanent file with this code, as Windows cannot remove a loaded one."""
    store = cache.store()
    path = store.path(cache.digest("library", code), "cpu-loaded", ".dll")
    if store.has(path) and path.read_bytes() == code:
        return path
    try:
        store.prepare(path)
        with store.scratch() as folder:
            file = folder / path.name
            file.write_bytes(code)
            store.take(file, path)
    except OSError:
        path = Path(tempfile.mkdtemp(prefix="metalnb-")) / "code.dll"
        path.write_bytes(code)
    return path


@contextlib.contextmanager
def _temporary_file(code: bytes) -> Iterator[Path]:
    """Write code to a temporary file while it is loaded; a folder for temporary files may forbid loading."""
    with cache.store().scratch() as folder:
        path = folder / "code.so"
        path.write_bytes(code)
        yield path


@functools.cache
def pool() -> ctypes.CDLL:
    """Return the process's pool of threads, with its functions typed."""
    library = load_library(link(compile_runtime("pool"), triple=target_triple()))
    library.metalnb_run.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)
    library.metalnb_run.restype, library.metalnb_lend.restype = ctypes.c_uint64, ctypes.c_int
    library.metalnb_lend.argtypes = (ctypes.c_char_p, ctypes.c_void_p)
    library.metalnb_return.argtypes = (ctypes.c_void_p,)
    library.metalnb_return.restype = None
    library.metalnb_open.argtypes = (ctypes.c_uint32,)

    def open_pool() -> None:
        library.metalnb_open((cores() or 1) - 1)

    open_pool()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=open_pool)
    return library


class _Region(ctypes.Structure):
    """`fiber_region` in runtime/pool.c."""

    _fields_ = [("start", ctypes.c_void_p), ("stacks", ctypes.c_uint64), ("memory", ctypes.c_uint64)]


@contextlib.contextmanager
def borrow_region(dispatch: bytes) -> Iterator[int]:
    """Yield the address of the memory in which one core runs a dispatch's fibers.

    Raises
    ------
    KernelFault
        If there is no memory for it.
    """
    region = _Region()
    if not pool().metalnb_lend(dispatch, ctypes.byref(region)):
        message = "no memory for the threads' stacks: each core needs 512 MiB of addresses (see ulimit -v)"
        raise KernelFault(message)
    try:
        yield region.start or 0
    finally:
        pool().metalnb_return(ctypes.byref(region))


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
