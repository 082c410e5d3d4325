"""Compile a unit to PTX, and have the driver assemble and load it in the forms that dispatches need."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metalnb.errors import CompileError

from ..base import Binary
from ..clang.driver import kernel_diagnostic
from ..clang.entry_point import ENTRY_POINT
from ..robust.rewriting.check_insertion import CheckedModule
from ..unit import Unit
from .cuda_checks.checked_binary import CheckedBinary
from .cuda_checks.checked_ptx import compile_checked_ptx
from .launch_record import LaunchRecord
from .nvidia_driver import LOADING, Gpu
from .ptx import compile_ptx, ignores_threadgroups, limit_registers

__all__ = ["Assembler", "CudaBinary"]

_LARGE_PTX = 200_000  # characters; longer PTX is assembled with little optimization


@dataclass(slots=True)
class Function:
    """A kernel loaded by the driver, and the largest threadgroup for which there are enough registers."""

    handle: Any
    max_threads: int
    module: Any


@dataclass(slots=True)
class CudaBinary(Binary):
    """A compiled kernel, and the records that its launches fill.

    Attributes
    ----------
    text : str
        The kernel's PTX.
    full_size : bool
        See `ptx.ignores_threadgroups`.
    checked : bool
        Whether it has checks; a launch then passes three more addresses, and its threadgroups may have either shape.
    functions : dict
        The loaded functions, by their largest threadgroup and whether it is launched as a row.
    records : list of LaunchRecord
        Free records: taken and returned without a lock, and created when none is left.
    """

    unit: Unit
    name: str
    text: str
    full_size: bool
    threadgroup_bytes: int
    checked: bool = False
    functions: dict[tuple[int, bool], Function] = field(default_factory=dict)
    records: list[LaunchRecord] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Assembler:
    """Has the driver assemble kernels for a GPU.

    Parameters
    ----------
    gpu : Gpu
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu

    def compile(self, unit: Unit) -> CudaBinary | CheckedBinary:
        """Compile one kernel: from source to PTX, cached on disk, to the GPU's code, cached by the driver."""
        source = compile_checked_ptx(unit, self._gpu.capability) if unit.checked else None
        if source is None:
            return self._assemble(unit, compile_ptx(unit, self._gpu.capability))
        binary = CheckedBinary(unit, source)
        binary.threadgroup_bytes = self.form_for(binary, source.checks.initial_module).threadgroup_bytes
        return binary

    def form_for(self, binary: CheckedBinary, kernel: CheckedModule) -> CudaBinary:
        """Return a checked kernel's form.

        The form without checks is compiled from the text that was analyzed, too. Compiled from the source, the kernel
        may contain accesses that were optimized away before the analysis, such as stores to an array that nothing
        reads. Where these are out of bounds, clang would conclude, for example, that a loop never ends.
        """
        form: CudaBinary | None = binary.forms.get(kernel.checks)
        if form is None:
            with binary.lock:
                text = binary.source.ptx(kernel)
                form = binary.forms[kernel.checks] = self._assemble(binary.unit, text, checked=True)
        return form

    def _assemble(self, unit: Unit, text: str, *, checked: bool = False) -> CudaBinary:
        self._gpu.settle()
        with self._gpu:
            binary = CudaBinary(unit, unit.signature.name, text, ignores_threadgroups(unit, text), 0, checked)
            function = binary.functions[0, False] = self._load(unit, text)
            attribute = self._gpu.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
            binary.threadgroup_bytes = self._gpu.take(self._gpu.api.cuFuncGetAttribute(attribute, function.handle))
            return binary

    def _load(self, unit: Unit, text: str) -> Function:
        api, gpu = self._gpu.api, self._gpu
        image = np.frombuffer(text.encode() + b"\0", np.uint8)
        # The assembler takes quadratic time unless it optimizes little.
        options = [(api.CUjit_option.CU_JIT_OPTIMIZATION_LEVEL, 1)] if len(text) > _LARGE_PTX else []
        names, values = [name for name, _ in options], [value for _, value in options]
        with LOADING:
            status, module = api.cuModuleLoadDataEx(image.ctypes.data, len(options), names, values)
        if status:
            reason = (api.cuGetErrorString(status)[1] or b"?").decode()
            raise CompileError([kernel_diagnostic(unit, f"the GPU's assembler rejected its PTX: {reason}")])
        handle = gpu.take(api.cuModuleGetFunction(module, ENTRY_POINT.encode()))
        max_threads = gpu.take(
            api.cuFuncGetAttribute(api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, handle)
        )
        return Function(handle, max_threads, module)

    def function(self, binary: CudaBinary, threads: int, *, row: bool) -> Function:
        """Return the function for threadgroups of `threads` threads."""
        row = row and not binary.checked
        function = binary.functions.get((0, row))
        if function is None:
            text = compile_ptx(binary.unit, self._gpu.capability, row=row)
            function = binary.functions[0, row] = self._load(binary.unit, text)
        if threads <= function.max_threads:
            return function
        if (1024, row) not in binary.functions:
            text = compile_ptx(binary.unit, self._gpu.capability, row=row) if row else binary.text
            binary.functions[1024, row] = self._load(binary.unit, limit_registers(text, 1024))
        return binary.functions[1024, row]
