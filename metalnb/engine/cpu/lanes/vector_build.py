"""Compile a unit to code in vector registers: LLVM IR of one thread, the vectorizer, and clang again."""

from __future__ import annotations

import functools
import re

from metalnb import cache

from ...clang import driver
from ...clang.driver import BackendError, Target
from ...clang.inlining import INLINE_ALL
from ...clang.long_kernels import count_arithmetic, flags_for_vectors
from ...clang.loop_exits import compile_with_back_paths
from ...llvm.instructions import IRModule
from ...unit import Unit
from ...vectorizer.lane_count import max_lanes
from ...vectorizer.not_vectorized import NotVectorized
from ...vectorizer.simd_forms import SimdForm
from ...vectorizer.vector_code.regions import InstructionCallback
from ...vectorizer.vector_code.vector_target import VectorTarget, vector_target
from ...vectorizer.vectorize import VectorizedKernel, has_barriers, uses_simdgroup, vectorize
from .. import toolchain
from ..entry_texts import lane_text
from ..guarded_divisions import guard_divisions
from ..linking import run_tool
from .returned_vectors import restore_vectors

__all__ = ["compile_vectorized", "lane_count", "machine", "thread_text", "vectorize_form"]

# No pass may change loops or create vectors, except complete unrolling, which moves thread arrays into registers. A
# loop that became a call of memset or strlen could be neither bounded nor stopped. The entire kernel becomes one
# function, because a call would leave the vector registers.
_SIMPLIFY = (
    "-fno-convergent-functions", "-funroll-loops", "-fno-vectorize", "-fno-slp-vectorize", "-mllvm",
    "-unroll-runtime=0", "-mllvm", "-unroll-allow-partial=0", "-mllvm", "-unroll-allow-peeling=0", "-mllvm",
    "-unroll-allow-loop-nests-peeling=0", "-mllvm", "-disable-loop-idiom-all", *INLINE_ALL,
)  # fmt: skip
_NO_DIVISION = re.compile(
    r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'|//.*|/\*[^*]*(?:\*(?!/)[^*]*)*\*/|^\s*#\s*include.*""", re.MULTILINE
)  # literals, since a string may contain the start of a comment
_MAX_LENGTH = 40_000  # arithmetic instructions; clang compiles vector code of that length in a few seconds
_SHORT_CELL = 3000  # characters; a shorter cell is never long after inlining
_TEXT = ("-S", "-emit-llvm")
_NO_PASSES = ("-Xclang", "-disable-llvm-passes")
# Scheduling again, after registers are assigned, takes up to half of a long block's time; out-of-order
# processors gain nothing by it. Before that, dependence analysis is limited to about a hundred accesses per block.
_SECOND = (
    "-O2", "-fno-vectorize", "-fno-slp-vectorize", "-Wno-everything", "-mllvm", "-disable-post-ra", "-mllvm",
    "-dag-maps-huge-region=200", "-mllvm", "-dag-maps-reduction-size=100",
)  # fmt: skip


def _target(flags: tuple[str, ...]) -> Target:
    plain = tuple(flag for flag in flags if flag != "-O3")
    return Target("cpu-lanes", toolchain.PRELUDE, (*plain, "-O1", "-DMETALNB_LANES"))


def machine(flags: tuple[str, ...] = ()) -> VectorTarget:
    """Return a machine's features for the vectorizer, as clang reports them; by default this machine's."""
    return _machine(flags or toolchain.flags())


@functools.cache
def _machine(flags: tuple[str, ...]) -> VectorTarget:
    key = cache.digest("macros", driver.compiler_version(), *flags)

    def build() -> bytes:
        with cache.store().scratch() as folder:
            (folder / "empty.c").touch()
            out = folder / "out"
            run_tool([*driver.clang_command(), *flags, "-dM", "-E", str(folder / "empty.c"), "-o", str(out)])
            return out.read_bytes()

    return vector_target(cache.store().make(key, "cpu-text", build).decode())


