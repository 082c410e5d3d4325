"""The engine `cpu`: how it runs a kernel, and which lanes converge in divergent flow.

`test_engine_conformance.py` tests what every engine must do.
"""

import functools
import itertools
import random
import time

import numpy as np
import pytest
from interrupts import run_together

import metalnb as mnb
from metalnb.dtypes import SCALARS
from metalnb.engine import engine_choice as engines
from metalnb.engine.cpu import toolchain
from metalnb.engine.cpu.cpu_engine import CpuEngine
from metalnb.engine.cpu.iteration_ends import mark_iteration_ends

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


@pytest.fixture(scope="module", autouse=True)
def engine_is_here() -> None:
    try:
        engines.named("cpu")
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))


def compiled(text: str) -> mnb.Program:
    return mnb.compile(HEAD + text, engine="cpu")


# ---- Threads in vector registers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("body", "waits", "simd"), [
    ("o[i] = x[i];", False, False),
    ("o[i] = i % 2 ? exp(x[i]) : x[i];", False, False),
    ("threadgroup float a[64]; a[i % 64] = x[i]; o[i] = a[i % 64];", False, False),
    ("threadgroup_barrier(mem_flags::mem_device); o[i] = x[i];", True, False),
    ("o[i] = simd_sum(x[i]);", False, True),
])  # fmt: skip
def test_only_kernels_with_barriers_are_coroutines(body: str, waits: bool, simd: bool) -> None:
    kernel = compiled(
        f"kernel void f(device const float* x, device float* o, uint i [[thread_position_in_grid]]) {{ {body} }}"
    )["f"]
    binary = engines.named("cpu").compile(kernel.unit)
    assert (binary.has_barriers, binary.uses_simdgroup) == (waits, simd)


def test_threads_of_a_loop_have_arrays_of_their_own() -> None:
    """An inlined array is one allocation for all iterations, so the iterations are not independent."""
    program = compiled("""
        kernel void f(device const int* x, device int* o, uint i [[thread_position_in_grid]]) {
            int own[8];
            for (int k = 0; k < 8; ++k) own[k] = x[i] * k;
            for (int k = 0; k < 8; ++k) own[(k * 3 + x[i]) & 7] += k;
            o[i] = own[x[i] & 7];
        }""")
    x = np.random.default_rng(3).integers(0, 100, 1000, np.int32)
    expected = []
    for value in x.tolist():
        own = [value * k for k in range(8)]
        for k in range(8):
            own[(k * 3 + value) & 7] += k
        expected.append(own[value & 7])
    out = np.zeros_like(x)
    program.f(x, out)
    assert out.tolist() == expected


def test_a_loop_sees_its_own_threads_writes_in_order() -> None:
    program = compiled("""
        kernel void f(device int* a, device int* b, uint i [[thread_position_in_grid]]) {
            a[i] += 1; b[i] = a[i]; a[i] *= 2;
        }""")
    a = np.arange(1000, dtype=np.int32)
    b = a[:]
    program.f(a, b)  # the same memory
    assert np.array_equal(a, (np.arange(1000) + 1) * 2)


def test_memory_need_be_aligned_for_its_elements_only() -> None:
    program = compiled(
        "kernel void f(device const long4* x, device long4* o, uint i [[thread_position_in_grid]]) { o[i] = x[i] + 1; }"
    )
    for first in range(4):
        whole = np.zeros(68, np.int64)
        out = whole[first : first + 64].reshape(16, 4)
        program.f(np.arange(64).reshape(16, 4), out)
        assert np.array_equal(out.ravel(), np.arange(64) + 1)


def test_position_in_a_grid_of_three_dimensions_is_right() -> None:
    program = compiled("""
        kernel void f(device uint* o, uint3 p [[thread_position_in_grid]], uint3 n [[threads_per_grid]],
                      uint3 t [[thread_position_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                      uint group [[simdgroup_index_in_threadgroup]], uint i [[thread_index_in_threadgroup]]) {
            o[(p.z * n.y + p.y) * n.x + p.x] = i == group * 32 + lane ? t.x + 10 * t.y + 100 * t.z : 7777;
        }""")
    z, y, x = np.indices((3, 7, 5))
    out = np.zeros((3, 7, 5), np.uint32)
    program.f(out, grid=(5, 7, 3), threadgroup=(4, 3, 2))
    assert np.array_equal(out, x % 4 + 10 * (y % 3) + 100 * (z % 2))


