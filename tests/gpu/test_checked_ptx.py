"""Checked kernels of the engine `cuda` without a GPU: each planted fault has its check, and ptxas accepts it.

Needs the device library, as test_ptx.py does.
"""

from __future__ import annotations

import functools
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults.endless_loops import HEAD as LOOP_HEAD
from faults.endless_loops import LOOPS
from faults.planted_faults import EXTENT, FAULTS, HEAD, RIGHT, arguments
from gpu.ptx_assembler import assembler

import metalnb as mnb
from metalnb.engine.clang.entry_point import ENTRY_POINT
from metalnb.engine.cuda.cuda_checks.checked_ptx import CheckedPtx, compile_checked_ptx
from metalnb.engine.cuda.launch_record import LaunchRecord, split_launches
from metalnb.engine.robust.rewriting.check_insertion import CheckedModule, Checks
from metalnb.msl.rewrite.scan import scan

pytestmark = pytest.mark.filterwarnings("ignore:.*this loop cannot end")

# A search in a rotated loop is right but not proven.
UNPROVEN = {"a search": {"reads"}}


@functools.cache
def built(text: str, name: str) -> CheckedPtx:
    try:
        kernel = compile_checked_ptx(mnb.compile(text, checked=True)[name].unit, 90)
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))
    assert kernel is not None
    return kernel


def chosen(kernel: CheckedPtx, k: int) -> CheckedModule:
    """Return the kernel with the checks that a dispatch of the planted faults' arguments needs."""
    return chosen_of(kernel, [*arguments()[0].values(), bytearray(np.int32(k).tobytes()), 32 * 4])


def chosen_of(kernel: CheckedPtx, given: list[Any]) -> CheckedModule:
    """Return the kernel with the checks that a dispatch of these arguments over `EXTENT` threads needs."""
    return kernel.checks.for_dispatch(given, (EXTENT, 1, 1), (32, 1, 1))


def entry_of(text: str) -> str:
    return text[text.index(f".entry {ENTRY_POINT}(") :]


