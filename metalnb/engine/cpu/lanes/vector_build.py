"""Compile a unit to code in vector registers: LLVM IR of one thread, the vectoriser, and clang again."""

from __future__ import annotations

import functools
import re

from metalnb import cache

from ...clang import driver
from ...clang.driver import Refused, Target
from ...clang.inlining import INLINE_ALL
from ...clang.long_text import arithmetic_of, flags_for_vectors
from ...llvm.instructions import IRModule
from ...unit import Unit
from ...vectoriser.lane_count import max_lanes
from ...vectoriser.not_vectorised import NotVectorised
from ...vectoriser.simd_forms import SimdForm
from ...vectoriser.vector_code.regions import InstructionCallback
from ...vectoriser.vector_code.vector_target import VectorTarget, vector_target
from ...vectoriser.vectorise import VectorisedKernel, has_barriers, uses_simdgroup, vectorise
from .. import toolchain
from ..entry_texts import lane_text
from ..linking import run_tool
from ..llvm_text import with_divisors

__all__ = ["lanes_of", "machine", "object_of", "thread_text", "vectorised"]

# No pass may change loops or create vectors, except complete unrolling, which moves thread arrays into registers. The
# entire kernel becomes one function, because a call would leave the vector registers.
_TIDY = (
    "-fno-convergent-functions", "-funroll-loops", "-fno-vectorize", "-fno-slp-vectorize", "-mllvm",
    "-unroll-runtime=0", "-mllvm", "-unroll-allow-partial=0", "-mllvm", "-unroll-allow-peeling=0", "-mllvm",
    "-unroll-allow-loop-nests-peeling=0", "-mllvm", "-disable-loop-idiom-memcpy", *INLINE_ALL,
)  # fmt: skip
_NO_DIVISION = re.compile(r"//.*|/\*[^*]*(?:\*(?!/)[^*]*)*\*/|^\s*#\s*include.*", re.MULTILINE)
_MOST = 40_000  # arithmetic instructions; clang compiles vector code of that length in a few seconds
_SHORT = 3000  # characters; a shorter cell is never long after inlining
_TEXT = ("-S", "-emit-llvm")
_UNTOUCHED = ("-Xclang", "-disable-llvm-passes")
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
    """Return a machine's features for the vectoriser, as clang reports them; by default this machine's."""
    return _machine(flags or toolchain.flags())


@functools.cache
def _machine(flags: tuple[str, ...]) -> VectorTarget:
    key = cache.digest("macros", driver.version(), *flags)

    def build() -> bytes:
        with cache.store().scratch() as folder:
            (folder / "empty.c").touch()
            out = folder / "out"
            run_tool([*driver.clang(), *flags, "-dM", "-E", str(folder / "empty.c"), "-o", str(out)])
            return out.read_bytes()

    return vector_target(cache.store().make(key, "cpu-text", build).decode())


def thread_text(unit: Unit, *more: str, flags: tuple[str, ...] = (), most: int = _MOST) -> str:
    """Return the LLVM IR of one thread, simplified, with its loops unchanged.

    Parameters
    ----------
    unit : Unit
    *more : str
        Further flags for clang.
    flags : tuple of str
        The machine's flags; by default this machine's.
    most : int
        The most arithmetic instructions.

    Raises
    ------
    CompileError
    NotVectorised
        If it is longer.
    """
    text, target = lane_text(unit), _target(flags or toolchain.flags())
    if not (divides(unit) or len(unit.text) > _SHORT):
        return driver.compiled(unit, text, target, *_TIDY, *more, *_TEXT).decode()
    raw = driver.compiled(unit, text, target, *_TIDY, *more, *_UNTOUCHED, *_TEXT).decode()
    if (count := arithmetic_of(raw)) > most:
        message = f"it is long: some {count:,} instructions"
        raise NotVectorised(message)
    return _compiled(with_divisors(raw), (*target.flags, *_TIDY, *_TEXT), unit).decode()


def divides(unit: Unit) -> bool:
    """Return whether a unit may contain a division, as integer divisions need a separate step so as not to trap."""
    return any(mark in _NO_DIVISION.sub("", text) for text in unit.texts.values() for mark in "/%")


def vectorised(
    module: IRModule, form: SimdForm, flags: tuple[str, ...] = (), visit: InstructionCallback | None = None,
) -> VectorisedKernel:  # fmt: skip
    """Return a kernel's text in a form, for a machine; ``visit``: see `vectorise`.

    Raises
    ------
    NotVectorised
    """
    return vectorise(module, form, machine(flags), visit)


def lanes_of(module: IRModule, made: VectorisedKernel) -> int:
    """Return the most lanes that a kernel runs in, from its code for 32 lanes."""
    return max_lanes(made.live_bits, machine(), uses_simdgroup=uses_simdgroup(module) or has_barriers(module))


def object_of(made: VectorisedKernel, unit: Unit, flags: tuple[str, ...] = ()) -> bytes:
    """Compile a vectorised text to an object file.

    Raises
    ------
    Refused
    """
    plain = tuple(flag for flag in flags or toolchain.flags() if flag != "-O3" and not flag.startswith("-D"))
    return _compiled(made.text, (*plain, *_SECOND, *flags_for_vectors(made.text, machine(flags).bits), "-c"), unit)


def _compiled(text: str, flags: tuple[str, ...], unit: Unit) -> bytes:
    """Compile LLVM IR with clang, or return the cached result."""

    def build() -> bytes:
        with cache.store().scratch() as folder:
            (folder / "in.ll").write_text(text, encoding="utf-8")
            command = [*driver.clang(), "-Wno-everything", *flags, "-x", "ir", "in.ll", "-o", "out"]
            failed, told = driver.run(command, folder, unit)
            if failed:
                raise Refused([driver.at_kernel(unit, f"clang cannot compile it: {told.strip()[-500:]}")])
            return (folder / "out").read_bytes()

    return cache.store().make(cache.digest(text, driver.version(), *flags), "cpu-text", build)
