"""Compile a checked kernel to PTX in two steps: to LLVM IR, which receives the checks, and to PTX."""

from __future__ import annotations

import re
from dataclasses import replace

from metalnb import cache
from metalnb.errors import CompileError

from ...clang import driver
from ...clang.driver import BackendError
from ...clang.inlining import INLINE_ALL
from ...clang.loop_exits import compile_with_back_paths
from ...llvm.llvm_reader import read_module
from ...llvm.llvm_types import UnsupportedIR
from ...llvm.llvm_writer import replace_function
from ...robust.check_choice import KernelChecks
from ...robust.fault_messages import warn_unchecked
from ...robust.kernel_analysis import Analysis
from ...robust.rewriting.check_insertion import CheckedModule
from ...unit import Unit
from ..ptx import ROUNDING_FLAGS, checked_source, finish_ptx, processor_flags, target
from .cuda_entry import SHARED, CudaEntry
from .gpu_target import GpuTarget

__all__ = ["CheckedPtx", "compile_checked_ptx"]

# Loops are left alone unless fully unrolled, which moves thread arrays into registers; everything is inlined into
# one function, and each instruction keeps its line.
_SIMPLIFY = (
    "-O1", "-D$CHECKED", "-gline-tables-only", "-fno-finite-loops", "-funroll-loops", "-fno-vectorize",
    "-fno-slp-vectorize",
    *(word for flag in (
        "-unroll-runtime=0", "-unroll-allow-partial=0", "-unroll-allow-peeling=0", "-unroll-allow-loop-nests-peeling=0",
        "-disable-loop-idiom-all",
    ) for word in ("-mllvm", flag)),
    *INLINE_ALL, "-emit-llvm",
)  # fmt: skip
_DECLARED = re.compile(r"^declare .*@metalnb_(\w+)\(.*$", re.MULTILINE)
_PROMISES = re.compile(r"(?:readnone|readonly|writeonly|captures\([^)]*\)) ")  # these hold only for the original module
_DEBUG_LOCATIONS = re.compile(r",? !dbg !\d+|^!llvm\.dbg\.cu = .*$", re.MULTILINE)
_SHARED_MEMORY = f"""define internal ptr addrspace(3) @{SHARED}(i32 %0) alwaysinline {{
  %2 = call ptr addrspace(3) asm "mov.u64 $0, metalnb_dynamic;", "=l"()
  %3 = zext i32 %0 to i64
  %4 = getelementptr i8, ptr addrspace(3) %2, i64 %3
  ret ptr addrspace(3) %4
}}"""


class CheckedPtx:
    """A kernel's checks, and its PTX with some of them.

    Parameters
    ----------
    unit : Unit
    capability : int
        The GPU's compute capability, 90 for 9.0.
    text : str
        The kernel's LLVM IR without checks.

    Attributes
    ----------
    checks : KernelChecks

    Raises
    ------
    UnsupportedIR, ValueError
        If the text cannot be parsed.
    """

    def __init__(self, unit: Unit, capability: int, text: str) -> None:
        self._unit, self._capability, self._text = unit, capability, text
        module = read_module(text)
        entry = CudaEntry(module)
        analysis = Analysis(replace(module, functions={entry.function: module.functions[entry.function]}), entry)
        self.checks = KernelChecks(module, analysis, GpuTarget(entry))

    def ptx(self, kernel: CheckedModule) -> str:
        """Return the PTX of a form.

        Raises
        ------
        CompileError
        """
        function = kernel.module.functions[CudaEntry.function]
        text = replace_function(self._text, function, head=_PROMISES.sub("", function.head))
        text = _DECLARED.sub(_definition, _DEBUG_LOCATIONS.sub("", text))
        return finish_ptx(self._unit, _compile_ir(self._unit, text, self._capability), lambda: text)


def compile_checked_ptx(unit: Unit, capability: int) -> CheckedPtx | None:
    """Return a kernel's checks; None if its text cannot be parsed.

    Raises
    ------
    CompileError
    """
    def compile_unit(unit: Unit) -> str:
        text, flags = checked_source(unit), (*ROUNDING_FLAGS, *_SIMPLIFY)
        return driver.compile_source(unit, text, target(capability), *flags).decode()

    try:
        return CheckedPtx(unit, capability, compile_with_back_paths(unit, compile_unit))
    except (UnsupportedIR, ValueError) as reason:
        if isinstance(reason, CompileError) and not isinstance(reason, BackendError):
            raise  # no other form of the kernel compiles
        warn_unchecked(unit, reason)
        return None


def _definition(declaration: re.Match[str]) -> str:
    """Return the definition of a function that appears as a call only to the analysis."""
    name = f"metalnb_{declaration[1]}"
    if name == SHARED:
        return _SHARED_MEMORY
    return f"define internal i32 @{name}(i32 %0) alwaysinline {{\n  ret i32 %0\n}}"


def _compile_ir(unit: Unit, text: str, capability: int) -> str:
    contract = f"-ffp-contract={'fast' if unit.math == 'fast' else 'on'}"
    flags = (*processor_flags(capability), "-O3", "-S", contract, *ROUNDING_FLAGS)

    def build() -> bytes:
        with cache.store().scratch() as folder:
            (folder / "in.ll").write_text(text, encoding="utf-8")
            command = [*driver.clang_command(), "-Wno-everything", *flags, "-x", "ir", "-c", "in.ll", "-o", "out"]
            status, output = driver.run_clang(command, folder, unit)
            if status:
                message = f"clang cannot compile it: {output.strip()[-500:]}"
                raise BackendError([driver.kernel_diagnostic(unit, message)])
            return (folder / "out").read_bytes()

    return cache.store().make(cache.digest(text, driver.compiler_version(), *flags), "ptx", build).decode()
