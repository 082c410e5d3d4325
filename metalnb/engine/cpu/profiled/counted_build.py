"""A kernel in the counted build: the engine's vector code at 32 lanes, with counters, linked with counts.c."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

from metalnb.errors import CompileError

from ...base import Grid
from ...clang import driver
from ...clang.driver import BackendError
from ...llvm.llvm_reader import read_module
from ...llvm.llvm_types import UnsupportedIR
from ...process_locks import new_lock
from ...unit import Unit
from ...vectorizer.not_vectorized import NotVectorized
from ...vectorizer.simd_forms import SimdForm, form_for
from ...vectorizer.vectorize import THREAD_FUNCTION, has_barriers, variable_layout
from .. import toolchain
from ..lanes import vector_build
from ..lanes.vector_binary import VectorBinary, open_vector_binary
from .counting_code import CountingCode
from .counts import Operations
from .operation_counts import count_operations
from .operation_origins import Origins, insert_marks
from .register_estimate import estimate_registers

__all__ = ["CountedBuild", "counted_build"]

# Without vector-combine, which splits loads of char4 and short4 into loads of components: a GPU makes one.
_FLAGS = ("-gdwarf-4", "-gline-tables-only", "-DMETALNB_COUNTED", "-mllvm", "-disable-vector-combine")
# Arithmetic instructions. A product of SIMD-group matrices is a call in a plain build, and about 860 instructions here.
# 64 products in one block, 57,000 instructions, compile in a few seconds; 200 of them take more than a minute.
_MAX_INSTRUCTIONS = 80_000
_loading = new_lock()


@dataclass(frozen=True, slots=True)
class CountedBuild:
    """A kernel with counters.

    Attributes
    ----------
    name : str
        The name of the kernel.
    linked : bytes
        A shared library.
    libraries : list of ctypes.CDLL
        The library, loaded once for each worker so far: each copy has its own counters.
    checked : VectorBinary
        The kernel with its accesses checked.
    code : CountingCode
        The meaning of the library's counters.
    origins : Origins
    operations : dict
        A lane's operations, by block and by line.
    registers : int
    storage_bytes, threadgroup_bytes : int
        The size of the kernel's threadgroup variables in this build, and as Metal counts it.
    variables : tuple of (int, int, int)
        See `Counts`.
    """

    name: str
    linked: bytes
    libraries: list[Any]
    checked: VectorBinary
    code: CountingCode
    origins: Origins
    operations: dict[str, dict[int, Operations]]
    registers: int
    storage_bytes: int
    threadgroup_bytes: int
    variables: tuple[tuple[int, int, int], ...]

    def library(self, worker: int) -> Any:
        """Return a worker's copy of the library."""
        with _loading:
            while len(self.libraries) <= worker:
                self.libraries.append(toolchain.load_library(self.linked))
        return self.libraries[worker]


class _BuildKey:
    """A unit and a form as a key, compared by identity."""

    def __init__(self, unit: Unit, form: SimdForm) -> None:
        self.unit, self.form = unit, form

    def __hash__(self) -> int:
        return hash((id(self.unit), self.form))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BuildKey) and other.unit is self.unit and other.form == self.form


def counted_build(unit: Unit, grid: Grid, threadgroup: Grid) -> CountedBuild:
    """Return a unit's counted build for a dispatch, built on first use.

    Raises
    ------
    CompileError
        Also for a kernel that cannot run in vector registers, with the reason.
    """
    try:
        return _build(_BuildKey(unit, form_for(grid, threadgroup, simd=True)))
    except (NotVectorized, UnsupportedIR, BackendError) as reason:
        message = f"it cannot be counted, since it does not run in vector registers: {reason}"
        hint = "docs/vectorizer.md lists what runs a thread at a time"
        raise CompileError([driver.kernel_diagnostic(unit, message, hint)]) from None


@functools.lru_cache(64)
def _build(key: _BuildKey) -> CountedBuild:
    module = read_module(insert_marks(_thread_text(key.unit)))
    origins = Origins(module)
    function = module.functions[THREAD_FUNCTION]
    operations = count_operations(function, origins)
    work = {label: sum(o.total for o in lines.values()) for label, lines in operations.items()}
    code = CountingCode(function, work, waits=has_barriers(module))
    vector = vector_build.vectorize_form(module, key.form, on_instruction=code)
    _add_private_accesses(operations, code, origins)
    text = f"{vector.text}\n{code.globals}"
    linked = toolchain.link_lanes(vector_build.compile_vectorized(replace(vector, text=text), key.unit), "counts")
    checked = open_vector_binary(replace(key.unit, checked=True))
    return CountedBuild(
        name=key.unit.signature.name, linked=linked, libraries=[], checked=checked, code=code, origins=origins,
        operations=operations, registers=estimate_registers(function, module.layout),
        storage_bytes=vector.storage_bytes, threadgroup_bytes=vector.threadgroup_bytes,
        variables=tuple(variable_layout(module)),
    )  # fmt: skip


def _thread_text(unit: Unit) -> str:
    """Return the IR of one thread with marks.

    Raises
    ------
    CompileError
        Also if only the counted text is too long; the message says so.
    NotVectorized
        If the plain text is too long.
    """
    vector_build.thread_text(unit)
    try:
        return vector_build.thread_text(unit, *_FLAGS, max_length=_MAX_INSTRUCTIONS)
    except NotVectorized as reason:
        message = f"it cannot be counted, as its products of matrices become operations of lanes: {reason}"
        hint = "let a SIMD-group make fewer products in an iteration, and profile that"
        raise CompileError([driver.kernel_diagnostic(unit, message, hint)]) from None


def _add_private_accesses(
    operations: dict[str, dict[int, Operations]], code: CountingCode, origins: Origins,
) -> None:  # fmt: skip
    """Add the accesses of thread arrays, which only the vectorizer knows."""
    for access in code.private:
        operations[access.block].setdefault(origins.line(access), Operations()).private += 1
