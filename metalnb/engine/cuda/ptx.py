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
from ..clang.entry_point import ENTRY_POINT, Head, entry_source
from ..clang.loop_exits import compile_with_back_paths
from ..unit import Unit
from .driver_api import INSTALL
from .padded_tables import restore_padding

__all__ = [
    "MIN_CAPABILITY",
    "ROUNDING_FLAGS",
    "checked_source",
    "compile_ptx",
    "cuda_source",
    "finish_ptx",
    "ignores_threadgroups",
    "libdevice",
    "limit_registers",
    "processor_flags",
    "target",
]  # fmt: skip

MIN_CAPABILITY = 70  # compute capability 7.0, Volta, the first to shuffle and vote under masks
# Compute capabilities that clang supports, with the first PTX version of each; a driver rejects PTX newer than its own.
# PTX for one GPU runs on all later ones.
_PTX_VERSIONS = {70: 63, 72: 63, 75: 65, 80: 70, 86: 71, 87: 74, 89: 78, 90: 78, 100: 86, 103: 88, 120: 87, 121: 88}

_KERNEL = 'extern "C" __attribute__((nvptx_kernel))'
_RETURN_BEYOND = "if ($beyond(here.position_in_grid, launch)) return;"
_LAUNCH, _SHARED = "const $launch launch", ("unsigned o{i}", "$dynamic_storage(o{i})")
# The last parameters are for the checks, which are inserted later.
_CHECKED = Head(
    _KERNEL,
    (
        "$thread_position here = $current_position(launch, launch.flags & 2);",
        _RETURN_BEYOND,
        "here = $known_position(here);",
    ),
    f"{_LAUNCH}, const __global metal::ulong* limits, __global $fault* faults, const __global $flag* flag", _SHARED,
)  # fmt: skip


def _head(*, row: bool) -> Head:
    here = f"$thread_position here = $current_position(launch, {'true' if row else 'false'});"
    return Head(_KERNEL, (here, _RETURN_BEYOND), _LAUNCH, _SHARED)


# Square roots and quotients are correctly rounded, even in fast math, as the MSL headers require.
ROUNDING_FLAGS = ("-mllvm", "-nvptx-prec-sqrtf32=1", "-mllvm", "-nvptx-prec-divf32=2")


@functools.cache
def libdevice() -> Path:
    """Return the file of NVIDIA's device library.

    Raises
    ------
    EngineUnavailable
        If it is not installed.
    """
    folders = [Path(folder) / "nvvm" / "libdevice" for folder in _toolkits()]
    for folder in folders:
        for file in sorted(folder.glob("libdevice*.bc")):
            return file
    message = f"engine 'cuda' needs NVIDIA's device library, of the package nvidia-nvvm: {INSTALL}"
    raise EngineUnavailable(message)


def _toolkits() -> list[str]:
    """List the folders where a toolkit may be installed: the wheels', the environment's, the system's."""
    spec = importlib.util.find_spec("nvidia")
    wheels = list(spec.submodule_search_locations or ()) if spec else []
    inside = [str(path) for folder in wheels for path in (*Path(folder).glob("cu[0-9]*"), *Path(folder).glob("cuda_*"))]
    folders = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    return [*inside, *folders, "/usr/local/cuda"]


def cuda_source(unit: Unit, *, row: bool = False) -> str:
    """Return the source for clang.

    Parameters
    ----------
    unit : Unit
    row : bool
        For threadgroups that are launched as one row of threads.
    """
    return entry_source(unit, _head(row=row))


def checked_source(unit: Unit) -> str:
    """Return the source for clang of a kernel that will be checked; its threadgroups can be launched either way."""
    return entry_source(unit, _CHECKED)


def compile_ptx(unit: Unit, capability: int, *, row: bool = False) -> str:
    """Compile a kernel.

    Parameters
    ----------
    unit : Unit
    capability : int
        The GPU's compute capability, 90 for 9.0.
    row : bool, optional
        As for `cuda_source`.

    Raises
    ------
    CompileError
    """
    def compile_unit(unit: Unit) -> str:
        def compile_to(*options: str) -> str:
            text = cuda_source(unit, row=row)
            return driver.compile_source(unit, text, target(capability), *ROUNDING_FLAGS, *options).decode()

        return finish_ptx(unit, compile_to(), lambda: compile_to("-emit-llvm"))

    return compile_with_back_paths(unit, compile_unit)


def finish_ptx(unit: Unit, text: str, llvm: Callable[[], str]) -> str:
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
        text = restore_padding(unit, text, llvm)
    except ValueError as error:
        message = f"engine 'cuda' cannot compile a table of three-component vectors at program scope: {error}"
        hint = "declare the table's elements as packed_float3 or float4"
        raise CompileError([kernel_diagnostic(unit, message, hint)]) from None
    return _declare_limits(text, unit.signature.max_threads)


def processor_flags(capability: int) -> tuple[str, ...]:
    """Return clang's flags for a GPU."""
    version = _nearest_capability(capability)
    return "--target=nvptx64-nvidia-cuda", f"-march=sm_{version}", f"--cuda-feature=+ptx{_PTX_VERSIONS[version]}"


def _nearest_capability(capability: int) -> int:
    return max(c for c in _PTX_VERSIONS if c <= capability)


@functools.cache
def target(capability: int) -> Target:
    """Return clang's flags."""
    return Target(
        "ptx",
        Path(__file__).parent / "prelude.h",
        (
            *processor_flags(capability), "-O3", "-S", f"-D$COMPUTE_CAPABILITY={_nearest_capability(capability)}",
            # `f(device T*)` and `f(constant T*)` are two functions, though both are global memory to PTX.
            "-Xclang", "-faddress-space-map-mangling=no",
            "-Xclang", "-cl-ext=+all",
            "-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(libdevice()),
        ),
    )  # fmt: skip


_HEAD_END = re.compile(rf"(\.entry {ENTRY_POINT}\([^)]*\))")


def limit_registers(text: str, threads: int) -> str:
    """Return PTX for threadgroups of up to ``threads`` threads, so that the assembler limits registers per thread."""
    return _HEAD_END.sub(rf"\1\n.maxntid {threads}, 1, 1", text, count=1)


_SMALL_THREADGROUP = 256  # threads: two threadgroups of up to this size should fit a processor


def _declare_limits(text: str, threads: int) -> str:
    """Return PTX with the limit of ``[[max_total_threads_per_threadgroup]]``; small groups run two to a processor."""
    if not threads:
        return text
    occupancy = "\n.minnctapersm 2" if threads <= _SMALL_THREADGROUP else ""
    return _HEAD_END.sub(rf"\1\n.maxntid {threads}, 1, 1{occupancy}", text, count=1)


# Features, other than inputs, that let a kernel observe how its threads are grouped.
_GROUP_FEATURES = re.compile(r"\.shared\.(?!align)|\bbar\.|\bvote\.|\bshfl\.|\bredux\.|\bactivemask\.|%laneid")
_GRID_INPUTS = frozenset({"thread_position_in_grid", "threads_per_grid", "grid_size", "grid_origin"})


def ignores_threadgroups(unit: Unit, text: str) -> bool:
    """Return whether a kernel's PTX cannot observe the size of its threadgroups.

    The last threadgroups of such a kernel are launched in full size, and their threads beyond the grid return
    immediately.
    """
    has_grid_inputs = all(input_.attribute in _GRID_INPUTS for input_ in unit.signature.inputs)
    return has_grid_inputs and not _GROUP_FEATURES.search(text)
