"""The engine `cpu` on another processor: its code and runtime for aarch64, as a program that qemu runs."""

import platform
import shutil
import subprocess
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
from metalnb.engine.cpu.linking import link
from metalnb.engine.llvm.llvm_reader import read_module
from metalnb.engine.unit import Unit
from metalnb.engine.vectorizer.simd_forms import form_for
from metalnb.engine.vectorizer.vectorize import uses_simdgroup

QEMU = shutil.which("qemu-aarch64")
pytestmark = [
    pytest.mark.skipif(QEMU is None, reason="needs qemu: apt-get install qemu-user"),
    pytest.mark.skipif(platform.system() != "Linux", reason="qemu runs programs for Linux"),
]
TRIPLE, BASE = "aarch64-linux-gnu", 0x200000
THREADS, THREADGROUP = 200, 96

CELL = """
#include <metal_stdlib>
using namespace metal;
kernel void waiting(device uint* o, uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]],
                    uint n [[threads_per_threadgroup]]) {
    threadgroup uint part[96];
    part[t] = i;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint s = part[n - 1 - t];
    for (uint k = 0; k < 5; ++k) { if (i >> k & 1) continue; s += 1000 * simd_sum(1u); }
    o[i] = s;
}
kernel void apart(device uint* o, uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {
    o[i] = uint(float(half(i)) * 2.0f) + 100000 * t;
}
"""
# It reads the kernel's argument layout, runs one dispatch, and writes the buffer.
PROGRAM = """
typedef unsigned long u64;
typedef unsigned u32;
static long call(long number, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm("x8") = number, x0 __asm("x0") = a, x1 __asm("x1") = b, x2 __asm("x2") = c;
    register long x3 __asm("x3") = d, x4 __asm("x4") = e, x5 __asm("x5") = f;
    __asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
void* memset(char* p, int v, u64 n) { for (u64 i = 0; i < n; ++i) ((volatile char*)p)[i] = v; return p; }
void* memcpy(char* p, const char* q, u64 n) { for (u64 i = 0; i < n; ++i) ((volatile char*)p)[i] = q[i]; return p; }
__attribute__((weak)) u32 metalnb_prepare(void);
void metalnb_groups(const void* d, void* scratch, u64 first, u64 count);
__attribute__((weak)) void metalnb_call_sites(const u32*);
static u32 out[THREADS], places[1 << 18];
static struct { u32 grid[3], size[3], groups[3], count, memory, fixed; u64 arguments[1]; } d = {
    {THREADS, 1, 1}, {THREADGROUP, 1, 1}, {(THREADS + THREADGROUP - 1) / THREADGROUP, 1, 1}, 1, 0, 0, {0}};
void _start(void) {
    long got, total = 0;
    while ((got = call(63, 0, (long)places + total, sizeof places - total, 0, 0, 0)) > 0) total += got;
    if (metalnb_call_sites) metalnb_call_sites(places);
    d.fixed = metalnb_prepare ? metalnb_prepare() : STORAGE;
    d.arguments[0] = (u64)out;
    u64 whole = call(222, 0, 2l << 29, 3, 0x4022, -1, 0);
    metalnb_groups(&d, (void*)((whole + (1l << 29) - 1) & ~((1l << 29) - 1)), 0, d.groups[0]);
    call(64, 1, (long)out, sizeof out, 0, 0, 0);
    call(93, 0, 0, 0, 0, 0, 0);
}
"""


def code_of(unit: Unit, mode: str) -> tuple[bytes, int]:
    """Compile a kernel; return its object file and its size of threadgroup memory (B)."""
    flags = toolchain.flags_for(TRIPLE)
    if mode == "lanes":
        module = read_module(vector_build.thread_text(unit, flags=flags))
        form = form_for((THREADS, 1, 1), (THREADGROUP, 1, 1), simd=uses_simdgroup(module))
        made = vector_build.vectorize_form(module, form, flags)
        return vector_build.compile_vectorized(made, unit, flags), made.storage_bytes
    text = fiber_text(mark_unit(unit)) if mode == "fibers" else loop_text(unit, independent=True)
    return driver.compile_source(unit, text, Target("cpu", toolchain.PRELUDE, flags), *toolchain.ORDERED), 0


def run(kernel: str, mode: str, tmp_path: Path) -> np.ndarray:
    try:
        engines.named("cpu")
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))
    unit = mnb.compile(CELL)[kernel].unit
    flags = toolchain.flags_for(TRIPLE)
    code, storage = code_of(unit, mode)
    source = tmp_path / "program.c"
    source.write_text(PROGRAM)
    defined = (f"-DTHREADS={THREADS}", f"-DTHREADGROUP={THREADGROUP}", f"-DSTORAGE={storage}")
    subprocess.run(
        [
            *driver.clang_command(), *flags, *defined, "-std=c17", "-nostdinc", "-c", str(source),
            "-o", str(tmp_path / "p.o"),
        ],
        check=True,
    )
    objects = [code, toolchain.compile_runtime(mode, flags), (tmp_path / "p.o").read_bytes()]
    file = link(*objects, triple=TRIPLE, flags=("-static", f"--image-base={BASE}"))
    places = b""
    if mode == "fibers":
        places = call_site_ranks(code, file, find_iteration_ends(unit.texts))[4 * BASE :]
    program = tmp_path / "program"
    program.write_bytes(file)
    program.chmod(0o755)
    done = subprocess.run([str(QEMU), str(program)], input=places, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return np.frombuffer(done.stdout, np.uint32)


@pytest.mark.parametrize("mode", ["fibers", "lanes"])
def test_threads_wait_for_each_other(mode: str, tmp_path: Path) -> None:
    i = np.arange(THREADS)
    first, lane = i // THREADGROUP * THREADGROUP, i % THREADGROUP % 32
    n = np.minimum(THREADGROUP, THREADS - first)
    expected = first + n - 1 - (i - first)
    for k in range(5):
        active = (i >> k & 1) == 0
        for group in range(0, THREADS, 8):  # lanes of one SIMD-group, complete or cut off
            mates = (i - lane == (i - lane)[group]) & active
            expected = np.where(mates & (i // 8 * 8 == group), expected + 1000 * mates.sum(), expected)
    assert np.array_equal(run("waiting", mode, tmp_path), expected)


@pytest.mark.parametrize("mode", ["loops", "lanes"])
def test_threads_with_divergent_loops_compute_right_on_aarch64(mode: str, tmp_path: Path) -> None:
    i = np.arange(THREADS)
    assert np.array_equal(run("apart", mode, tmp_path), 2 * i + 100000 * (i % THREADGROUP))
