"""Kernels as long as cryptography's: compiled in seconds, and exact to the last bit."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb.engine.clang.long_kernels import count_arithmetic, flags_for_length, flags_for_vectors, limit_inlining
from metalnb.engine.cpu import toolchain
from metalnb.engine.cpu.cpu_checks.thread_checks import find_thread_checks
from metalnb.engine.cpu.entry_texts import fiber_text, loop_text
from metalnb.engine.cpu.ir_build import write_ir
from metalnb.engine.cpu.lanes import vector_build
from metalnb.engine.llvm.llvm_reader import read_module
from metalnb.engine.robust.rewriting.check_insertion import Checks
from metalnb.engine.vectorizer.simd_forms import form_for


def _kernels() -> Any:
    """Return the generators from benchmarks/compiling.py."""
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "arithmetic_kernels.py"
    spec = importlib.util.spec_from_file_location("arithmetic_kernels", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look up their module there
    spec.loader.exec_module(module)
    return module


LONG = _kernels()
SMALL, LARGE = LONG.FIELDS
WITH_BARRIER = "  threadgroup_barrier(mem_flags::mem_threadgroup);\n  x += i"
KERNELS = {
    "16 products": LONG.products(LARGE, 16),
    "16 products, line by line": LONG.products(LARGE, 16, form="written"),
    "3 products, never inlined": LONG.products(SMALL, 3, form="written", inlined=False),
    "a sum of points": LONG.point_sum(SMALL, 1),
    "a transform": LONG.butterfly(SMALL, 4, "written"),
    "SHA-256": LONG.sha256(4),
    "Keccak": LONG.keccak(1),
}


def run(kernel: Any, text: str, rng: np.random.Generator) -> None:
    rows = kernel.inputs(rng)
    expected = kernel.outputs(rows)
    got = np.zeros_like(expected)
    mnb.compile(text, engine="cpu").k(rows, got, grid=len(rows))
    np.testing.assert_array_equal(got, expected)


# The long cases take up to a minute each; the tests of their text, below, cover how they are compiled.
@pytest.mark.long(unless=lambda name, has_barrier: name == "a transform" or (name == "SHA-256" and not has_barrier))
@pytest.mark.parametrize("has_barrier", [False, True], ids=["loops", "fibers"])
@pytest.mark.parametrize("name", KERNELS)
def test_long_kernels_match_pythons_integers(name: str, has_barrier: bool, rng: np.random.Generator) -> None:
    kernel = KERNELS[name]
    run(kernel, kernel.text.replace("  x += i", WITH_BARRIER) if has_barrier else kernel.text, rng)


def llvm(text: str, *, fibers: bool = False) -> str:
    unit = mnb.compile(text, engine="cpu").k.unit
    made = fiber_text(unit) if fibers else loop_text(unit, independent=True)
    return write_ir(unit, made, toolchain.ORDERED).decode()


def kept(text: str) -> list[str]:
    """Return the functions that a text keeps from being inlined, by part of their names."""
    groups = {line.split()[1] for line in text.splitlines() if line.startswith("attributes") and " noinline" in line}
    return [line for line in text.splitlines() if line.startswith("define ") and groups & set(line.split())]


TILE = """
    float sum = 0;
    for (uint k = 0; k < 64; k += 8)
        for (uint j = 0; j < 4; ++j)
            sum += x[k + j] / (k + 1);
    x[i] = sum;
"""


def test_a_loop_counts_by_its_step() -> None:
    """As in a product of SIMD-group matrices, strip by strip: steps of 1 would mean eight times the iterations."""
    head = "kernel void k(device float* x, uint i [[thread_position_in_grid]]) {"
    eight, one = (count_arithmetic(llvm(f"{head}{text}}}")) for text in (TILE, TILE.replace("k += 8", "++k")))
    assert 6 * eight < one < 8 * eight


def test_short_kernel_is_compiled_with_the_usual_flags() -> None:
    text = llvm(KERNELS["3 products, never inlined"].text)
    assert limit_inlining(text) is text
    assert flags_for_length(text) == ()


@pytest.mark.parametrize("fibers", [False, True])
def test_long_functions_of_a_very_long_kernel_stay_functions(fibers: bool) -> None:
    for name in ("16 products", "16 products, line by line"):
        before = llvm(KERNELS[name].text, fibers=fibers)
        after = limit_inlining(before)
        assert flags_for_length(before)
        assert flags_for_length(after) == ()
        assert (kept(before), len(kept(after))) == ([], 1)
        assert "product" in kept(after)[0]


def test_function_with_a_barrier_is_still_inlined() -> None:
    kernel = KERNELS["16 products, line by line"]
    text = kernel.text.replace("  return reduced(r);", "  simdgroup_barrier(mem_flags::mem_none); return reduced(r);")
    before = llvm(text, fibers=True)
    assert kept(limit_inlining(before)) == []
    assert flags_for_length(before)


def test_one_long_block_is_compiled_without_slow_passes() -> None:
    text = llvm(KERNELS["SHA-256"].text)
    assert "-disable-cgp" in flags_for_length(text)
    assert kept(limit_inlining(text)) == []


def test_long_vector_code_is_compiled_without_slow_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[str, ...]] = []
    form = form_for((32, 1, 1), (32, 1, 1), simd=False)
    for kernel in (LONG.butterfly(SMALL, 2), LONG.products(SMALL, 16)):
        unit = mnb.compile(kernel.text, engine="cpu").k.unit
        made = vector_build.vectorize_form(read_module(vector_build.thread_text(unit)), form)
        with monkeypatch.context() as patched:
            patched.setattr(vector_build, "_compile_text", lambda _text, flags, _unit: given.append(flags) or b"")
            vector_build.compile_vectorized(made, unit)
    assert ["-disable-cgp" in flags for flags in given] == [False, True]


def test_very_long_vector_code_for_short_registers_allocates_registers_by_block() -> None:
    assert "-regalloc=fast" in flags_for_vectors("\n" * 30_000, 128)
    assert "-regalloc=fast" not in flags_for_vectors("\n" * 30_000, 256)
    assert flags_for_vectors("\n" * 5000, 128) == ()


def test_a_long_block_with_few_checks_is_not_written_twice() -> None:
    unit = mnb.compile(LONG.products(SMALL, 8, form="written").text, engine="cpu").k.unit
    checks = find_thread_checks(unit, toolchain.ORDERED)
    assert checks
    weakest = checks.analysis.weakest_proof
    before = checks.analysis.roots.function
    after = checks.module_with(Checks(weakest.unproven, weakest.long_loops, wide=True)).module.functions[before.name]
    had, has = (sum(made.opcode == "mul" for made in function) for function in (before, after))
    assert had > 2000
    assert has < 1.1 * had  # an element's check has one, too
