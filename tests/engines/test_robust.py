"""No access of a cell's kernel leaves its arguments' memory: each planted fault is found and named.

Every kernel gets arrays of 64 elements in the middle of larger ones, whose margins must not change.
"""

import contextlib
import os
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
from checked_engines import ENGINES

import metalnb as mnb
from metalnb import engine as engines
from metalnb.engine.cpu import cpu_engine
from metalnb.engine.cpu.cpu_checks import thread_checks
from metalnb.engine.vectorizer.not_vectorized import NotVectorized

HEAD = """#include <metal_stdlib>
using namespace metal;
struct Pair { float first; int second[3]; };
struct Row { device float* of(device float* x, int n) { return x + n; } };
float helper(device const float* x, uint n) { return x[n]; }
void put(device float& x) { x = 7; }
template <class T> T pick(device const T* x, int n) { return x[n]; }
kernel void f(
    device float* a, device const float* b, constant float* c, device atomic_uint* n, device float4* v,
    device packed_float3* p, device Pair* s, device ushort* h, constant int& k, threadgroup float* t,
    uint i [[thread_position_in_grid]], uint l [[thread_position_in_threadgroup]]
) {
"""
LINE = HEAD.count("\n") + 1
EXTENT = 64
MARGIN = 256


def is_checked(ticket: Any) -> bool:
    """Return whether a dispatch is checked."""
    return hasattr(ticket, "has_raised")


class Fault(NamedTuple):
    """A body with one wrong access, the value of k that triggers it, and the message."""

    body: str
    k: int
    kind: str
    name: str
    index: int | None = None
    line: int = LINE


