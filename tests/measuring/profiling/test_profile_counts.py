"""Counts of small kernels, compared with values worked out by hand: lanes, registers, operations, samples."""

import numpy as np
import pytest
from measuring.profiling.profiled_kernels import HEAD, LONG_LOOP, access, kernel

import metalnb as mnb


def test_branches_at_which_lanes_diverge_are_counted() -> None:
    text = """kernel void f(device const float* x, device const uint* n, device float* out,
        uint i [[thread_position_in_grid]]) {
        float s = 0;
        if (i / 32 % 2) {
            for (uint k = 0; k < n[i]; ++k) s += x[k];
        }
        out[i] = s;
    }"""
    times = np.arange(256, dtype=np.uint32) % 8
    profile = mnb.profile(kernel(text), np.zeros(8, np.float32), times, np.zeros(256, np.float32), threadgroup=64)
    by_line = {line.line: line for line in profile.lines}
    assert (by_line[6].branches, by_line[6].divergent) == (8, 0)  # an entire SIMD-group takes one path
    # In each group of eight lanes, one does not enter the loop, and one more leaves after each iteration. So the branch
    # before the first iteration diverges, and those of iterations 1 to 6 do; the last one's does not.
    assert (by_line[7].branches, by_line[7].divergent) == (4 * 8, 4 * 7)
    assert by_line[7].flops == 4 * 4 * sum(range(8))


def test_lanes_are_a_mean_over_a_lines_executions() -> None:
    text = """kernel void f(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
        float s = x[i];
        if (i % 2)
            for (int k = 0; k < 64; ++k) s = s * s + 1.0f;
        out[i] = s;
    }"""
    profile = mnb.profile(kernel(text), np.zeros(256, np.float32), np.zeros(256, np.float32), threadgroup=64)
    by_line = {line.line: line for line in profile.lines}
    assert by_line[6].lanes == 16
    assert by_line[4].lanes == by_line[7].lanes == 32
    assert by_line[6].flops == 128 * 64 * 2


def test_a_threadgroup_smaller_than_a_simdgroup_is_counted_by_its_threads() -> None:
    text = """kernel void f(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
        out[i] = x[i] + 1;
    }"""
    profile = mnb.profile(kernel(text), np.zeros(100, np.float32), np.zeros(100, np.float32), threadgroup=20)
    assert access(profile, "x").lanes == 100
    assert access(profile, "x").runs == 5
    assert profile.flops == 100


def test_barrier_shows_waiting_threads() -> None:
    text = """kernel void f(device const float* x, device float* out, uint l [[thread_index_in_threadgroup]]) {
        threadgroup float t[64];
        float s = x[l];
        if (l >= 32)
            for (int k = 0; k < 1000; ++k) s = s * s + 1.0f;
        t[l] = s;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[l] = t[63 - l];
    }"""
    profile = mnb.profile(kernel(text), np.zeros(64, np.float32), np.zeros(64, np.float32), grid=64, threadgroup=64)
    (barrier,) = profile.barriers
    assert (barrier.line, barrier.rounds, barrier.slowest) == (9, 1, 1)
    assert 0.45 < barrier.waited < 0.5  # one of two SIMD-groups waits nearly all the time


def test_waiting_threads_are_listed_per_barrier() -> None:
    text = """kernel void f(device const float* x, device float* out, uint l [[thread_index_in_threadgroup]]) {
        threadgroup float t[64];
        float s = x[l];
        if (l >= 32)
            for (int k = 0; k < 1000; ++k) s = s * s + 1.0f;
        t[l] = s;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (int k = 0; k < 1000; ++k) s = s * s + t[63 - l];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        t[l] = s;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[l] = t[63 - l];
    }"""
    profile = mnb.profile(kernel(text), np.zeros(64, np.float32), np.zeros(64, np.float32), grid=64, threadgroup=64)
    assert [(b.line, b.waited > 0.1) for b in profile.barriers] == [(9, True), (11, False), (13, False)]


def test_branch_without_active_lanes_is_skipped() -> None:
    text = """kernel void f(device const float* x, device float* out, uint l [[thread_index_in_threadgroup]]) {
        if (x[l] > 0)
            out[l] = 2;
    }"""
    x = np.repeat([1, 0, 1, 0], 64).astype(np.float32)
    profile = mnb.profile(kernel(text), x, np.zeros(256, np.float32), grid=256, threadgroup=256)
    by_line = {line.line: line for line in profile.lines}
    assert (by_line[4].runs, by_line[5].runs, by_line[5].lanes) == (8, 4, 32)