def test_larger_threadgroups_than_metals_are_refused() -> None:
    kernel = compiled("kernel void f(device float* o, uint i [[thread_position_in_grid]]) { o[i] = 1; }")["f"]
    engine = engines.named("cpu")
    with pytest.raises(mnb.KernelFault, match="a threadgroup of 2048 threads; engine 'cpu' allows 1024"):
        engine.launch(engine.compile(kernel.unit), [np.zeros(4, np.float32)], (4, 1, 1), (2048, 1, 1))


# ---- Threads that synchronize ----------------------------------------------------------------------------------------

LANES = np.arange(32)

# The expected sum in each lane's `s`, where l is the lane's number and `one()` counts the active lanes.
DIVERGENT = {
    "branch": ("if (l & 1) s = one(); else s = 100 * one();", lambda lane: 16 if lane & 1 else 1600),
    "unequal branch": ("if (l < 5) s = one(); s += 100 * one();", lambda lane: 3200 + (5 if lane < 5 else 0)),
    "early return": ("if (l < 8) { o[l] = 3; return; } s = one();", lambda lane: 3 if lane < 8 else 24),
    "trips": ("for (uint k = 0; k < l; ++k) s += one();", lambda lane: sum(31 - k for k in range(lane))),
    "trips, then all": ("for (uint k = 0; k < l; ++k) s += one(); s += 1000 * one();",
                        lambda lane: sum(31 - k for k in range(lane)) + 32000),
    "continue": ("for (uint k = 0; k < 5; ++k) { if (l >> k & 1) continue; s += one(); }",
                 lambda lane: 16 * (5 - lane.bit_count())),
    "if in a loop": ("for (uint k = 0; k < 5; ++k) if (l >> k & 1) s += one();", lambda lane: 16 * lane.bit_count()),
    "ternary in a loop": ("for (uint k = 0; k < 5; ++k) s += l >> k & 1 ? one() : 0;",
                          lambda lane: 16 * lane.bit_count()),
    "while": ("uint k = 0; while (k < 5) if (l >> k++ & 1) s += one();", lambda lane: 16 * lane.bit_count()),
    "do": ("uint k = 0; do { if (!(l >> k & 1)) continue; s += one(); } while (++k < 5);",
           lambda lane: 16 * lane.bit_count()),
    "break": ("for (uint k = 0;; ++k) { if (k == l) break; s += one(); } s += 1000 * one();",
              lambda lane: sum(31 - k for k in range(lane)) + 32000),
    "nested": ("for (uint k = 0; k < l % 4; ++k) { for (uint j = 0; j < l % 3; ++j) s += one(); s += 100 * one(); }",
               lambda lane: sum(sum(1 for m in LANES if m % 4 > k and m % 3 > j)
                             for k in range(lane % 4) for j in range(lane % 3))
               + 100 * sum(sum(1 for m in LANES if m % 4 > k) for k in range(lane % 4))),
    "switch": ("switch (l % 3) { case 0: s = one(); break; case 1: s = 100 * one(); break; default: s = 7; }",
               lambda lane: (11, 1100, 7)[lane % 3]),
    "function": ("for (uint k = 0; k < 5; ++k) s += one_if(l >> k & 1);", lambda lane: 16 * lane.bit_count()),
    "macro": ("for (uint k = 0; k < 5; ++k) { ONE_IF(l >> k & 1) }", lambda lane: 16 * lane.bit_count()),
    "return from a loop": ("for (uint k = 0; k < 8; ++k) { if (k == l) { o[l] = s; return; } s += one(); }",
                           lambda lane: sum(31 - k for k in range(min(lane, 8)))),
}  # fmt: skip


