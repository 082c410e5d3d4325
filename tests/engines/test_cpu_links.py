"""The engine `cpu` for other systems: its kernels, runtime and pool are linked here as libraries for them."""

import ctypes
import platform
import struct
from pathlib import Path

import numpy as np
import pytest

import metalnb as mnb
from metalnb import engine as engines
from metalnb.engine.clang import driver
from metalnb.engine.clang.driver import Target
from metalnb.engine.cpu import toolchain
from metalnb.engine.cpu.call_sites import call_site_ranks
from metalnb.engine.cpu.entry_texts import fiber_text, loop_text
from metalnb.engine.cpu.iteration_ends import find_iteration_ends, mark_unit
from metalnb.engine.cpu.lanes import vector_build
from metalnb.engine.cpu.linking import link, run_tool
from metalnb.engine.llvm.llvm_reader import read_module
from metalnb.engine.unit import Unit
from metalnb.engine.vectorizer.simd_forms import form_for
from metalnb.engine.vectorizer.vectorize import uses_simdgroup

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="links with ziglang's files for Linux")
CELL = """
#include <metal_stdlib>
using namespace metal;
kernel void waiting(device float* o, uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {
    threadgroup float part[64];
    part[t] = sin(float(i)) + pow(o[i], 1.5f);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float s = 0;
    for (uint k = 0; k < 3; ++k) { if (i >> k & 1) continue; s += simd_sum(fmod(o[i], 3.0f)); }
    o[i] = part[63 - t] + s;
}
kernel void apart(device half* o, uint i [[thread_position_in_grid]]) { o[i] = half(exp(float(o[i])) + tan(float(i))); }
"""
LINUX, WINDOWS, MACS = "x86_64-linux-gnu", "x86_64-windows-gnu", ("aarch64-macos11", "x86_64-macos11")
_MACHO, _SIGNATURE = 0xFEEDFACF, 0x1D


def compiled_kernel(triple: str, kernel: str) -> tuple[bytes, bytes, Unit]:
    """Compile and link one of the kernels as the engine does there; return its object file and library."""
    try:
        engines.named("cpu")
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))
    unit = mnb.compile(CELL)[kernel].unit
    flags = toolchain.flags_for(triple)
    if triple == WINDOWS:  # its processors convert halves in hardware, as -march=native would say there
        flags = (*flags, "-mf16c")
    mode = "fibers" if kernel == "waiting" else "loops"
    text = fiber_text(mark_unit(unit)) if mode == "fibers" else loop_text(unit, independent=True)
    parts = [driver.compile_source(unit, text, Target("cpu", toolchain.PRELUDE, flags), *toolchain.ORDERED)]
    parts.append(toolchain.compile_runtime(mode, flags))
    if triple.startswith("x86_64"):
        parts.append(toolchain.compile_runtime("half_conversions", flags))
    if triple == WINDOWS:
        parts.append(toolchain.compile_runtime("windows_calls", flags))
    return parts[0], link(*parts, triple=triple), unit


def made_in_lanes(triple: str, kernel: str) -> bytes:
    """Compile and link one of the kernels in vector registers."""
    unit = mnb.compile(CELL)[kernel].unit
    flags = toolchain.flags_for(triple)
    if triple == WINDOWS:
        flags = (*flags, "-mf16c")
    module = read_module(vector_build.thread_text(unit, flags=flags))
    form = form_for((200, 1, 1), (64, 1, 1), simd=uses_simdgroup(module))
    code = vector_build.compile_vectorized(vector_build.vectorize_form(module, form, flags), unit, flags)
    names = ["lanes", *["half_conversions"] * triple.startswith("x86_64"), *["windows_calls"] * (triple == WINDOWS)]
    return link(code, *(toolchain.compile_runtime(name, flags) for name in names), triple=triple)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors have an instruction for it")
