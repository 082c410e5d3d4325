"""No access of a cell's kernel leaves its arguments' memory: each planted fault is found and named.

Every kernel gets arrays of 64 elements in the middle of larger ones, whose margins must not change.
"""

import contextlib
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from checked_engines import ENGINES
from faults.planted_faults import EXTENT, FAULTS, HEAD, MARGIN, RIGHT, arguments

import metalnb as mnb
from metalnb import engine as engines
from metalnb.engine.cpu import cpu_engine
from metalnb.engine.cpu.cpu_checks import thread_checks
from metalnb.engine.vectorizer.not_vectorized import NotVectorized


def is_checked(ticket: Any) -> bool:
    """Return whether a dispatch is checked."""
    return hasattr(ticket, "has_raised")


def called(engine: str, body: str, k: int) -> None:
    kernel = mnb.compile(HEAD + body + "\n}", engine=engine, checked=True).f
    given, around = arguments()
    given["s"] = given["s"].view(kernel.program.dtype("Pair"))[:, 0]
    try:
        kernel(*given.values(), k, grid=EXTENT, threadgroup=32, threadgroup_memory={"t": 32 * 4})
    finally:
        for whole, before in around.values():
            before[MARGIN : MARGIN + EXTENT] = whole[MARGIN : MARGIN + EXTENT]
            assert np.array_equal(whole, before, equal_nan=True)


@pytest.mark.long(every=3)  # Faults are ordered by kind of memory: each engine tests several of each kind
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found_and_named(fault: str, engine: str) -> None:
    found_and_named(fault, engine)


def found_and_named(fault: str, engine: str) -> None:
    planted = FAULTS[fault]
    with pytest.raises(mnb.KernelFault) as caught:
        called(engine, planted.body, planted.k)
    error = caught.value
    assert (error.kind, error.line) == (planted.kind, planted.line), error
    assert not planted.name or error.name == planted.name, error
    assert planted.index is None or error.index == planted.index, error
    assert error.thread is not None
    assert error.thread[0] < EXTENT


@pytest.fixture
def a_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a kernel one thread at a time, as the engine does where it cannot vectorize."""

    def refused(_: object) -> None:
        message = "the test says so"
        raise NotVectorized(message)

    monkeypatch.setattr(cpu_engine, "open_vector_binary", refused)


@pytest.mark.long(every=3)  # The same checks as in vector registers, in a loop over threads
@pytest.mark.usefixtures("a_thread_at_a_time")
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found_and_named_a_thread_at_a_time(fault: str) -> None:
    found_and_named(fault, "cpu")


@pytest.mark.usefixtures("a_thread_at_a_time")
def test_kernel_that_cannot_be_parsed_warns_that_it_is_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("a call of other, which is not inlined")

    monkeypatch.setattr(thread_checks, "Analysis", refuse)
    text = "kernel void f(device float* y, uint i [[thread_position_in_grid]]) { y[i] = 1; }"
    kernel = mnb.compile(text, engine="cpu").f
    with pytest.warns(mnb.MetalnbWarning, match="f: its accesses are not checked, .*: a call of other, which is not"):
        kernel(np.zeros(4, np.float32))


# test_checked_ptx and test_text_proofs prove all of them without running them; a third run here.
@pytest.mark.long(every=3)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("body", RIGHT)
def test_a_right_kernel_raises_no_alarm(body: str, engine: str) -> None:
    """The result is the same as without checks."""
    results = []
    for checked in (True, False):
        kernel = mnb.compile(HEAD + RIGHT[body] + "\n}", engine=engine, checked=checked).f
        given, _ = arguments()
        for array in given.values():
            array[:] = np.arange(array.size).reshape(array.shape) % 64
        given["s"] = given["s"].view(kernel.program.dtype("Pair"))[:, 0]
        kernel(*given.values(), EXTENT, grid=EXTENT, threadgroup=32, threadgroup_memory={"t": 32 * 4})
        results.append({name: array.copy() for name, array in given.items()})
    for name, array in results[0].items():
        assert np.array_equal(array, results[1][name]), name


@pytest.mark.parametrize("engine", ENGINES)
def test_skipped_accesses_read_zero_and_other_threads_finish(engine: str) -> None:
    kernel = mnb.compile("""
