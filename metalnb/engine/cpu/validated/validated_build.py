"""A kernel in the validated build: compiled in steps, instrumented in between, and linked with validation.c."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from typing import Any

from ...clang import driver
from ...unit import Unit, threadgroup_variables
from .. import toolchain
from ..debug_lines import DebugLines
from ..entry_texts import fiber_text
from ..guarded_divisions import guard_divisions
from ..ir_build import compile_ir
from ..iteration_ends import mark_unit
from .access_sites import insert_sites
from .uninitialized_reads import insert_set_flags
from .validating_code import ValidatingCode, insert_calls

__all__ = ["ValidatedBuild", "validated_build"]


@dataclass(frozen=True, slots=True)
class ValidatedBuild:
    """A kernel whose accesses are watched.

    Attributes
    ----------
    library : ctypes.CDLL
    lines : DebugLines
    static : int
        Bytes of threadgroup memory that the kernel declares, with the gaps between its variables.
    variables : tuple of (str, str, int, int, int)
        The threadgroup variables: name, type, offset, size, alignment; the type only if it is a single word.
    operations : tuple of str
        The names of the floating-point operations, by the number that the runtime receives.
    thread_variables : tuple of str
        Thread variables that are declared without a value, by their names in LLVM IR.
    """

    library: Any
    lines: DebugLines
    static: int
    variables: tuple[tuple[str, str, int, int, int], ...]
    operations: tuple[str, ...]
    thread_variables: tuple[str, ...]


_SANITIZED = (
    "-Xclang", "-fsanitize=thread,array-bounds,float-cast-overflow",
    "-Xclang", "-fsanitize-recover=array-bounds,float-cast-overflow",
)  # fmt: skip
# An array at the end of a struct has its declared length, as kernels have no flexible array members. Unset variables
# contain a NaN with known bits (runtime/hooks.h), and names are kept because they identify shifts.
_FIRST = (
    "-DMETALNB_VALIDATED", "-O1", *_SANITIZED, *toolchain.ORDERED, "-ftrivial-auto-var-init=pattern",
    "-fstrict-flex-arrays=3",
    "-fno-discard-value-names", "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm",
)  # fmt: skip
_SECOND = (
    "-O1", "-Xclang", "-fsanitize=thread", *toolchain.ORDERED,
    "-mllvm", "-tsan-instrument-func-entry-exit=0", "-mllvm", "-tsan-instrument-read-before-write=1",
    "-mllvm", "-opt-disable=licm,loop-idiom", "-S", "-emit-llvm",
)  # fmt: skip
_LAST = ("-O1", *toolchain.ORDERED, "-mllvm", "-opt-disable=licm,loop-idiom")
_MAX_VARIABLES = 4096


@functools.lru_cache(64)
def _build(key: _UnitKey) -> ValidatedBuild:
    unit = key.unit
    marked = mark_unit(unit)
    text = driver.compile_source(marked, fiber_text(marked), toolchain.host_target(), *_FIRST)
    text_with_flags, thread_variables = insert_set_flags(text.decode())
    code = insert_calls(text_with_flags)
    library, file = toolchain.load_kernel_library(_compile_object(code, unit), "validation", unit.texts)
    library.metalnb_prepare.restype = library.metalnb_slots.restype = ctypes.c_uint32
    library.metalnb_arena_of.restype = ctypes.c_uint64
    library.metalnb_arena_of.argtypes = (ctypes.c_uint64,)
    library.metalnb_groups.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)
    library.metalnb_groups.restype = library.metalnb_watch.restype = library.metalnb_counted.restype = None
    static = library.metalnb_prepare()
    raw = (ctypes.c_uint32 * (4 * _MAX_VARIABLES))()
    names = threadgroup_variables(unit)
    variables = []
    for i in range(library.metalnb_slots(raw)):
        offset, size, alignment, number = raw[4 * i : 4 * i + 4]
        kind, name = names[number] if number < len(names) else ("", "threadgroup memory")
        variables.append((name, kind, offset, size, alignment))
    return ValidatedBuild(library, DebugLines(file), static, tuple(variables), code.operations, thread_variables)


class _UnitKey:
    """A unit as a key, compared by identity."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    def __hash__(self) -> int:
        return id(self.unit)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _UnitKey) and other.unit is self.unit


def validated_build(unit: Unit) -> ValidatedBuild:
    """Return a unit's validated build, built on first use.

    Raises
    ------
    CompileError
    """
    return _build(_UnitKey(unit))


def _compile_object(code: ValidatingCode, unit: Unit) -> bytes:
    optimized = compile_ir(guard_divisions(code.text), _SECOND, unit).decode()
    return compile_ir(insert_sites(optimized), _LAST, unit)
