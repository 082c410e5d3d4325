"""OpenCL's loader: it is told where Intel's runtime is, in this process and in the compiler's."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from metalnb import cache

__all__ = ["bindings", "runtime", "vendors"]


_LIBRARY = "libintelocl.so"


def runtime() -> Path | None:
    """Return the folder that names Intel's runtime to OpenCL's loader; None when the runtime is not installed.

    The wheel's own .icd file names a path that does not exist. Without a cache that can be written, the folder lasts as
    long as the process.
    """
    vendors = cache.folder() / "vendors" / cache.digest(sys.prefix)[:12]
    entry = vendors / "intel.icd"
    if cache.store().is_open:
        return _passing_folder()
    try:
        if not _names_a_library(entry):
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


def _names_a_library(entry: Path) -> bool:
    """Return whether an .icd file is whole, and its library there."""
    try:
        library = Path(entry.read_bytes().decode().strip())
        return library.name == _LIBRARY and library.is_file()
    except (OSError, ValueError):  # none, or not a path at all
        return False


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
    library = next((Path(str(f.locate())).resolve() for f in files if f.name == _LIBRARY), None)
    return library if library is not None and library.exists() else None


@contextlib.contextmanager
def vendors() -> Iterator[None]:
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


def bindings() -> tuple[Path, dict[str, str]] | None:
    """Return pyopencl's library, without importing it, and the environment that the loader beside it needs.

    None without pyopencl. Importing pyopencl would set this environment, for this process.
    """
    spec = importlib.util.find_spec("pyopencl")
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        for library in Path(folder).glob("_cl*.so"):
            folder_of_runtime = None if "OCL_ICD_VENDORS" in os.environ else runtime()
            named = {"OCL_ICD_VENDORS": str(folder_of_runtime)} if folder_of_runtime else {}
            return library, {"PYOPENCL_HOME": folder, **named}
    return None