@pytest.mark.parametrize("name", DIVERGENT)
@pytest.mark.parametrize("math", ["fast", "precise"])
def test_only_active_lanes_take_part(name: str, math: str) -> None:
    body, expected = DIVERGENT[name]
    program = mnb.compile(f"""{HEAD}
        uint one() {{ return simd_sum(1u); }}
        uint one_if(bool x) {{ if (x) return one(); return 0; }}
        #define ONE_IF(x) if (x) s += one();
        kernel void f(device uint* o, uint l [[thread_index_in_simdgroup]]) {{
            uint s = 0;
            {body}
            o[l] = s;
        }}""", engine="cpu", math=math)  # fmt: skip
    out = np.zeros(32, np.uint32)
    program.f(out, grid=32, threadgroup=32)
    assert out.tolist() == [expected(lane) for lane in range(32)]


@pytest.mark.parametrize("name", DIVERGENT)
@pytest.mark.parametrize("place", ["cell", "header", "functions in a header"])
def test_only_active_lanes_take_part_where_threads_run_one_at_a_time(name: str, place: str) -> None:
    body, expected = DIVERGENT[name]
    functions = (
        f"{HEAD}inline uint one() {{ return simd_sum(1u); }}\n"
        "inline uint one_if(bool x) { if (x) return one(); return 0; }\n"
        "#define ONE_IF(x) if (x) s += one();\n"
    )
    run = f"void run(device uint* o, uint l) {{ uint s = 0; {body} o[l] = s; }}\n"
    kernel = "kernel void f(device uint* o, uint l [[thread_index_in_simdgroup]]) { run(o, l); }"
    texts = {"cell": ("", functions + run), "header": (functions + run, ""), "functions in a header": (functions, run)}
    header, cell = texts[place]
    program = mnb.compile(f'#include "header"\n{cell}{kernel}', headers={"header": header}, engine="cpu")
    engine = CpuEngine()
    out = np.zeros(32, np.uint32)
    engine.launch(engine.thread_at_a_time(program.f.unit), [out], (32, 1, 1), (32, 1, 1)).wait()
    assert out.tolist() == [expected(lane) for lane in range(32)]


def test_iteration_ends_are_marked_in_divergent_loops() -> None:
    """A loop whose lanes always stay together needs no mark, which would double its cost."""
    marked = {
        "for (;;) { if (a) simd_sum(x); }": "for (;; $iteration_end()) { if (a) simd_sum(x); }",
        "for (int i = 0; i < n; ++i) f(i);": "for (int i = 0; i < n; $iteration_end(), ++i) f(i);",
        "while (a) if (b) f(1); else c();": "for (;a; $iteration_end()) if (b) f(1); else c();",
        "do { f(1); } while (a);": "do { f(1); } while ($iteration_end(), (a));",
    }
    function = "float f(int i) { return i ? simd_sum(i) : 0; }"
    for loop, expected in marked.items():
        assert mark_iteration_ends(f"{function} void g() {{ {loop} }}").text == f"{function} void g() {{ {expected} }}"
    for loop in ("for (int i = 0; i < n; ++i) s += simd_sum(x);", "for (int i = 0; i < n; ++i) if (a) h(i);"):
        assert mark_iteration_ends(f"{function} void g() {{ {loop} }}").text == f"{function} void g() {{ {loop} }}"


@pytest.mark.filterwarnings("ignore:.*never reach the threadgroup_barrier:metalnb.MetalnbWarning")
def test_barrier_waits_only_for_threads_that_have_not_returned() -> None:
    program = compiled("""
        kernel void f(device uint* o, uint t [[thread_position_in_threadgroup]], uint i [[thread_position_in_grid]]) {
            threadgroup uint part[100];
            part[t] = t;
            if (t >= 70) return;
            threadgroup_barrier(mem_flags::mem_threadgroup);
            o[i] = part[99 - t];
        }""")
    out = np.zeros(200, np.uint32)
    program.f(out, grid=200, threadgroup=100)
    expected = np.where(np.arange(100) < 70, 99 - np.arange(100), 0)
    assert np.array_equal(out, np.tile(expected, 2))