R, W, U = "reads", "writes", "updates"
FAULTS = {
    # A device buffer, read
    "read at the end": Fault("a[i] = b[k];", 64, R, "b", 64),
    "read below 0": Fault("a[i] = b[k];", -1, R, "b", -1),
    "read far beyond": Fault("a[i] = b[k];", 1 << 24, R, "b", 1 << 24),
    "read near 2^31": Fault("a[i] = b[k];", 2**31 - 1, R, "b", 2**31 - 1),
    "read at uint(-1)": Fault("a[i] = b[uint(k)];", -1, R, "b"),
    "read near 2^32 elements, as long": Fault("a[i] = b[long(k) * 4];", 2**30, R, "b"),
    "read one past the last": Fault("a[i] = b[i + 1];", 0, R, "b", 64),
    "read one before the first": Fault("a[i] = b[i - 1];", 0, R, "b"),
    "read in a loop that runs on": Fault(
        "float x = 0; for (int j = 0; j <= k; ++j) x += b[j]; a[i] = x;", 64, R, "b", 64),
    "read under a wrong guard": Fault("if (int(i) <= k) a[i] = b[i + 1];", 63, R, "b", 64),
    "read by a stride": Fault("a[i] = b[i * k];", 2, R, "b"),
    "read at an index from memory": Fault("a[i] = b[h[i] + k];", 64, R, "b", 64),
    # A device buffer, written
    "write at the end": Fault("if (i == 3) a[k] = 1;", 64, W, "a", 64),
    "write below 0": Fault("if (i == 3) a[k] = 1;", -1, W, "a", -1),
    "write far below": Fault("if (i == 3) a[k] = 1;", -100000, W, "a", -100000),
    "write far beyond": Fault("if (i == 3) a[k] = 1;", 1 << 22, W, "a", 1 << 22),
    "write near 2^31": Fault("if (i == 3) a[k] = 1;", 2**31 - 5, W, "a", 2**31 - 5),
    "write by every thread": Fault("a[int(i) + k] = 1;", 32, W, "a"),
    "write of what is read there": Fault("a[k] += 1;", 64, R, "a", 64),
    "write to an index from memory": Fault("a[h[i] + k] = 1;", 64, W, "a", 64),
    # Atomics
    "atomic at the end": Fault("atomic_fetch_add_explicit(&n[k], 1u, memory_order_relaxed);", 64, U, "n", 64),
    "atomic below 0": Fault("atomic_fetch_add_explicit(&n[k], 1u, memory_order_relaxed);", -2, U, "n", -2),
    "atomic max": Fault("atomic_fetch_max_explicit(&n[k], 1u, memory_order_relaxed);", 70, U, "n", 70),
    "atomic exchange": Fault("atomic_exchange_explicit(&n[k], 1u, memory_order_relaxed);", 64, U, "n", 64),
    "atomic store": Fault("atomic_store_explicit(&n[k], 1u, memory_order_relaxed);", 64, W, "n", 64),
    "atomic load": Fault("a[i] = atomic_load_explicit(&n[k], memory_order_relaxed);", 64, R, "n", 64),
    "atomic compare": Fault(
        "uint e = 0; atomic_compare_exchange_weak_explicit(&n[k], &e, 1u, memory_order_relaxed, memory_order_relaxed);",
        64, U, "n", 64),
    # A constant buffer
    "constant at the end": Fault("a[i] = c[k];", 64, R, "c", 64),
    "constant below 0": Fault("a[i] = c[k];", -7, R, "c", -7),
    "constant far beyond": Fault("a[i] = c[k];", 1 << 28, R, "c", 1 << 28),
    # A threadgroup array
    "tile read at the end": Fault("threadgroup float w[32]; w[l] = 1; a[i] = w[k];", 32, R, "w", 32),
    "tile read below 0": Fault("threadgroup float w[32]; w[l] = 1; a[i] = w[k];", -1, R, "w", -1),
    "tile read far beyond": Fault("threadgroup float w[32]; w[l] = 1; a[i] = w[k];", 1 << 26, R, "w", 1 << 26),
    "tile written at the end": Fault("threadgroup float w[32]; w[k] = 1; a[i] = w[l];", 32, W, "w", 32),
    "tile written far beyond": Fault("threadgroup float w[32]; w[k] = 1; a[i] = w[l];", 1 << 26, W, "w", 1 << 26),
    "tile written by too many": Fault("threadgroup float w[16]; w[l ^ 16] = 1; a[i] = w[l % 16];", 0, W, "w"),
    "tile of two dimensions": Fault("threadgroup float w[8][8]; w[k][l % 8] = 1; a[i] = w[l % 8][0];", 8, W, "w"),
    "tile, atomic": Fault(
        "threadgroup atomic_uint w[8]; atomic_fetch_add_explicit(&w[k], 1u, memory_order_relaxed); a[i] = 1;",
        8, U, "w", 8),
    # A threadgroup argument
    "threadgroup argument read": Fault("t[l] = 1; a[i] = t[k];", 32, R, "t", 32),
    "threadgroup argument written": Fault("t[k] = 1; a[i] = t[l];", 32, W, "t", 32),
    "threadgroup argument below 0": Fault("t[k] = 1; a[i] = t[l];", -1, W, "t", -1),
    "threadgroup argument far beyond": Fault("t[k] = 1; a[i] = t[l];", 1 << 26, W, "t", 1 << 26),
    # A thread's array
    "thread array read": Fault("float w[8]; for (int j = 0; j < 8; ++j) w[j] = b[j]; a[i] = w[k];", 8, R, "w", 8),
    "thread array read below 0": Fault(
        "float w[8]; for (int j = 0; j < 8; ++j) w[j] = b[j]; a[i] = w[k];", -1, R, "w", -1),
    "thread array written": Fault("float w[8] = {}; w[k] = 1; a[i] = w[i % 8];", 8, W, "w", 8),
    "thread array written below 0": Fault("float w[8] = {}; w[k] = 1; a[i] = w[i % 8];", -3, W, "w", -3),
    "thread array written far beyond": Fault("float w[8] = {}; w[k] = 1; a[i] = w[i % 8];", 1 << 26, W, "w", 1 << 26),
    "thread array in a loop": Fault(
        "float w[8]; for (int j = 0; j <= k; ++j) w[j] = j; a[i] = w[i % 8];", 8, W, "w", 8),
    "thread array of structs": Fault("Pair w[4] = {}; w[k].second[1] = 3; a[i] = w[i % 4].second[1];", 4, W, "w", 4),
    # Ways to get there
    "through a helper": Fault("a[i] = helper(b, k);", 64, R, "b", 64, 5),
    "through a reference": Fault("if (i == 0) put(a[k]);", 64, W, "a", 64, 6),
    "through a template": Fault("a[i] = pick<float>(b, k);", -4, R, "b", -4, 7),
    "through a method": Fault("Row r; if (i == 0) *r.of(a, k) = 1;", 64, W, "a", 64),
    "through a row's pointer": Fault("device const float* row = b + 16 * k; a[i] = row[i % 16];", 4, R, "b"),
    "through a pointer that walks": Fault(
        "device const float* q = b; float x = 0; for (int j = 0; j <= k; ++j) x += *q++; a[i] = x;", 64, R, "b", 64),
    "through a lambda": Fault("auto g = [&](int j) { return b[j]; }; a[i] = g(k);", 64, R, "b", 64),
    "a struct's member": Fault("s[k].first = 1;", 64, W, "s", 64),
    "a struct's array": Fault("s[i].second[k] = 1;", 1 << 20, W, "s"),
    "a vector": Fault("v[k] = 1;", 64, W, "v", 64),
    "a vector's component": Fault("v[k].y = 1;", 64, W, "v", 64),
    "a vector's swizzle": Fault("v[k].zx = 1;", -1, W, "v", -1),
    "a packed vector": Fault("p[k] = 1;", 64, W, "p", 64),
    "a packed vector's component": Fault("a[i] = p[k].z;", 64, R, "p", 64),
    "a cast to wider elements": Fault("((device float4*)a)[k] = 1;", 16, W, "a", 64),
    "a cast to narrower elements": Fault("((device uchar*)a)[k] = 1;", 256, W, "a", 64),
    "16-bit elements": Fault("h[k] = 1;", 64, W, "h", 64),
    "a copied struct": Fault("Pair x = s[k]; a[i] = x.first + x.second[i % 3];", 64, R, "s", 64),
    "two buffers in one pointer": Fault(
        "device float* q = k > 0 ? a : (device float*)v; if (i == 3) q[k] = 1;", 64, W, "a", 64),
    "two buffers, chosen by each thread": Fault(
        "device const float* q = i % 2 ? b : a; float x = q[k]; a[i] = x;", 1 << 20, R, ""),
}  # fmt: skip