def test_halves_of_doubles_are_rounded_once(tmp_path: Path, rng: np.random.Generator) -> None:
    """Without AVX-512 FP16, clang calls a function that the system's libraries may lack."""
    try:
        engines.named("cpu")
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))
    source, out = tmp_path / "each.c", tmp_path / "each.o"
    source.write_text(
        '__attribute__((visibility("default"))) void each(const double *x, _Float16 *y, long n) '
        "{ for (long i = 0; i < n; ++i) y[i] = (_Float16)x[i]; }"
    )
    flags = (*toolchain.flags_for(LINUX), "-mf16c")
    run_tool([*driver.clang_command(), *flags, "-std=c17", "-nostdinc", "-c", str(source), "-o", str(out)])
    assert b"__truncdfhf2" in out.read_bytes()
    conversions = toolchain.compile_runtime("half_conversions", flags)
    library = toolchain.load_library(link(out.read_bytes(), conversions, triple=LINUX))
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)
    halves = halves[np.isfinite(halves)]
    ties = (halves[:-1] + halves[1:]) / 2
    near = (np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf), ties * (1 + 2.0**-30), ties * (1 - 2.0**-30))
    edges = [5e-324, -5e-324, 1e308, 3.5e38, 65519.999, np.inf, -np.inf, np.nan]
    x = np.concatenate([halves, ties, *near, np.frombuffer(rng.bytes(8 << 16), np.float64), edges])
    got, expected = np.empty(len(x), np.float16), np.empty(len(x), np.float16)
    with np.errstate(all="ignore"):
        expected[:] = x
    library.each(x.ctypes, got.ctypes, ctypes.c_long(len(x)))
    bits = [np.where(np.isnan(v), np.uint16(0x7E00), v.view(np.uint16)) for v in (got, expected)]
    wrong = np.flatnonzero(bits[0] != bits[1])
    assert not len(wrong), f"{x[wrong[0]]!r} became {got[wrong[0]]!r}, not {expected[wrong[0]]!r}"


def commands(file: bytes) -> set[int]:
    """Return the kinds of a Mach-O file's load commands."""
    magic, _, _, _, count, _ = struct.unpack_from("<6I", file)
    assert magic == _MACHO
    found, at = set(), 32
    for _ in range(count):
        kind, size = struct.unpack_from("<2I", file, at)
        found.add(kind)
        at += size
    return found


@pytest.mark.parametrize("kernel", ["waiting", "apart"])
def test_object_files_link_for_windows(kernel: str) -> None:
    """Nothing is missing: the linker there leaves no symbol undefined, and mathematics uses no function of Windows."""
    _, file, _ = compiled_kernel(WINDOWS, kernel)
    assert file[:2] == b"MZ"
    assert b"metalnb_groups\0" in file
    assert b"ucrtbase.dll" not in file


# For a Mac, zig's linker first builds its runtime: half a minute of processor time. Linux and Windows always run.
macs_long = pytest.mark.long(unless=lambda triple: triple not in MACS)


@macs_long
@pytest.mark.parametrize("kernel", ["waiting", "apart"])
@pytest.mark.parametrize("triple", MACS)
def test_object_files_link_for_a_mac(triple: str, kernel: str) -> None:
    """Apple silicon loads no library without a signature."""
    _, file, _ = compiled_kernel(triple, kernel)
    assert b"_metalnb_groups\0" in file
    assert (_SIGNATURE in commands(file)) == triple.startswith("aarch64")


@macs_long
@pytest.mark.parametrize("triple", [LINUX, WINDOWS, *MACS])
def test_the_order_of_meetings_is_read_from_each_kind_of_file(triple: str) -> None:
    """The SIMD function, and the end of an iteration without it; all copies of a call have the same rank."""
    code, file, unit = compiled_kernel(triple, "waiting")
    ranks = np.frombuffer(call_site_ranks(code, file, find_iteration_ends(unit.texts)), np.uint32)
    assert sorted({*ranks[ranks > 0].tolist()}) == [1, 2]


@macs_long
@pytest.mark.parametrize("kernel", ["waiting", "apart"])
@pytest.mark.parametrize("triple", [LINUX, WINDOWS, *MACS])
def test_vector_code_links_for_each_target(triple: str, kernel: str) -> None:
    """Barriers are coroutines there: no stack is switched, and no symbol is missing."""
    file = made_in_lanes(triple, kernel)
    assert b"metalnb_groups\0" in file
    assert b"ucrtbase.dll" not in file


@macs_long
@pytest.mark.parametrize("triple", [WINDOWS, *MACS])
def test_thread_pool_links_for_each_target(triple: str) -> None:
    file = link(toolchain.compile_runtime("pool", toolchain.flags_for(triple)), triple=triple)
    assert b"metalnb_run" in file
    assert (file[:2] == b"MZ") == (triple == WINDOWS)