def test_threadgroup_variables_lie_apart_and_aligned() -> None:
    program = compiled("""
        struct Part { char a; float4 v; };
        kernel void f(device ulong* o, threadgroup float* given [[threadgroup(0)]],
                      uint t [[thread_position_in_threadgroup]]) {
            threadgroup char c[3]; threadgroup Part p[2]; threadgroup half h;
            c[t] = t; p[t & 1].v = t; h = 1; given[t] = t;
            threadgroup_barrier(mem_flags::mem_threadgroup);
            o[0] = ulong(&c[0]); o[1] = ulong(&p[0]); o[2] = ulong(&h); o[3] = ulong(given);
        }""")
    out = np.zeros(4, np.uint64)
    program.f(out, grid=3, threadgroup=3, threadgroup_memory={"given": 64})
    c, p, h, given = (int(a) for a in out)
    assert p % 16 == h % 2 == given % 16 == 0
    starts = sorted([(c, 3), (p, 64), (h, 2), (given, 64)])
    assert all(a + n <= b for (a, n), (b, _) in itertools.pairwise(starts))


def test_dispatches_with_fibers_from_many_python_threads_are_right() -> None:
    program = compiled("""
        kernel void f(device const uint* x, device uint* o, uint i [[thread_position_in_grid]],
                      uint t [[thread_position_in_threadgroup]]) {
            threadgroup uint part[256];
            part[t] = x[i];
            threadgroup_barrier(mem_flags::mem_threadgroup);
            o[i] = part[255 - t] + simd_sum(1u);
        }""")
    x = np.arange(1 << 14, dtype=np.uint32)
    outs = [np.zeros_like(x) for _ in range(4)]
    run_together([functools.partial(program.f, x, o, threadgroup=256) for o in outs])
    expected = x.reshape(-1, 256)[:, ::-1].ravel() + 32
    assert all(np.array_equal(o, expected) for o in outs)