def test_registers_grow_with_the_live_values() -> None:
    found = []
    for count in (2, 30):
        text = f"""kernel void f(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {{
            float a[{count}];
            for (int k = 0; k < {count}; ++k) a[k] = x[i * {count} + k];
            threadgroup_barrier(mem_flags::mem_device);
            for (int k = 0; k < {count}; ++k) out[i * {count} + k] = a[{count - 1} - k];
        }}"""
        x = np.zeros(32 * count, np.float32)
        found.append(mnb.profile(kernel(text), x, np.zeros_like(x), grid=32).registers)
    few, many = found
    assert 2 + 4 < few < 16
    assert 28 <= many - few < 36  # 28 more values, and some addresses


@pytest.mark.parametrize(
    ("body", "flops", "special"),
    [
        ("out[i] = 2 * a + b;", 2, 0),
        ("out[i] = fma(a, b, a);", 2, 0),
        ("out[i] = fma(half(a), half(b), half(a));", 2, 0),
        ("half2 v = half2(half(a), half(b)); v = fma(v, v, v); out[i] = v.x + v.y;", 4 + 1, 0),
        ("out[i] = a / b;", 1, 1),
        ("out[i] = 1 / b;", 0, 1),
        ("out[i] = sqrt(a);", 0, 1),
        ("out[i] = exp(a) + sin(b);", 1, 2),
        ("out[i] = pow(a, b);", 0, 1),
        ("float s = b; for (int k = 0; k < 5; ++k) s = exp(s) * 3; out[i] = s;", 5, 5),  # which clang unrolls
        ("float c; out[i] = sincos(a, c) + c;", 1, 2),
        ("out[i] = half(tanh(half(a)));", 0, 1),
        ("float4 v = log(float4(a, b, a, b) + 1); out[i] = v.x + v.y;", 2 + 1, 2),  # two of four are used
        ("out[i] = ldexp(a, 3) + nextafter(a, b);", 1, 2),
        ("out[i] = exp(0.5f) * a;", 1, 0),
        ("out[i] = rsqrt(a);", 0, 1),
        ("out[i] = fast::rsqrt(a) + precise::rsqrt(b);", 1, 2),
        ("out[i] = mix(a, b, 0.25f);", 3, 0),
        ("out[i] = max(a, b);", 0, 0),
        ("float4 v = float4(a, b, a, b); out[i] = dot(v, v.wzyx);", 7, 0),
        ("float s = b; for (int k = 0; k < 10; ++k) s = s * a + b; out[i] = s;", 20, 0),
        ("float3 v = float3(a, b, a), w = v * b; out[i] = w.x + dot(v, v);", 1 + 5 + 1, 0),
        ("out[i] = as_type<int>(a) * 3 + as_type<int>(b);", 0, 0),
    ],
)
def test_floating_point_operations_are_counted_exactly(body: str, flops: int, special: int) -> None:
    text = f"""kernel void f(device const float* x, device const float* y, device float* out,
        uint i [[thread_position_in_grid]]) {{
        float a = x[i], b = y[i];
        {body}
    }}"""
    x = np.ones(64, np.float32)
    profile = mnb.profile(mnb.compile(HEAD + text, math="precise").f, x, x.copy(), np.zeros_like(x))
    assert (profile.flops, profile.special) == (64 * flops, 64 * special)


def test_operations_of_fast_math_are_counted_exactly() -> None:
    text = """kernel void f(device const float4* p, device float4* o, constant uint& n,
        uint i [[thread_position_in_grid]]) {
        float3 a = 0, own = p[i].xyz;
        for (uint k = 0; k < n; ++k) {
            float4 other = p[k];
            float3 d = other.xyz - own;
            float r = rsqrt(dot(d, d) + 0.01f);
            a += d * (other.w * r * r * r);
        }
        o[i] = float4(a, 0);
    }"""
    profile = mnb.profile(kernel(text), np.ones((64, 4), np.float32), np.zeros((64, 4), np.float32), 64, grid=64)
    # The difference takes 3, its square 5, the softening 1, the weight 3, the sum 6; the reciprocal root is one
    # function. clang computes full vectors of four, some of whose components are unused.
    assert (profile.flops, profile.special) == (64 * 64 * 18, 64 * 64)