kernel void f(device const float* x, device float* y, constant uint& by, uint i [[thread_position_in_grid]]) {
    if (i < 8) y[i] = x[i + by] + 1;
}""", engine=engine, checked=True).f  # fmt: skip
    x, y = np.full(8, 5, np.float32), np.zeros(8, np.float32)
    with pytest.raises(mnb.KernelFault, match=r"reads x\[\d+\]; x has 8 elements"):
        kernel(x, y, 3, grid=8)
    assert y.tolist() == [6] * 5 + [1] * 3
    kernel(x, y, 0, grid=8)
    assert y.tolist() == [6] * 8


@pytest.mark.parametrize("engine", ENGINES)
def test_vector_access_reports_its_first_missing_element(engine: str) -> None:
    text = """#include <metal_stdlib>
    using namespace metal;
    kernel void f(device const half* x, device float* o, uint i [[thread_position_in_grid]]) {
        simdgroup_half8x8 m;
        simdgroup_load(m, x, 9);
        const half4 near = reinterpret_cast<device const half4*>(o)[i];
        o[i] = m.thread_elements()[0] + m.thread_elements()[1] + near.x + near.y + near.z + near.w;
    }"""
    kernel = mnb.compile(text, engine=engine)["f"]
    for x, o, told in ((70, 64, r"x\[70\]; x has 70 elements"), (71, 63, r"o\[63\]; o has 63 elements")):
        with pytest.raises(mnb.KernelFault, match=told):
            kernel(np.ones(x, np.float16), np.ones(o, np.float32), grid=32)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("read", "told"), [("n", ""), ("x[i]", ""), ("x[i + 99]", r"reads x\[(100|132|164)\]; x has")])
def test_a_choice_between_an_argument_and_the_threads_position_is_checked(engine: str, read: str, told: str) -> None:
    """Clang may choose an address of either, and load once."""
    kernel = mnb.compile(f"""
kernel void f(device uint* out, device const uint* x, constant uint& n, uint i [[thread_position_in_grid]],
              uint l [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]]) {{
    out[i] = l != 1 ? size : {read};
}}""", engine=engine).f  # fmt: skip
    out, x = np.zeros(70, np.uint32), np.arange(70, dtype=np.uint32) + 7
    with pytest.raises(mnb.KernelFault, match=told) if told else contextlib.nullcontext():
        kernel(out, x, 99, threadgroup=32)
    there = {"n": [99, 99, 99], "x[i]": [8, 40, 72]}.get(read, [0, 0, 0])
    assert out[[0, 1, 2, 33, 65, 69]].tolist() == [32, there[0], 32, there[1], there[2], 6]


@pytest.mark.parametrize("engine", ENGINES)
def test_wrapped_negative_index_is_reported_as_negative(engine: str) -> None:
    kernel = mnb.compile("""
kernel void before(device const float* x, device float* y, uint i [[thread_position_in_grid]]) { y[i] = x[i - 2]; }
""", engine=engine).before  # fmt: skip
    with pytest.raises(mnb.KernelFault, match=r"reads x\[429496729[45]\], which is -[12] in a uint; x has 8 elements"):
        kernel(np.zeros(8, np.float32), np.zeros(8, np.float32))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_kernel_is_checked_unless_it_opts_out(engine: str) -> None:
    text = "kernel void f(device float* y, uint i [[thread_position_in_grid]]) { if (i == 0) y[4] = 1; }"
    y = np.zeros(8, np.float32)
    with pytest.raises(mnb.KernelFault):
        mnb.compile(text, engine=engine).f(y[:4], grid=1)
    assert not y.any()
    if engine == "cpu":  # a GPU has a copy of all four
        mnb.compile(text, engine=engine, checked=False).f(y[:4], grid=1)
        assert y[4] == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_proven_kernel_is_not_checked(engine: str) -> None:
    """The binary is the same as an unchecked kernel's and takes no table of limits."""
    kernel = mnb.compile("""
kernel void f(device const float* x, device float* y, constant uint& n, uint i [[thread_position_in_grid]]) {
    if (i < n) y[i] = x[i];
}""", engine=engine, checked=True).f  # fmt: skip
    x, y = np.ones(1000, np.float32), np.zeros(1000, np.float32)
    for n, beyond in ((1000, False), (1001, True)):
        ticket = kernel.prepare(x, y, n, grid=1024).launch()
        assert ticket is not None
        assert is_checked(ticket) is beyond
        if beyond:
            with pytest.raises(mnb.KernelFault) as caught:
                ticket.wait()
            assert (caught.value.thread, caught.value.index) == ((1000, 0, 0), 1000)
        else:
            ticket.wait()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("grid", [(16, 8), (19, 13)])
def test_threadgroups_that_run_as_rows_are_checked(grid: tuple[int, int], engine: str) -> None:
    """With SIMD functions, the device runs a two-dimensional threadgroup as a row, and a smaller one at the edges."""
    kernel = mnb.compile("""#include <metal_stdlib>
using namespace metal;
kernel void rows(device float* y, constant uint& at,
                 uint2 i [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
    const float one = simd_max(1.0f);
    y[i.y * size.x + i.x + (all(i == size - 2) ? at : 0)] = one;
}""", engine=engine).rows  # fmt: skip
    count = grid[0] * grid[1]
    whole = np.zeros(count + 64, np.float32)
    kernel(whole[:count], 0, grid=grid, threadgroup=(8, 4))
    assert whole[:count].all()
    whole[:] = 0
    with pytest.raises(mnb.KernelFault, match="writes y") as caught:
        kernel(whole[:count], 50, grid=grid, threadgroup=(8, 4))
    assert caught.value.thread == (grid[0] - 2, grid[1] - 2, 0)
    assert caught.value.index == (grid[1] - 2) * grid[0] + grid[0] - 2 + 50
    assert not whole[count:].any()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("engine_array", [False, True])