def test_dispatches_of_all_lengths_from_many_python_threads_are_right() -> None:
    """Workers may be spinning, asleep or busy when the next dispatch starts; none is lost or run twice."""
    program = compiled("""
        kernel void f(device uint* o, constant uint& n, uint i [[thread_position_in_grid]]) {
            uint a = i;
            for (uint k = 0; k < n; ++k) a = a * 1664525u + 1013904223u;
            o[i] += a;
        }""")
    wrong = []

    def run(seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(150):
            size, length = dice.choice([256, 4096, 1 << 14, 1 << 16]), dice.choice([0, 3, 40])
            sums = np.zeros(size, np.uint32)
            program.f(sums, length, threadgroup=256)
            expected = np.arange(size, dtype=np.uint32)
            for _ in range(length):
                expected = expected * np.uint32(1664525) + np.uint32(1013904223)
            if not np.array_equal(sums, expected):
                wrong.append((seed, size, length))
            if dice.random() < 0.05:
                time.sleep(0.0005)  # longer than workers spin

    run_together([functools.partial(run, seed) for seed in range(3)])
    assert wrong == []


def test_a_thread_with_more_memory_than_a_fiber_has_is_refused() -> None:
    program = compiled("""
        kernel void f(device float* o, uint i [[thread_position_in_grid]]) {
            float own[60000];
            for (int k = 0; k < 60000; ++k) own[(k * 7 + i) % 60000] = k;
            o[i] = simd_sum(own[i]);
        }""")
    with pytest.raises(mnb.CompileError, match=r"take 24\d{4} bytes; engine .cpu. has 196608 for them"):
        program.f(np.zeros(32, np.float32))


# ---- As an engine ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("only_cpu")
def test_cpu_is_the_default_where_no_other_engine_runs() -> None:
    assert engines.current().name == "cpu"


def test_rotation_wraps_at_32_lanes_in_a_simdgroup_of_31() -> None:
    """A missing lane yields the calling lane's own value."""
    kernel = mnb.compile(
        f"{HEAD}kernel void f(device const int* x, device int* down, device int* up,"
        "uint i [[thread_position_in_grid]]) {"
        "down[i] = simd_shuffle_rotate_down(x[i], 16); up[i] = simd_shuffle_rotate_up(x[i], 3); }",
        engine="cpu",
    ).f
    x, down, up = np.arange(100, 131, dtype=np.int32), np.zeros(31, np.int32), np.zeros(31, np.int32)
    kernel(x, down, up)
    lane = np.arange(31)
    for got, at in ((down, (lane + 16) % 32), (up, (lane - 3) % 32)):
        assert got.tolist() == np.where(at < 31, x[np.minimum(at, 30)], x).tolist()


@pytest.mark.parametrize("barrier", ["", "simdgroup_barrier(mem_flags::mem_none);"])
@pytest.mark.parametrize("kind", ["int", "uint", "short", "ulong", "int4", "uchar2"])
def test_a_division_by_0_is_one_by_1(kind: str, barrier: str) -> None:
    """As docs/robustness.md specifies for the engine cpu; on x86 the process would otherwise end."""
    scalar = kind.rstrip("24")
    kernel = mnb.compile(
        "#include <metal_stdlib>\nusing namespace metal;\n"
        f"kernel void f(device const {scalar}* x, device {scalar}* q, device {scalar}* r,"
        "uint i [[thread_position_in_grid]]) {\n"
        f"{kind} a(x[i]), b(x[i + 40]); {barrier} {kind} c = a / b, d = a % b;\n"
        f"q[i] = {'c.y' if kind != scalar else 'c'}; r[i] = {'d.y' if kind != scalar else 'd'}; }}",
        engine="cpu",
    ).f
    dtype = np.dtype(SCALARS[scalar])
    limits = np.iinfo(dtype)
    x = np.zeros(80, dtype)
    x[:40] = np.resize(np.array([0, 1, 7, limits.max, limits.min], dtype), 40)
    x[40:] = np.resize(np.array([0, 3, limits.max, -1 if limits.min else 2], dtype), 40)
    q, r = np.empty(40, dtype), np.empty(40, dtype)
    kernel(x, q, r, grid=40)
    for a, b, c, d in zip(x[:40].tolist(), x[40:].tolist(), q.tolist(), r.tolist(), strict=True):
        by = 1 if b == 0 or (b == -1 and a == limits.min) else b
        quotient = abs(a) // abs(by) * (1 if (a < 0) == (by < 0) else -1)
        assert (c, d) == (quotient, a - quotient * by), (a, b)


def test_arrays_may_be_passed_as_pointers_in_structs() -> None:
    kernel = compiled("""struct Inner { device const float* x [[id(0)]]; };
    struct Outer { uint n; Inner inner; device float* y; };
    kernel void k(constant Outer& o, uint i [[thread_position_in_grid]]) { o.y[i] = o.inner.x[i] + o.n; }""").k
    x, y = (mnb.array([1, 2, 3], dtype="float32", device="cpu") for _ in range(2))
    kernel({"n": 4, "inner": {"x": x}, "y": y}, grid=3)
    assert np.asarray(y).tolist() == [5, 6, 7]
    with pytest.raises(mnb.ArgumentError, match="field 'y' is pointer; got an array that is not C-contiguous"):
        kernel({"n": 4, "inner": {"x": x}, "y": mnb.zeros((3, 3), dtype="float32", device="cpu")[:, 0]}, grid=3)


@pytest.mark.parametrize("function", ["exp", "exp2", "cospi"])
def test_a_double_is_rounded_to_half(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a processor without AVX-512 FP16, where clang calls a function that must be linked in."""
    flags = toolchain.flags()
    if toolchain.target_triple().startswith("x86_64"):
        flags = (*flags, "-mno-avx512fp16")
    monkeypatch.setattr(toolchain, "flags", lambda: flags)
    monkeypatch.setattr(toolchain, "host_target", toolchain.host_target.__wrapped__)
    x, y = np.linspace(0.1, 3, 100).astype(np.float16), np.zeros(100, np.float16)
    compiled(f"""kernel void k(device const half* x, device half* y, uint i [[thread_position_in_grid]]) {{
        y[i] = half({function}(float(x[i])));
    }}""").k(x, y)
    wide = x.astype(np.float64)
    expected = np.cos(np.pi * wide) if function == "cospi" else getattr(np, function)(wide)
    np.testing.assert_allclose(y, expected, rtol=2**-10, atol=2**-10)
