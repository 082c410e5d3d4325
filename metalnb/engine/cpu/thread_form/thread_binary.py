"""A kernel run one thread at a time, in this process: each checked form is compiled when a dispatch first needs it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...base import Binary, Grid
from ...robust.rewriting.check_insertion import CheckedModule, Checks
from ...unit import Unit
from .. import toolchain
from ..cpu_checks.thread_checks import ThreadChecks
from ..lanes.card_facts import execution_facts
from .thread_build import compile_checked_object, compile_thread_object, find_checks

__all__ = ["ThreadBinary", "ThreadCode", "compile_thread_binary"]


@dataclass(frozen=True, slots=True)
class ThreadCode:
    """One form of a kernel, loaded.

    Attributes
    ----------
    run : int
        The address of the function that runs its threadgroups.
    fibers : bool
        Whether each thread is a fiber: threads converge, or the kernel is checked.
    storage_bytes : int
        Bytes of threadgroup memory that the kernel declares, besides its arguments.
    library : ctypes.CDLL
        The loaded library that holds the code.
    prints : bool
    """

    run: int
    fibers: bool
    storage_bytes: int
    library: Any
    prints: bool


@dataclass(slots=True)
class ThreadBinary(Binary):
    """A kernel, one thread at a time.

    Attributes
    ----------
    unit : Unit
    reason : str
        Why it does not run in vector registers; empty if that was not requested.
    checks : ThreadChecks or None
        None for a kernel that is not checked.
    forms : dict
        The code compiled so far, by its checks.
    threadgroup_bytes : int
    """

    unit: Unit
    reason: str = ""
    checks: ThreadChecks | None = None
    forms: dict[Checks, ThreadCode] = field(default_factory=dict)
    threadgroup_bytes: int = 0

    def facts(self) -> list[tuple[str, str]]:
        """Return how the kernel runs, for its card."""
        return execution_facts(self.unit) if self.reason else []

    def module_for(self, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> CheckedModule | None:
        """Return the kernel with the checks that a dispatch needs; None for one that is not checked."""
        return None if self.checks is None else self.checks.for_dispatch(arguments, grid, threadgroup)

    def code_for(self, kernel: CheckedModule | None) -> ThreadCode:
        """Return the code with the given checks.

        Raises
        ------
        CompileError
        """
        key = Checks() if kernel is None else kernel.checks
        code = self.forms.get(key)
        if code is None:
            code = self.forms[key] = self._load(kernel)
        return code

    def _load(self, kernel: CheckedModule | None) -> ThreadCode:
        if self.checks is None or kernel is None or not kernel.checks:
            code, fibers = compile_thread_object(self.unit)
        else:
            code, fibers = compile_checked_object(self.unit, self.checks, kernel), True
        library, _ = toolchain.load_kernel_library(code, "fibers" if fibers else "loops", self.unit.texts)
        library.metalnb_prepare.restype = ctypes.c_uint32
        run = ctypes.cast(library.metalnb_groups, ctypes.c_void_p).value or 0
        return ThreadCode(run, fibers, library.metalnb_prepare(), library, b"metalnb_print" in code)


def compile_thread_binary(unit: Unit, reason: str = "") -> ThreadBinary:
    """Compile a kernel as a loop over threads, or as fibers if its threads converge or are checked.

    Parameters
    ----------
    unit : Unit
    reason : str
        Why it does not run in vector registers.

    Raises
    ------
    CompileError
    """
    binary = ThreadBinary(unit, reason, find_checks(unit) if unit.checked else None)
    code = binary.code_for(None if binary.checks is None else binary.checks.initial_module)
    binary.threadgroup_bytes = code.storage_bytes
    return binary
