"""Link object files to a shared library, with zig's LLVM linkers, or on macOS with Apple's linker or zig's own."""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from metalnb import cache
from metalnb.compile_limits import time_limit
from metalnb.errors import EngineUnavailable

from ..clang import driver

__all__ = ["link", "run_tool"]

# The functions that kernels and their runtime use from Windows' libraries.
_IMPORTS = Path(__file__).parent / "runtime" / "imports"


def link(*objects: bytes, triple: str, flags: tuple[str, ...] = ()) -> bytes:
    """Link object files to a shared library, cached on disk by content.

    Parameters
    ----------
    *objects : bytes
    triple : str
        clang's name for their machine.
    flags : tuple of str, optional
        Linker flags to use instead of those for a shared library.

    Raises
    ------
    EngineUnavailable
        If there is no linker, or it fails.
    """

    def build() -> bytes:
        with cache.store().scratch() as folder:
            names = []
            for i, part in enumerate(objects):
                names.append(str(folder / f"{i}.o"))
                Path(names[-1]).write_bytes(part)
            out = folder / "out.so"
            if "windows" in triple:
                output = [f"-out:{out}", *_write_import_libraries(folder)]
            else:
                output = ["-o", str(out)]
            run_tool([*_linker(triple), *(flags or _shared_flags(triple)), *output, *names])
            return out.read_bytes()

    imports = [file.read_bytes() for file in sorted(_IMPORTS.iterdir())] if "windows" in triple else []
    return cache.store().make(
        cache.digest("linked", driver.compiler_version(), triple, *flags, *imports, *objects), "cpu-library", build,
    )  # fmt: skip


def run_tool(command: Sequence[str]) -> None:
    """Run a compiler or a linker.

    Raises
    ------
    EngineUnavailable
        If the tool fails; the error quotes the end of its output.
    """
    result = subprocess.run(command, capture_output=True, check=False, timeout=time_limit())
    if result.returncode:
        output = (result.stderr or result.stdout).decode(errors="replace").strip()[-1000:]
        message = f"engine 'cpu': {Path(command[1]).name} failed: {output}"
        raise EngineUnavailable(message)


def _linker(triple: str) -> list[str]:
    """Return the command that starts the linker.

    Raises
    ------
    EngineUnavailable
        If no linker is installed.
    """
    clang_path = Path(driver.clang_command()[0])
    zig = [str(clang_path)] if clang_path.stem == "zig" else []
    if "macos" in triple:  # zig has no LLVM linker for Mach-O; Apple's is faster where it is installed
        apple = _apple_compiler()
        if apple or zig:
            return [apple] if apple else [*zig, "cc", "-target", _zig_target(triple)]
    name = "lld-link" if "windows" in triple else "ld.lld"
    if zig:
        return [*zig, name]
    path = shutil.which(name, path=f"{clang_path.parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if path is None:
        message = f"engine 'cpu' needs LLVM's linker {name} beside the clang of METALNB_CLANG"
        raise EngineUnavailable(message)
    return [path]


@functools.cache
def _apple_compiler() -> str | None:
    """Return Apple's compiler, which runs the linker. Without developer tools, a Mac's `cc` is only a stub."""
    compiler, xcode_select = shutil.which("cc"), shutil.which("xcode-select")
    if platform.system() != "Darwin" or compiler is None or xcode_select is None:
        return None
    result = subprocess.run([xcode_select, "-p"], capture_output=True, check=False, timeout=time_limit())
    return None if result.returncode else compiler


def _zig_target(triple: str) -> str:
    machine, _, system = triple.partition("-")
    return f"{machine}-macos.{system.removeprefix('macos')}.0"


def _shared_flags(triple: str) -> tuple[str, ...]:
    if "macos" in triple:
        return ("-dynamiclib", "-undefined", "dynamic_lookup")
    if "windows" in triple:  # visible symbols are exported; symbols and lines are kept for call_sites.py
        return ("-lldmingw", "-dll", "-noentry", "-machine:x64", "-opt:ref", "-Brepro", "-debug:dwarf", "-debug:symtab")
    return ("-shared", "--gc-sections", "--hash-style=gnu", "-z", "noexecstack")


def _write_import_libraries(folder: Path) -> list[str]:
    """Write import libraries, which name the Windows library that has each function."""
    libraries = []
    for names in sorted(_IMPORTS.iterdir()):
        libraries.append(str(folder / f"{names.stem}.lib"))
        run_tool([*_linker("windows"), "-lib", f"-def:{names}", "-machine:x64", f"-out:{libraries[-1]}"])
    return libraries
