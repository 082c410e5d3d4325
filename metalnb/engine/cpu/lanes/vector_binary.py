"""A kernel in vector registers, loaded in this process: each form is compiled when a dispatch first needs it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...base import Grid
from ...clang.driver import Refused
from ...llvm.instructions import IRModule
from ...llvm.llvm_reader import read
from ...llvm.llvm_types import UnreadText
from ...robust.rewriting.checks import CheckedModule, Checks
from ...unit import Unit
from ...vectoriser.not_vectorised import NotVectorised
from ...vectoriser.simd_forms import SimdForm, form_for
from ...vectoriser.vectorise import VectorisedKernel, has_barriers, uses_simdgroup
from .. import toolchain
from ..cpu_checks.lane_checks import LaneChecks
from . import vector_build
from .vector_report import LINES, how_it_runs

__all__ = ["VectorBinary", "VectorCode", "opened"]

_KEPT = 256  # kinds of dispatches
_WHOLE = (1024, 1, 1), (256, 1, 1)  # the grid and the threadgroup of a kernel's first form
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
    full : ctypes.c_uint32
        Nonzero after a dispatch that ran out of memory for coroutine frames.
    library : ctypes.CDLL
        The library with the code.
    gathers : tuple of str
        See `VectorisedKernel`.
    """

    run: int
    storage_bytes: int
    full: ctypes.c_uint32
    library: Any
    gathers: tuple[str, ...]


@dataclass(slots=True)
class VectorBinary:
    """A kernel in vector registers.

    Attributes
    ----------
    unit : Unit
    module : IRModule
        One thread of it.
    simd : bool
        Whether it uses its SIMD-group.
    waits : bool
        Whether its SIMD-groups wait for each other, and so are coroutines.
    region : bool
        Whether a core needs its own memory to run it: for coroutine frames or threadgroup memory.
    checks : LaneChecks or None
        None for a kernel that is not checked.
    threadgroup_bytes : int
    lanes : int
        The largest number of lanes that it runs in.
    plain : CheckedModule
        The module without checks.
    texts, forms : dict
        Text that is not yet compiled, and compiled code, by form and checks.
    dispatched : dict
        The code of earlier dispatches, by the identity of their module, their grid and threadgroup.
    instead : ThreadBinary or None
        The kernel compiled to run one thread at a time, for dispatches whose form cannot be vectorised.
    """

    unit: Unit
    module: IRModule
    simd: bool
    has_barriers: bool
    region: bool
    checks: LaneChecks | None = None
    threadgroup_bytes: int = 0
    lanes: int = 32
    plain: CheckedModule = field(init=False)
    texts: dict[tuple[SimdForm, Checks], VectorisedKernel] = field(default_factory=dict)
    forms: dict[tuple[SimdForm, Checks], VectorCode] = field(default_factory=dict)
    dispatched: dict[tuple[int, Grid, Grid], VectorCode] = field(default_factory=dict)
    instead: Any = None

    def __post_init__(self) -> None:
        self.plain = CheckedModule(self.module, Checks())

    def facts(self) -> list[tuple[str, str]]:
        """Return how it runs, for its card."""
        return how_it_runs(self.unit)

    @property
    def first(self) -> CheckedModule:
        """The kernel's first form."""
        return self.plain if self.checks is None else self.checks.initial_module

    def module_for(self, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> CheckedModule:
        """Return the kernel with the checks that a dispatch needs."""
        return self.plain if self.checks is None else self.checks.for_dispatch(arguments, grid, threadgroup)

    def code(self, made: CheckedModule, grid: Grid, threadgroup: Grid) -> VectorCode:
        """Return the code for a dispatch.

        Raises
        ------
        NotVectorised
            With the reason why it must run one thread at a time.
        """
        call = id(made), grid, threadgroup  # modules live as long as this binary
        known = self.dispatched.get(call)
        if known is not None:
            return known
        form = form_for(grid, threadgroup, simd=self.simd, max_lanes=self.lanes)
        key = form, made.checks
        found = self.forms.get(key)
        if found is None:
            found = self.forms[key] = self._loaded(self._text(made, form))
            self.texts.pop(key, None)
        if len(self.dispatched) >= _KEPT:
            self.dispatched.clear()
        self.dispatched[call] = found
        return found

    def write(self) -> None:
        """Vectorise the kernel for full SIMD-groups, to find whether that is possible and what the kernel needs.

        Raises
        ------
        NotVectorised
        """
        made = self._text(self.first, form_for(*_WHOLE, simd=self.simd))
        self.threadgroup_bytes = made.threadgroup_bytes
        self.lanes = vector_build.lanes_of(self.first.module, made)

    def _text(self, made: CheckedModule, form: SimdForm) -> VectorisedKernel:
        key = form, made.checks
        found = self.texts.get(key)
        if found is None:
            found = self.texts[key] = vector_build.vectorised(made.module, form)
        return found

    def _loaded(self, made: VectorisedKernel) -> VectorCode:
        try:
            code = vector_build.object_of(made, self.unit)
        except Refused as refused:
            raise NotVectorised(str(refused)) from refused
        library = toolchain.lane_library(code)
        run = ctypes.cast(library.metalnb_groups, ctypes.c_void_p).value or 0
        full = ctypes.c_uint32.in_dll(library, "metalnb_full")
        return VectorCode(run, made.storage_bytes, full, library, made.gathers)


def opened(unit: Unit) -> VectorBinary:
    """Compile a kernel to the IR of one thread, and analyse it.

    Raises
    ------
    CompileError
    NotVectorised
    """
    try:
        module = read(vector_build.thread_text(unit, *(_CHECKED if unit.checked else ())))
    except UnreadText as error:
        raise NotVectorised(str(error)) from error
    simd = uses_simdgroup(module)
    memory = "metalnb_storage" in module.declarations or any(p.space == "threadgroup" for p in unit.signature.params)
    barriers = has_barriers(module)
    try:
        checks = LaneChecks(unit, module) if unit.checked else None
    except ValueError as reason:
        raise NotVectorised(str(reason)) from reason
    return VectorBinary(unit, module, simd, barriers, barriers or memory, checks)