def assembled(text: str, folder: Path) -> str:
    """Return the errors of NVIDIA's assembler for PTX."""
    if assembler() is None:
        pytest.skip('needs ptxas: pip install "metalnb[ptx]"')
    file = folder / "kernel.ptx"
    file.write_text(text)
    command = [str(assembler()), "-arch=sm_90", "-O1", str(file), "-o", str(folder / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


@pytest.mark.long(every=5)  # test_robust finds each of these faults on the engine itself
@pytest.mark.parametrize("fault", FAULTS)
def test_each_planted_fault_has_its_check(fault: str, tmp_path: Path) -> None:
    planted = FAULTS[fault]
    kernel = built(f"{HEAD}{planted.body}\n}}", "f")
    checked_module = chosen(kernel, planted.k)
    assert planted.kind in {kernel.checks.analysis.accesses[access].kind for access in checked_module.sites}
    text = kernel.ptx(checked_module)
    assert "metalnb_fault" in entry_of(text)
    assert not assembled(text, tmp_path)


@pytest.mark.long(every=4)  # test_robust runs these kernels on each engine
@pytest.mark.parametrize("body", RIGHT)
def test_a_right_kernel_is_proven(body: str) -> None:
    kernel = built(f"{HEAD}{RIGHT[body]}\n}}", "f")
    checked_module = chosen(kernel, EXTENT)
    kinds = {kernel.checks.analysis.accesses[access].kind for access in checked_module.sites}
    assert kinds == UNPROVEN.get(body, set())
    assert bool(checked_module.checks.loops) is (body in UNPROVEN)


@pytest.mark.long(every=4)  # The same kernels as above, so that each is compiled once
@pytest.mark.parametrize("body", RIGHT)
def test_every_root_is_found(body: str) -> None:
    """Each access of these kernels has an argument or a variable as its root; a few have one of several."""
    kernel = built(f"{HEAD}{RIGHT[body]}\n}}", "f")
    roots = kernel.checks.analysis.roots
    for access in kernel.checks.analysis.accesses:
        root = roots.address(access.pointer).root
        assert roots.root(root) is not None or roots.sources(root) < roots.all_names, access.inst.text


def test_addresses_that_the_compiler_knows_have_roots() -> None:
    """Clang writes them as constant expressions: a cast to another address space, an offset from a variable."""
    body = """struct S { float a; float4 v; };
constant S c = {1, float4(2)};
kernel void f(device float* y, uint i [[thread_position_in_grid]]) {
    threadgroup S g[2];
    S p = c;
    g[0] = p;
    g[1] = c;
    p = g[1];
    S q = g[0];
    q.v.x += p.a;
    g[0] = q;
    y[i] = g[0].v.x + g[1].a + p.v.y;
}"""
    kernel = built(body, "f")
    roots = kernel.checks.analysis.roots
    found = [roots.root(roots.address(access.pointer).root) for access in kernel.checks.analysis.accesses]
    assert None not in found
    assert {"@_ZL1c", "%0"} < {root.name for root in found if root}
    assert not chosen_of(kernel, [np.zeros(EXTENT, np.float32)]).sites


@pytest.mark.long(every=3)  # test_stop ends each of these loops on the engine itself
@pytest.mark.parametrize("loop", LOOPS)
def test_every_endless_loop_checks_the_stop_flag(loop: str, tmp_path: Path) -> None:
    kernel = built(f"{LOOP_HEAD}{LOOPS[loop]}\n}}", "forever")
    x, n = np.zeros(256, np.float32), np.zeros(1, np.uint32)
    scalars = [bytearray(np.int32(0).tobytes()), bytearray(np.uint32(1 << 24).tobytes())]
    checked_module = kernel.checks.for_dispatch([x, n, *scalars], (256, 1, 1), (64, 1, 1))
    assert checked_module.checks.loops
    text = kernel.ptx(checked_module)
    assert re.search(r"and\.b32\s+part, %r\d+, 255;", entry_of(text))
    assert "ld.volatile.global.u32" in entry_of(text)
    assert not assembled(text, tmp_path)


def test_only_unproven_accesses_are_checked() -> None:
    """A form has one check for each unproven access; none remains in the compiler's second step."""
    kernel = built(f"{HEAD}if (i < uint(k)) a[i] = b[i] + c[k];\n}}", "f")
    weakest = kernel.checks.analysis.weakest_proof
    all_checked = kernel.checks.module_with(Checks(weakest.unproven, weakest.long_loops))
    one = chosen(kernel, EXTENT)
    assert [kernel.checks.analysis.accesses[access].kind for access in one.sites] == ["reads"]
    calls = [entry_of(kernel.ptx(checked_module)).count("call.uni") for checked_module in (one, all_checked)]
    assert calls[0] == 1 < calls[1] <= len(weakest.unproven)
    text = kernel.ptx(one)
    assert ".loc" not in text
    assert "metalnb_grid" not in text


@pytest.mark.parametrize(("side", "stops"), [(1024, False), (1 << 16, True)])
def test_a_loop_is_long_by_a_gpus_measure(side: int, stops: bool) -> None:
    """2^31 iterations over all threads take milliseconds on a GPU but are too many for a CPU; 2^49 take minutes."""
    text = """kernel void f(device float* y, constant int& side, uint i [[thread_position_in_grid]]) {
    float s = 0;
    for (int k = 0; k < side; ++k) s += 1.0f / (k + s);
    if (i == 0) y[0] = s;
}"""
    operands = [np.zeros(1, np.float32), bytearray(np.int32(side).tobytes())]
    checked_module = built(text, "f").checks.for_dispatch(operands, (2 * side, side, 1), (32, 1, 1))
    assert bool(checked_module.checks.loops) is stops


def test_a_sum_of_a_simdgroup_needs_no_flag() -> None:
    """The sum's loop over the active lanes clears one bit in each iteration, so it is known to end."""
    kernel = built(f"{HEAD}a[i] = simd_sum(b[i]);\n}}", "f")
    assert not chosen(kernel, 0).checks


@pytest.mark.filterwarnings("error")
def test_kernel_with_a_mistake_raises_only_its_compile_error() -> None:
    """The author sees the error, and no warning about unchecked accesses."""
    text = f"{HEAD}a[i] = b[i];\n}}"
    unit = replace(mnb.compile(text, checked=True)["f"].unit, cell=scan(text.replace("b[i]", "nowhere")))
    with pytest.raises(mnb.CompileError, match="undeclared identifier 'nowhere'"):
        compile_checked_ptx(unit, 90)


def test_checked_kernel_receives_three_addresses_after_its_launch_record() -> None:
    text = "kernel void k(device float* x, threadgroup float* t [[threadgroup(0)]]) {}"
    signature = mnb.compile(text).k.unit.signature
    (one,) = split_launches((1, 1, 100), (1, 1, 100), full_size=False)
    record = LaunchRecord(signature, checked=True)
    record.write(1, 3)
    record.set_grid_position(one.grid_position)
    record.checks(5, 6, 7)
    assert len(record._pointers) == 6
    operands = [bytes(record._bytes)[-24:]]
    assert np.frombuffer(operands[0], np.uint64).tolist() == [5, 6, 7]
    assert one.row
    assert np.frombuffer(one.grid_position, np.uint32)[15] == 2


def test_matrix_loads_from_threadgroup_memory_are_checked() -> None:
    """The instruction that reads eight rows for all lanes together cannot be skipped for one lane."""
    body = """#include <metal_stdlib>
using namespace metal;
kernel void product(device const half* x, device half* y, constant int& k, uint l [[thread_index_in_threadgroup]]) {
    threadgroup half t[64];
    t[2 * l] = x[2 * l];
    t[2 * l + 1] = x[2 * l + 1];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_half8x8 a, b;
    simdgroup_load(a, t + k, 8);
    simdgroup_multiply(b, a, a);
    simdgroup_store(b, y, 8);
}"""
    kernel = built(body, "product")
    operands = [np.zeros(64, np.float16), np.zeros(64, np.float16)]
    reads = []
    for k in (0, 1):
        values = [*operands, bytearray(np.int32(k).tobytes())]
        checked_module = kernel.checks.for_dispatch(values, (32, 1, 1), (32, 1, 1))
        kinds = [kernel.checks.analysis.accesses[access].kind for access in checked_module.sites]
        reads.append(kinds.count("reads"))
    assert reads[0] == 0 < reads[1]


def test_a_quotient_by_a_sum_that_may_wrap_to_1_needs_a_flag() -> None:
    kernel = built("""kernel void f(device uint* y, device const uint* d, uint i [[thread_position_in_grid]]) {
        uint v = y[i], by = d[i] + 2;
        while (v > 4) v = v / by;
        y[i] = v;
    }""", "f")
    arrays = [np.zeros(EXTENT, np.uint32), np.zeros(EXTENT, np.uint32)]
    assert chosen_of(kernel, arrays).checks.loops
