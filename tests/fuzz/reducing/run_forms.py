"""Run the LLVM IR of one thread in two forms: in vector registers, and a thread at a time as fibers."""

from __future__ import annotations

import ctypes
import functools
import math
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import metalnb as mnb
from metalnb import cache
from metalnb.engine.base import Grid
from metalnb.engine.clang import driver
from metalnb.engine.cpu import toolchain
from metalnb.engine.cpu.cpu_engine import dispatch
from metalnb.engine.cpu.lanes.vector_binary import VectorBinary, VectorCode
from metalnb.engine.cpu.lanes.vector_build import thread_text
from metalnb.engine.cpu.linking import link, run_tool
from metalnb.engine.llvm.instruction_syntax import read_instruction
from metalnb.engine.llvm.llvm_reader import read_module
from metalnb.engine.llvm.llvm_writer import replace_function
from metalnb.engine.vectorizer.vectorize import THREAD_FUNCTION, has_barriers, uses_simdgroup

__all__ = ["Launch", "in_vectors", "object_of_thread", "one_at_a_time", "prepare", "vector_code"]

_RUNTIME = Path(toolchain.__file__).parent / "runtime"
_HEAD = (
    f'define hidden void @{THREAD_FUNCTION}({{}}) convergent nounwind "reciprocal-estimates"="none" '
    '"prefer-vector-width"="512" {{'
)
# No pass changes the text, whose order of calls decides which lanes converge first (runtime/fibers.c).
_AS_WRITTEN = ("-Xclang", "-disable-llvm-passes", "-mllvm", "-disable-block-placement")
_STEP = "metalnb_simd_barrier"
_FALLING = "-DNEXT_LANE(ready)=(31 - __builtin_clz(ready))"
_GUARD = 1 << 16  # bytes before and after each array
_TIME_LIMIT = 0.25  # seconds of processor time; a run that takes longer is taken for endless


@dataclass(frozen=True, slots=True)
class Launch:
    """A dispatch: its arrays, and the threads of the grid and of a threadgroup, in up to three dimensions."""

    arguments: Sequence[np.ndarray]
    grid: int | tuple[int, ...] = 100
    threadgroup: int | tuple[int, ...] = 64

    @property
    def sizes(self) -> tuple[Grid, Grid]:
        """The grid and the threadgroup, in three dimensions."""
        return _in_three(self.grid), _in_three(self.threadgroup)

    def run(self, library: ctypes.CDLL, static: int) -> bytes:
        """Run a kernel on one core, on copies of the arrays; return the arrays with what surrounds them.

        A run without end ends this process.
        """
        memory = [np.pad(np.frombuffer(a.tobytes(), np.uint8), _GUARD) for a in self.arguments]
        inside = [m[_GUARD : len(m) - _GUARD] for m in memory]
        words = dispatch(inside, *self.sizes, static)
        groups = math.prod(-(-threads // size) for threads, size in zip(*self.sizes, strict=True))
        with toolchain.borrow_region(words) as region:
            signal.setitimer(signal.ITIMER_VIRTUAL, _TIME_LIMIT)
            library.metalnb_groups(words, ctypes.c_void_p(region), ctypes.c_uint64(0), ctypes.c_uint64(groups))
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return b"".join(m.tobytes() for m in memory)

    def stayed_within(self, memory: bytes) -> bool:
        """Return whether a run wrote only to the arrays."""
        at = 0
        for a in self.arguments:
            margins = memory[at : at + _GUARD] + memory[at + _GUARD + a.nbytes : at + 2 * _GUARD + a.nbytes]
            if any(margins):
                return False
            at += 2 * _GUARD + a.nbytes
        return True


def _in_three(size: int | tuple[int, ...]) -> Grid:
    x, y, z = (*(size if isinstance(size, tuple) else (size,)), 1, 1)[:3]
    return x, y, z


def object_of_thread(text: str, *, in_step: bool = False) -> bytes:
    """Compile one thread; if it runs in step, the lanes of a SIMD-group converge before each store.

    Raises
    ------
    UnsupportedIR
    EngineUnavailable
        If clang rejects the text.
    """
    module = read_module(text)
    function, declared = module.functions[THREAD_FUNCTION], ""
    if in_step:
        step = read_instruction(f"  call void @{_STEP}()")
        declared = "" if _STEP in module.declarations else f"declare hidden void @{_STEP}()"
        for label, block in function.blocks.items():
            pairs = ([step, inst] if inst.opcode == "store" else [inst] for inst in block)
            function.blocks[label] = [inst for pair in pairs for inst in pair]
    plain = replace_function(text, function, declared, _HEAD.format(", ".join(map(str, function.parameters))))
    flags = ("-Wno-everything", *toolchain.flags(), *_AS_WRITTEN, "-x", "ir", "-c")
    return _compiled(plain, "thread.ll", flags)


def one_at_a_time(text: str, launch: Launch, *, in_step_and_reversed: bool = False) -> bytes | None:
    """Return the memory after a run a thread at a time; None if it writes to other memory than the arrays.

    Parameters
    ----------
    text : str
    launch : Launch
    in_step_and_reversed : bool, optional
        Whether lanes run in step, and in falling order: what then differs is a race, and no fault of the vectorizer's.

    Raises
    ------
    UnsupportedIR
    EngineUnavailable
        If clang or the linker rejects the text.
    """
    code = object_of_thread(text, in_step=in_step_and_reversed)
    code = link(code, _fibers(falling=in_step_and_reversed), triple=toolchain.target_triple())
    library = toolchain.load_library(code)
    memory = launch.run(library, library.metalnb_prepare())
    return memory if launch.stayed_within(memory) else None


def vector_code(text: str, launch: Launch) -> VectorCode:
    """Compile a kernel for vector registers, as a dispatch needs it.

    Raises
    ------
    NotVectorized
        Also if clang rejects the vector code.
    """
    module = read_module(text)
    binary = VectorBinary(_any_unit(), module, uses_simdgroup(module), has_barriers(module), needs_region=True)
    binary.vectorize_first()
    return binary.code_for(binary.unchecked, *launch.sizes)


def in_vectors(text: str, launch: Launch) -> bytes:
    """Return the memory after a run in vector registers; see `vector_code`."""
    code = vector_code(text, launch)
    return launch.run(code.library, code.storage_bytes)


def prepare() -> None:
    """Compile what every kernel needs, so that the time of the first one is its own."""
    vector_code(thread_text(_any_unit()), Launch([], 1, 1))


@functools.cache
def _fibers(*, falling: bool) -> bytes:
    text = Path(__file__).with_name("lane_calls.c").read_text(encoding="utf-8")
    flags = (*toolchain.flags(), *([_FALLING] if falling else []), "-std=c17", "-nostdinc", f"-I{_RUNTIME}", "-c")
    return _compiled(text, "lane_calls.c", flags)


def _compiled(text: str, name: str, flags: tuple[str, ...]) -> bytes:
    def build() -> bytes:
        with cache.store().scratch() as folder:
            (folder / name).write_text(text, encoding="utf-8")
            run_tool([*driver.clang_command(), *flags, str(folder / name), "-o", str(folder / "out")])
            return (folder / "out").read_bytes()

    return cache.store().make(cache.digest(text, driver.compiler_version(), *flags), "cpu-text", build)


@functools.cache
def _any_unit() -> Any:
    """Return a unit for messages to name."""
    return mnb.compile("kernel void reduced() {}", engine="cpu").reduced.unit