def test_a_product_has_two_operations_for_each_term() -> None:
    text = """kernel void f(device const float* a, device const float* b, device float* c, constant uint& n,
        uint2 g [[thread_position_in_grid]], uint2 l [[thread_position_in_threadgroup]]) {
        threadgroup float ta[16][16], tb[16][16];
        float s = 0;
        for (uint k = 0; k < n; k += 16) {
            ta[l.y][l.x] = a[g.y * n + k + l.x];
            tb[l.y][l.x] = b[(k + l.y) * n + g.x];
            threadgroup_barrier(mem_flags::mem_threadgroup);
            for (uint j = 0; j < 16; ++j) s += ta[l.y][j] * tb[j][l.x];
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        c[g.y * n + g.x] = s;
    }"""
    a, b, c = (np.ones((64, 64), np.float32) for _ in range(3))
    profile = mnb.profile(kernel(text), a, b, c, 64, threadgroup=(16, 16))
    assert profile.flops == 2 * 64**3
    assert access(profile, "a").asked == access(profile, "b").asked == 4 * 64**3 // 16
    assert (access(profile, "ta").passes, access(profile, "tb").passes) == (64**3 // 32, 64**3 // 32)
    assert (c == 1).all()  # it ran on a copy
    assert profile.sampled == profile.groups == 16


def test_of_a_large_dispatch_a_sample_runs() -> None:
    x = np.zeros(1 << 20, np.float32)
    profile = mnb.profile(kernel(LONG_LOOP), x, np.zeros_like(x), threadgroup=256, seconds=0.05)
    assert profile.sampled < profile.groups == 4096
    assert profile.flops == x.size * 40000
    assert access(profile, "x").sectors == x.size // 8


def test_threadgroups_that_wait_for_those_before_them_run_in_order() -> None:
    text = """kernel void f(device const float* x, device atomic_uint* ready, device float* out,
        uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]],
        uint q [[threadgroup_position_in_grid]]) {
        if (l == 0 && q > 0)
            while (atomic_load_explicit(&ready[q - 1], memory_order_relaxed) == 0) {}
        threadgroup_barrier(mem_flags::mem_device);
        out[i] = x[i] + 1;
        threadgroup_barrier(mem_flags::mem_device);
        if (l == 0) atomic_store_explicit(&ready[q], 1, memory_order_relaxed);
    }"""
    x = np.zeros(2048, np.float32)
    profile = mnb.profile(kernel(text), x, np.zeros(32, np.uint32), np.zeros_like(x), grid=2048, threadgroup=64)
    assert (profile.sampled, profile.flops) == (32, 2048)


def test_interrupt_ends_a_profile_and_leaves_nothing_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    from metalnb.engine.cpu.profiled import counted_run

    text = "kernel void f(device float* out, uint i [[thread_position_in_grid]]) { out[i] = i * 2.0f; }"
    asked = kernel(text)
    mnb.profile(asked, grid=1 << 10)

    def interrupt(_part: float) -> None:
        raise KeyboardInterrupt

    dispatch = asked.prepare(grid=1 << 10)
    with pytest.raises(KeyboardInterrupt):
        counted_run.run_counted(
            dispatch.kernel.unit, dispatch.arguments, dispatch.grid, dispatch.threadgroup, 1.0, progress=interrupt
        )
    assert mnb.profile(asked, grid=1 << 10).flops == 1 << 10  # nothing is left locked


def test_a_kernel_that_does_not_run_in_vector_registers_is_refused_with_the_reason() -> None:
    text = """kernel void f(device float* out, uint i [[thread_position_in_grid]]) {
        float own[16384];
        for (uint k = 0; k < 16384; ++k) own[k] = out[k];
        out[i] = own[as_type<uint>(out[i]) % 16384];
    }"""
    with pytest.raises(mnb.CompileError, match=r"cannot be counted.*its own variables take"):
        mnb.profile(kernel(text), np.zeros(16384, np.float32))


def products(number: int) -> str:
    """Return a kernel of `number` products of SIMD-group matrices in one block."""
    return f"""kernel void f(device float* c, constant uint& n) {{
        simdgroup_float8x8 x, sum;
        simdgroup_load(x, c, 8);
        sum = x;
        {"simdgroup_multiply_accumulate(sum, x, x, sum);" * number}
        simdgroup_store(sum, c, 8);
        if (n == 1) c[0] = 1 / n;  // a division: the IR of one thread is then compiled in two steps
    }}"""


def test_products_of_matrices_are_counted_beyond_the_length_of_a_plain_kernel() -> None:
    profile = mnb.profile(kernel(products(48)), np.zeros(64, np.float32), 2, grid=32, threadgroup=32)
    assert profile.flops == 48 * 1024


def test_a_kernel_of_too_many_products_is_refused_with_the_reason() -> None:
    with pytest.raises(mnb.CompileError, match="as its products of matrices become operations of lanes: it is long"):
        mnb.profile(kernel(products(100)), np.zeros(64, np.float32), 2, grid=32, threadgroup=32)


def test_invalid_arguments_of_profile_are_refused() -> None:
    asked = kernel("kernel void f(device float* out, uint i [[thread_position_in_grid]]) { out[i] = i; }")
    with pytest.raises(mnb.ArgumentError, match="banks= must be an integer from 1 to 64; got 0"):
        mnb.profile(asked, grid=4, banks=0)
    with pytest.raises(mnb.ArgumentError, match="seconds= must be a positive number; got -1"):
        mnb.profile(asked, grid=4, seconds=-1)
    with pytest.raises(mnb.ArgumentError, match="takes a kernel"):
        mnb.profile(np.sum)
    with pytest.raises(mnb.LaunchError, match="empty"):
        mnb.profile(asked, np.zeros(0, np.float32), grid=0)