def thread_text(unit: Unit, *options: str, flags: tuple[str, ...] = (), max_length: int = _MAX_LENGTH) -> str:
    """Return the LLVM IR of one thread, simplified, with its loops unchanged.

    Parameters
    ----------
    unit : Unit
    *options : str
        Further flags for clang.
    flags : tuple of str
        The machine's flags; by default this machine's.
    max_length : int
        The largest number of arithmetic instructions to accept.

    Raises
    ------
    CompileError
    NotVectorized
        If the kernel is longer.
    """
    return compile_with_back_paths(unit, lambda unit: _thread_text(unit, options, flags, max_length))


def _thread_text(unit: Unit, options: tuple[str, ...], flags: tuple[str, ...], max_length: int) -> str:
    text, target = lane_text(unit), _target(flags or toolchain.flags())
    simplify = (*target.flags, *_SIMPLIFY, *options, *_TEXT)
    if has_division(unit) or sum(map(len, unit.texts.values())) > _SHORT_CELL:
        raw = driver.compile_source(unit, text, target, *_SIMPLIFY, *options, *_NO_PASSES, *_TEXT).decode()
        if (count := count_arithmetic(raw)) > max_length:
            message = f"it is long: about {count:,} instructions"
            raise NotVectorized(message)
        simple = _compile_text(guard_divisions(raw), simplify, unit).decode()
    else:
        simple = driver.compile_source(unit, text, target, *_SIMPLIFY, *options, *_TEXT).decode()
    typed = restore_vectors(simple)
    return simple if typed == simple else _compile_text(typed, simplify, unit).decode()


def has_division(unit: Unit) -> bool:
    """Return whether a unit may contain a division; integer divisions need a step that keeps them from trapping."""
    return any('R"' in text or mark in _NO_DIVISION.sub("", text) for text in unit.texts.values() for mark in "/%")


def vectorize_form(
    module: IRModule, form: SimdForm, flags: tuple[str, ...] = (), on_instruction: InstructionCallback | None = None,
) -> VectorizedKernel:  # fmt: skip
    """Return a kernel's text in a form, for a machine; ``on_instruction``: see `vectorize`.

    Raises
    ------
    NotVectorized
    """
    return vectorize(module, form, machine(flags), on_instruction)


def lane_count(module: IRModule, kernel: VectorizedKernel) -> int:
    """Return the largest number of lanes that a kernel can run in, judging by its code for 32 lanes."""
    return max_lanes(kernel.live_bits, machine(), uses_simdgroup=uses_simdgroup(module) or has_barriers(module))


def compile_vectorized(kernel: VectorizedKernel, unit: Unit, flags: tuple[str, ...] = ()) -> bytes:
    """Compile a vectorized text to an object file.

    Raises
    ------
    BackendError
    """
    plain = tuple(flag for flag in flags or toolchain.flags() if flag != "-O3" and not flag.startswith("-D"))
    return _compile_text(
        kernel.text, (*plain, *_SECOND, *flags_for_vectors(kernel.text, machine(flags).bits), "-c"), unit
    )  # fmt: skip


def _compile_text(text: str, flags: tuple[str, ...], unit: Unit) -> bytes:
    """Compile LLVM IR with clang, or return the cached result."""

    def build() -> bytes:
        with cache.store().scratch() as folder:
            (folder / "in.ll").write_text(text, encoding="utf-8")
            command = [*driver.clang_command(), "-Wno-everything", *flags, "-x", "ir", "in.ll", "-o", "out"]
            status, output = driver.run_clang(command, folder, unit)
            if status:
                message = f"clang cannot compile it: {output.strip()[-500:]}"
                raise BackendError([driver.kernel_diagnostic(unit, message)])
            return (folder / "out").read_bytes()

    return cache.store().make(cache.digest(text, driver.compiler_version(), *flags), "cpu-text", build)