def arguments() -> tuple[dict[str, Any], dict[str, tuple[Any, Any]]]:
    kinds = {"a": (np.float32, 1), "b": (np.float32, 1), "c": (np.float32, 1), "n": (np.uint32, 1),
             "v": (np.float32, 4), "p": (np.float32, 3), "s": (np.int32, 4), "h": (np.uint16, 1)}  # fmt: skip
    given, around = {}, {}
    for name, (dtype, width) in kinds.items():
        whole = np.full((MARGIN + EXTENT + MARGIN, width), 85, dtype)
        middle = whole[MARGIN : MARGIN + EXTENT]
        middle[:] = 0
        around[name] = (whole, whole.copy())
        given[name] = middle if width > 1 else middle[:, 0]
    return given, around


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
    with pytest.raises(mnb.KernelFault) as found:
        called(engine, planted.body, planted.k)
    error = found.value
    assert (error.kind, error.line) == (planted.kind, planted.line), error
    assert not planted.name or error.name == planted.name, error
    assert planted.index is None or error.index == planted.index, error
    assert error.thread is not None
    assert error.thread[0] < EXTENT


RIGHT = {
    "at its own place": "a[i] = b[i];",
    "under a guard": "if (i < uint(k)) a[i] = b[i];",
    "neighbors under a guard": "if (i > 0 && i + 1 < uint(k)) a[i] = b[i - 1] + b[i + 1];",
    "an early return": "if (int(i) >= k - 1) return; a[i] = b[i + 1];",
    "clamped from above": "a[i] = b[min(i + 5, uint(k) - 1)];",
    "clamped from both sides": "a[i] = b[clamp(int(i) - 3, 0, k - 1)];",
    "folded by a mask": "a[i] = b[(i * 7) & 63];",
    "folded by a remainder": "a[i] = b[(i * 7 + 3) % uint(k)];",
    "mirrored": "a[i] = b[k - 1 - int(i)];",
    "a constant index": "a[i] = b[0] + b[63] + c[17];",
    "a loop over all": "float r = 0; for (int j = 0; j < k; ++j) r += b[j]; a[i] = r;",
    "a loop downwards": "float r = 0; for (int j = k - 1; j >= 0; --j) r += b[j]; a[i] = r;",
    "a grid-stride loop": "for (uint j = i; j < uint(k); j += 64) a[j] = b[j];",
    "two loops": "float r = 0; for (int y = 0; y < 8; ++y) for (int x = 0; x < 8; ++x) r += b[8 * y + x]; a[i] = r;",
    "a matrix's row and column": "uint y = i / 8, x = i % 8; float r = 0; "
    "for (uint j = 0; j < 8; ++j) r += b[y * 8 + j] * c[j * 8 + x]; a[i] = r;",
    "a tile": "threadgroup float w[32]; w[l] = b[i]; threadgroup_barrier(mem_flags::mem_threadgroup); "
    "a[i] = w[31 - l];",
    "a threadgroup argument": "t[l] = b[i]; threadgroup_barrier(mem_flags::mem_threadgroup); a[i] = t[l ^ 1];",
    "a tree": "t[l] = b[i]; for (uint s = 16; s > 0; s /= 2) { threadgroup_barrier(mem_flags::mem_threadgroup); "
    "if (l < s) t[l] += t[l + s]; } if (l == 0) a[i / 32] = t[0];",
    "a thread's array": "float w[8]; for (int j = 0; j < 8; ++j) w[j] = b[j]; a[i] = w[i % 8];",
    "a histogram": "atomic_fetch_add_explicit(&n[(i * 37) % 64], 1u, memory_order_relaxed);",
    "a gather": "a[i] = b[h[i] % 64];",
    "a search": "uint low = 0, high = k; while (low < high) { uint m = (low + high) / 2; "
    "if (b[m] < float(i)) low = m + 1; else high = m; } a[i] = low;",
    "a swizzle": "v[i].zyx = v[63 - i].xyz;",
    "a packed vector": "p[i] = packed_float3(1, 2, 3); a[i] = p[i].y;",
    "a struct": "s[i].second[i % 3] = 4; a[i] = s[i].first;",
    "a row's pointer": "device const float* row = b + 8 * (i / 8); a[i] = row[i % 8];",
    "a pointer that walks": "device const float* q = b; float x = 0; for (int j = 0; j < k; ++j) x += *q++; a[i] = x;",
    "one of two buffers": "device const float* q = i % 2 ? b : a; float x = q[i]; a[i] = x + 1;",
    "shifted to and fro": "a[(i << 1) >> 1] = b[i ^ 1];",
    "signed and small": "short j = short(i); a[j] = b[63 - j];",
    "the vote of a SIMD-group": "if (simd_any(b[i] > 0)) a[i] = simd_sum(b[i]); else a[i] = 3;",
}


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