def test_an_output_that_was_left_out_and_is_too_small_hints_at_shapes(engine_array: bool, engine: str) -> None:
    """The hint is given whether the call raises the fault or waiting for the result does."""
    spread = mnb.compile("""kernel void spread(device const float* x, device float* o, device float* p,
    uint i [[thread_position_in_grid]]) {
    o[2 * i] = x[i];
    if (x[i] > 5) p[i + 1] = 1;
}""", engine=engine).spread  # fmt: skip
    if engine_array and spread.engine is not engines.current():
        pytest.skip("another engine has the arrays")
    x = np.ones(8, np.float32)
    large = np.zeros(9, np.float32)

    def called(x: Any, **more: Any) -> str:
        with pytest.raises(mnb.KernelFault) as fault:
            np.asarray(spread(mnb.asarray(x) if engine_array else x, **more)[0])
        assert (fault.value.kind, fault.value.index) == ("writes", 8)
        said, line, _ = str(fault.value).split("\n")
        assert line.startswith("  3 |     o[2" if fault.value.name == "o" else "  4 |     if")
        return said

    hint = "It was left out and made for the grid: pass shapes={'%s': …} to say how large it is, or pass %s itself."
    assert called(x).endswith(f"o has 8 elements. {hint % ('o', 'o')}")
    assert called(x * 9, shapes={"o": 16}).endswith(f"p has 8 elements. {hint % ('p', 'p')}")
    out = spread(x, shapes={"o": 16})[0]
    assert out[::2].tolist() == [1] * 8
    with pytest.raises(mnb.KernelFault) as caught:
        spread(x, np.zeros(8, np.float32), large, grid=8)
    assert "shapes=" not in str(caught.value)


def test_environment_variable_selects_the_checks() -> None:
    """Without the variable, cells are checked and the library's kernels are not."""
    ask = """import metalnb as mnb
from metalnb.library_kernels.launching.programs import compile
text = "kernel void f(device float* y) { y[0] = 1; }"
print(mnb.compile(text).f.unit.checked, compile(text, engine="cpu").f.unit.checked)"""
    for value, said in (("1", "True True"), ("0", "False False"), ("", "True False")):
        environment = {**os.environ, "METALNB_CHECKED": value}
        done = subprocess.run([sys.executable, "-c", ask], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == said


@pytest.mark.parametrize("engine", ENGINES)
def test_random_faults_make_the_requested_number_of_calls(engine: str) -> None:
    """The number of calls may be less than the number of kernels, or not a multiple of it."""
    from faults import random_faults

    assert random_faults.run(3, 2500, 1, engine)[:2] == (3, 3)
    assert random_faults.run(7, 4, 1, engine)[:2] == (4, 7)


@pytest.mark.long  # 15 s for a few; the planted faults above also verify the margins
@pytest.mark.parametrize("engine", ENGINES)
def test_random_faults_touch_nothing_else(engine: str) -> None:
    """Run a few of the kernels from ``faults/random_faults.py``."""
    from faults import random_faults

    _, calls, faults = random_faults.run(2000, 8, 1, engine)
    assert calls == 2000
    assert 600 < faults < 2000


@pytest.mark.parametrize("engine", ENGINES)
def test_loops_that_follow_each_other_directly(engine: str) -> None:
    """Each loop has a version with checks and one without; only the last loop exits to a block outside all loops."""
    count, passes = 2, 14  # so that the loops' labels pass from two digits to three, and are sorted in another order
    loops = "j = 0; do { sum = sum * 3 + x[j]; } while (++j != n);\n" * passes
    kernel = mnb.compile(f"""
kernel void f(device const uint* x, device const ulong* m, device uint* y, uint i [[thread_position_in_grid]]) {{
    const ulong n = m[0]; uint sum = 0; ulong j;
    {loops}
    y[i] = sum + i;
}}""", engine=engine).f  # fmt: skip
    x, y = np.arange(64, dtype=np.uint32) + 7, np.zeros(32, np.uint32)
    kernel(x, np.array([count], np.uint64), y)
    expected = 0
    for _ in range(passes):
        for value in x[:count].tolist():
            expected = (expected * 3 + value) % 2**32
    assert y.tolist() == [(expected + i) % 2**32 for i in range(32)]
