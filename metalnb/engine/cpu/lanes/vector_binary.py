"""A kernel in vector registers, loaded in this process: each form is compiled when a dispatch first needs it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...base import Binary, Grid
from ...clang.driver import BackendError
from ...llvm.instructions import IRModule
from ...llvm.llvm_reader import read_module
from ...llvm.llvm_types import UnsupportedIR
from ...robust.rewriting.check_insertion import CheckedModule, Checks
from ...unit import Unit
from ...vectorizer.not_vectorized import NotVectorized
from ...vectorizer.simd_forms import SimdForm, form_for
from ...vectorizer.vectorize import VectorizedKernel, has_barriers, uses_simdgroup
from .. import toolchain
from ..cpu_checks.lane_checks import LaneChecks
from . import vector_build
from .card_facts import LINES, execution_facts

__all__ = ["VectorBinary", "VectorCode", "open_vector_binary"]

_MAX_REMEMBERED = 256  # kinds of dispatches
_FIRST_LAUNCH = (1024, 1, 1), (256, 1, 1)  # the grid and the threadgroup of a kernel's first form
_CHECKED = (*LINES, "-fno-finite-loops")  # an endless loop is stopped and reported, instead of assumed unreachable


@dataclass(frozen=True, slots=True)
class VectorCode:
    """One form of a kernel, loaded.

    Attributes
    ----------
    run : int
        The address of the function that runs its threadgroups.
    storage_bytes : int
        Bytes of threadgroup memory that the kernel's variables take in this form.
    out_of_memory : ctypes.c_uint32
        Nonzero after a dispatch that ran out of memory for coroutine frames.
    library : ctypes.CDLL
        The library with the code.
    gathers : tuple of str
        See `VectorizedKernel`.
    """

    run: int
    storage_bytes: int
    out_of_memory: ctypes.c_uint32
    library: Any
    gathers: tuple[str, ...]


@dataclass(slots=True)
class VectorBinary(Binary):
    """A kernel in vector registers.

    Attributes
    ----------
    unit : Unit
    module : IRModule
        The LLVM IR of one thread.
    uses_simdgroup : bool
        Whether it uses its SIMD-group.
    has_barriers : bool
        Whether its SIMD-groups wait for each other, and so are coroutines.
    needs_region : bool
        Whether a core needs its own memory to run it: for coroutine frames or threadgroup memory.
    checks : LaneChecks or None
        None for a kernel that is not checked.
    threadgroup_bytes : int
    lanes : int
        The largest number of lanes that it runs in.
    unchecked : CheckedModule
        The module without checks.
    texts, forms : dict
        Text that is not yet compiled, and compiled code, by form and checks.
    dispatch_codes : dict
        The code of earlier dispatches, by the identity of their module, their grid and threadgroup.
    fallback : ThreadBinary or None
        The kernel compiled to run one thread at a time, for dispatches whose form cannot be vectorized.
    """

    unit: Unit
    module: IRModule
    uses_simdgroup: bool
    has_barriers: bool
    needs_region: bool
    checks: LaneChecks | None = None
    threadgroup_bytes: int = 0
    lanes: int = 32
    unchecked: CheckedModule = field(init=False)
    texts: dict[tuple[SimdForm, Checks], VectorizedKernel] = field(default_factory=dict)
    forms: dict[tuple[SimdForm, Checks], VectorCode] = field(default_factory=dict)
    dispatch_codes: dict[tuple[int, Grid, Grid], VectorCode] = field(default_factory=dict)
    fallback: Any = None

    def __post_init__(self) -> None:
        self.unchecked = CheckedModule(self.module, Checks())

    def facts(self) -> list[tuple[str, str]]:
        """Return how it runs, for its card."""
        return execution_facts(self.unit)

    @property
    def initial_module(self) -> CheckedModule:
        """The kernel's first form."""
        return self.unchecked if self.checks is None else self.checks.initial_module

    def module_for(self, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> CheckedModule:
        """Return the kernel with the checks that a dispatch needs."""
        return self.unchecked if self.checks is None else self.checks.for_dispatch(arguments, grid, threadgroup)

    def code_for(self, kernel: CheckedModule, grid: Grid, threadgroup: Grid) -> VectorCode:
        """Return the code for a dispatch.

        Raises
        ------
        NotVectorized
            If the kernel must run one thread at a time; the message has the reason.
        """
        call = id(kernel), grid, threadgroup  # modules live as long as this binary
        cached = self.dispatch_codes.get(call)
        if cached is not None:
            return cached
        form = form_for(grid, threadgroup, simd=self.uses_simdgroup, max_lanes=self.lanes)
        key = form, kernel.checks
        code = self.forms.get(key)
        if code is None:
            code = self.forms[key] = self._load(self._vectorize(kernel, form))
            self.texts.pop(key, None)
        if len(self.dispatch_codes) >= _MAX_REMEMBERED:
            self.dispatch_codes.clear()
        self.dispatch_codes[call] = code
        return code

    def vectorize_first(self) -> None:
        """Vectorize the kernel for full SIMD-groups, to find whether that is possible and what the kernel needs.

        Raises
        ------
        NotVectorized
        """
        form = self._vectorize(self.initial_module, form_for(*_FIRST_LAUNCH, simd=self.uses_simdgroup))
        self.threadgroup_bytes = form.threadgroup_bytes
        self.lanes = vector_build.lane_count(self.initial_module.module, form)

    def _vectorize(self, kernel: CheckedModule, form: SimdForm) -> VectorizedKernel:
        key = form, kernel.checks
        text = self.texts.get(key)
        if text is None:
            try:
                text = self.texts[key] = vector_build.vectorize_form(kernel.module, form)
            except UnsupportedIR as error:
                raise NotVectorized(str(error)) from error
        return text

    def _load(self, form: VectorizedKernel) -> VectorCode:
        try:
            code = vector_build.compile_vectorized(form, self.unit)
        except BackendError as refused:
            raise NotVectorized(str(refused)) from refused
        library = toolchain.load_lane_library(code)
        run = ctypes.cast(library.metalnb_groups, ctypes.c_void_p).value or 0
        out_of_memory = ctypes.c_uint32.in_dll(library, "metalnb_out_of_memory")
        return VectorCode(run, form.storage_bytes, out_of_memory, library, form.gathers)


def open_vector_binary(unit: Unit) -> VectorBinary:
    """Compile a kernel to the IR of one thread, and analyze it.

    Raises
    ------
    CompileError
    NotVectorized
    """
    try:
        module = read_module(vector_build.thread_text(unit, *(_CHECKED if unit.checked else ())))
    except UnsupportedIR as error:
        raise NotVectorized(str(error)) from error
    simd = uses_simdgroup(module)
    has_arguments = any(param.space == "threadgroup" for param in unit.signature.params)
    needs_memory = has_arguments or "metalnb_storage" in module.declarations
    barriers = has_barriers(module)
    try:
        checks = LaneChecks(unit, module) if unit.checked else None
    except ValueError as reason:
        raise NotVectorized(str(reason)) from reason
    return VectorBinary(unit, module, simd, barriers, barriers or needs_memory, checks)