@pytest.mark.long(every=3)  # Right kernels alternate, on each engine
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
def test_what_is_left_out_reads_zero_and_the_rest_is_done(engine: str) -> None:
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
    made = mnb.compile(text, engine=engine)["f"]
    for x, o, told in ((70, 64, r"x\[70\]; x has 70 elements"), (71, 63, r"o\[63\]; o has 63 elements")):
        with pytest.raises(mnb.KernelFault, match=told):
            made(np.ones(x, np.float16), np.ones(o, np.float32), grid=32)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("read", "told"), [("n", ""), ("x[i]", ""), ("x[i + 99]", r"reads x\[100\]; x has 70")])
def test_a_choice_between_an_argument_and_the_threads_position(engine: str, read: str, told: str) -> None:
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
def test_a_kernel_is_checked_unless_it_says_otherwise(engine: str) -> None:
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
    """Its binary is that of an unchecked kernel and takes no table of limits."""
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
            with pytest.raises(mnb.KernelFault) as found:
                ticket.wait()
            assert (found.value.thread, found.value.index) == ((1000, 0, 0), 1000)
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
    with pytest.raises(mnb.KernelFault, match="writes y") as found:
        kernel(whole[:count], 50, grid=grid, threadgroup=(8, 4))
    assert found.value.thread == (grid[0] - 2, grid[1] - 2, 0)
    assert found.value.index == (grid[1] - 2) * grid[0] + grid[0] - 2 + 50
    assert not whole[count:].any()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("engine_array", [False, True])
def test_an_output_that_was_left_out_and_is_too_small_hints_at_shapes(engine_array: bool, engine: str) -> None:
    """Whether the fault is raised by the call, or when its result is waited for."""
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
    with pytest.raises(mnb.KernelFault) as given:
        spread(x, np.zeros(8, np.float32), large, grid=8)
    assert "shapes=" not in str(given.value)


def test_the_environment_says_what_is_checked() -> None:
    """Without the variable, cells are checked and the library's kernels are not."""
    ask = """import metalnb as mnb
from metalnb.library_kernels.launching.programs import compile
text = "kernel void f(device float* y) { y[0] = 1; }"
print(mnb.compile(text).f.unit.checked, compile(text, engine="cpu").f.unit.checked)"""
    for value, said in (("1", "True True"), ("0", "False False"), ("", "True False")):
        environment = {**os.environ, "METALNB_CHECKED": value}
        done = subprocess.run([sys.executable, "-c", ask], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == said


@pytest.mark.long  # 15 s for a few; the planted faults above also verify the margins
@pytest.mark.parametrize("engine", ENGINES)
def test_random_faults_touch_nothing_else(engine: str) -> None:
    """Run a few of the kernels from ``faults/random_faults.py``."""
    from faults import random_faults

    _, calls, faults = random_faults.run(2000, 8, 1, engine)
    assert calls == 2000
    assert 600 < faults < 2000
