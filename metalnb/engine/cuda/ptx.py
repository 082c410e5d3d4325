"""Compile a unit to PTX with clang's back end for NVIDIA GPUs, linking the math functions of libdevice as bitcode."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from collections.abc import Callable
from pathlib import Path

from metalnb.errors import CompileError, EngineUnavailable

from ..clang import driver
from ..clang.driver import Target, kernel_diagnostic
from ..clang.entry_point import ENTRY, Head, entry_source
from ..clang.loop_exits import compile_with_back_paths
from ..unit import Unit
from .driver_api import INSTALL
from .padded_tables import padded

__all__ = [
    "LEAST", "ROUNDED", "bounded", "cannot_tell", "checked_source", "finished", "libdevice",
    "processor_flags", "ptx", "source", "target",
]  # fmt: skip

LEAST = 70  # compute capability 7.0, Volta, the first to shuffle and vote under masks
# Compute capabilities that clang supports, with the first PTX version of each; a driver rejects PTX newer than its own.
# PTX for one GPU runs on all later ones.
_KNOWN = {70: 63, 72: 63, 75: 65, 80: 70, 86: 71, 87: 74, 89: 78, 90: 78, 100: 86, 103: 88, 120: 87, 121: 88}

_KERNEL, _BEYOND = 'extern "C" __attribute__((nvptx_kernel))', "if ($beyond(here.position_in_grid, launch)) return;"
_LAUNCH, _SHARED = "const $launch launch", ("unsigned o{i}", "$dynamic_storage(o{i})")
# The last parameters are for the checks, which are inserted later.
_CHECKED = Head(
    _KERNEL, ("$place here = $here(launch, launch.how & 2);", _BEYOND, "here = $known_place(here);"),
    f"{_LAUNCH}, const __global metal::ulong* limits, __global $fault* faults, const __global $flag* flag", _SHARED,
)  # fmt: skip


def _head(*, row: bool) -> Head:
    here = f"$place here = $here(launch, {'true' if row else 'false'});"
    return Head(_KERNEL, (here, _BEYOND), _LAUNCH, _SHARED)


# Square roots and quotients are correctly rounded, even in fast math, as the MSL headers require.
ROUNDED = ("-mllvm", "-nvptx-prec-sqrtf32=1", "-mllvm", "-nvptx-prec-divf32=2")


@functools.cache
def libdevice() -> Path:
    """Return the file of NVIDIA's device library.

    Raises
    ------
    EngineUnavailable
        If there is none.
    """
    found = [Path(folder) / "nvvm" / "libdevice" for folder in _toolkits()]
    for folder in found:
        for file in sorted(folder.glob("libdevice*.bc")):
            return file
    message = f"engine 'cuda' needs NVIDIA's device library, of the package nvidia-nvvm: {INSTALL}"
    raise EngineUnavailable(message)


def _toolkits() -> list[str]:
    """List the folders where a toolkit may be installed: the wheels', the environment's, the system's."""
    spec = importlib.util.find_spec("nvidia")
    wheels = list(spec.submodule_search_locations or ()) if spec else []
    inside = [str(path) for folder in wheels for path in (*Path(folder).glob("cu[0-9]*"), *Path(folder).glob("cuda_*"))]
    named = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    return [*inside, *named, "/usr/local/cuda"]


def source(unit: Unit, *, row: bool = False, cell: str = "") -> str:
    """Return the source for clang.

    Parameters
    ----------
    unit : Unit
    row : bool
        For threadgroups that are launched as one row of threads.
    cell : str
        The cell's text, if it was changed.
    """
    return entry_source(unit, _head(row=row), cell)


def checked_source(unit: Unit, cell: str) -> str:
    """Return the source for clang of a kernel that will be checked; its threadgroups can be launched either way."""
    return entry_source(unit, _CHECKED, cell)


def ptx(unit: Unit, capability: int, *, row: bool = False) -> str:
    """Compile a kernel.

    Parameters
    ----------
    unit : Unit
    capability : int
        The GPU's compute capability, 90 for 9.0.
    row : bool, optional
        As for `source`.

    Raises
    ------
    CompileError
    """
    def made(cell: str) -> str:
        def printed(*more: str) -> str:
            text = source(unit, row=row, cell=cell)
            return driver.compile_source(unit, text, target(capability), *ROUNDED, *more).decode()

        return finished(unit, printed(), lambda: printed("-emit-llvm"))

    return compile_with_back_paths(unit, made)


def finished(unit: Unit, text: str, llvm: Callable[[], str]) -> str:
    """Return clang's PTX ready for a driver: with its tables repaired, and the size of a threadgroup.

    Parameters
    ----------
    unit : Unit
    text : str
    llvm : callable
        Returns the LLVM IR of the same kernel.

    Raises
    ------
    CompileError
    """
    try:
        text = padded(unit, text, llvm)
    except ValueError as error:
        message = f"a table at program scope holds vectors of three, which clang writes wrongly as PTX: {error}"
        raise CompileError([kernel_diagnostic(unit, message, "declare it of packed_float3, or of float4")]) from None
    return _declared(text, unit.signature.max_threads)


def processor_flags(capability: int) -> tuple[str, ...]:
    """Return clang's flags for a GPU."""
    known = _known(capability)
    return "--target=nvptx64-nvidia-cuda", f"-march=sm_{known}", f"--cuda-feature=+ptx{_KNOWN[known]}"


def _known(capability: int) -> int:
    return max(c for c in _KNOWN if c <= capability)


@functools.cache
def target(capability: int) -> Target:
    """Return clang's flags."""
    return Target(
        "ptx",
        Path(__file__).parent / "prelude.h",
        (
            *processor_flags(capability), "-O3", "-S", f"-D$COMPUTE_CAPABILITY={_known(capability)}",
            # `f(device T*)` and `f(constant T*)` are two functions, though both are global memory to PTX.
            "-Xclang", "-faddress-space-map-mangling=no",
            "-Xclang", "-cl-ext=+all",
            "-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(libdevice()),
        ),
    )  # fmt: skip


_HEAD_END = re.compile(rf"(\.entry {ENTRY}\([^)]*\))")


def bounded(text: str, threads: int) -> str:
    """Return PTX for threadgroups of up to ``threads`` threads, so that the assembler limits registers per thread."""
    return _HEAD_END.sub(rf"\1\n.maxntid {threads}, 1, 1", text, count=1)


_TWICE = 256  # threads: two threadgroups of up to this size should fit a processor


def _declared(text: str, threads: int) -> str:
    """Return PTX with the limit of ``[[max_total_threads_per_threadgroup]]``; small groups run two to a processor."""
    if not threads:
        return text
    twice = "\n.minnctapersm 2" if threads <= _TWICE else ""
    return _HEAD_END.sub(rf"\1\n.maxntid {threads}, 1, 1{twice}", text, count=1)


# Features, other than inputs, that let a kernel observe how its threads are grouped.
_GROUPED = re.compile(r"\.shared\.(?!align)|\bbar\.|\bvote\.|\bshfl\.|\bredux\.|\bactivemask\.|%laneid")
_ALONE = frozenset({"thread_position_in_grid", "threads_per_grid", "grid_size", "grid_origin"})


def cannot_tell(unit: Unit, text: str) -> bool:
    """Return whether a kernel's PTX cannot observe the size of its threadgroups.

    The last threadgroups of such a kernel are launched in full size, and their threads beyond the grid return
    immediately.
    """
    return all(given.attribute in _ALONE for given in unit.signature.inputs) and not _GROUPED.search(text)
