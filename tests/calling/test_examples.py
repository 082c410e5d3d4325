"""Kernels that users port from other systems, each compared with NumPy in float64.

Inputs are random, with edge cases, but the same in every run; set METALNB_SEED to vary them.
"""

# ruff: noqa: E501  (MSL)

import math

import numpy as np
import pytest

import metalnb as mnb

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
SIZES = [1, 31, 32, 33, 255, 256, 257, 10**6 + 3]
EDGES = [0.0, -0.0, 1.0, -1.0, 1e-30, -1e-30, 2.0**-126, 1e30, -1e30, np.inf, -np.inf, np.nan]


def floats(rng: np.random.Generator, n: int, low: float = -100, high: float = 100) -> np.ndarray:
    """Return random floats, with every edge case in the range if the array is large enough."""
    values = rng.uniform(low, high, n).astype(np.float32)
    edges = [e for e in EDGES if low <= e <= high][:n]
    values[rng.choice(n, len(edges), replace=False)] = edges
    return values


def bits(x: np.ndarray) -> np.ndarray:
    """Return the bits of floats, with one pattern for all NaN."""
    return np.where(np.isnan(x), np.uint32(0x7FC00000), x.view(np.uint32))


def test_bytes_are_updated_in_place_and_wrap(rng: np.random.Generator) -> None:
    add2 = mnb.compile(
        HEAD
        + """
    kernel void add2(device uint8_t* data [[buffer(0)]], uint i [[thread_position_in_grid]]) { data[i] += 2; }"""
    ).add2
    for n in (1, 7, 1024, 100_003):
        data = rng.integers(0, 256, n, np.uint8)
        data[:1] = 255  # wraps
        expected = data + np.uint8(2)
        assert add2(data) is None
        np.testing.assert_array_equal(data, expected)


def test_log_of_any_length_matches_numpy(rng: np.random.Generator) -> None:
    log = mnb.compile(HEAD + """
    kernel void log(const device float* in [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
        out[i] = metal::log(in[i]);
    }""").log  # fmt: skip
    for n in (1, 1000, 1024, 100_003):
        x = floats(rng, n, 1e-38, 3e38)
        np.testing.assert_allclose(log(x), np.log(x.astype(np.float64)), rtol=1e-6, atol=1e-7)
    edges = log(np.array([0.0, np.inf, -1.0, np.nan, 1.0], np.float32))
    assert edges[0] == -np.inf and edges[1] == np.inf and np.isnan(edges[2:4]).all() and edges[4] == 0  # noqa: PT018


@pytest.mark.parametrize("n", [10, 10**7])
def test_products_of_vectors_are_rounded_correctly(n: int, rng: np.random.Generator) -> None:
    multiply = mnb.compile(HEAD + """
    kernel void multiply(const device float* a, const device float* b, device float* c, uint i [[thread_position_in_grid]]) {
        c[i] = a[i] * b[i];
    }""").multiply  # fmt: skip
    a, b = floats(rng, n, -1e38, 1e38), floats(rng, n, -1, 1)
    with np.errstate(all="ignore"):
        expected = a * b  # one operation: correctly rounded
    tiny = np.abs(expected) < 2.0**-126  # MSL 7.2: subnormals may be flushed to zero
    got = multiply(a, b)
    np.testing.assert_array_equal(bits(got)[~tiny], bits(expected)[~tiny])
    assert (np.abs(got[tiny]) < 2.0**-126).all()


def test_arithmetic_unrolled_400_times_matches_numpy(rng: np.random.Generator) -> None:
    steps = "\n".join("    x = x + y * 0.1f; y = y - x * 0.1f;" for _ in range(400))
    unrolled = mnb.compile(
        HEAD
        + f"""
kernel void unrolled(const device float* a, const device float* b, device float* out, uint i [[thread_position_in_grid]]) {{
    float x = a[i], y = b[i];
{steps}
    out[i] = x + y;
}}""",
        math="precise",
    ).unrolled
    a, b = rng.uniform(-1, 1, (2, 10_000)).astype(np.float32)
    x, y = a.astype(np.float64), b.astype(np.float64)
    for _ in range(400):
        x = x + y * np.float64(np.float32(0.1))
        y = y - x * np.float64(np.float32(0.1))
    np.testing.assert_allclose(unrolled(a, b), x + y, atol=2e-5)


def test_julia_set_takes_as_many_steps_as_on_the_host(rng: np.random.Generator) -> None:
    julia = mnb.compile(
        HEAD
        + """
struct View { float2 c; float2 center; float span; int limit; };
kernel void julia(device int* steps, constant View& view, uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
    float2 z = view.center + (float2(at) / float2(size - 1) - 0.5f) * view.span;
    int n = 0;
    while (n < view.limit && dot(z, z) <= 4) {
        z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + view.c;
        ++n;
    }
    steps[at.y * size.x + at.x] = n;
}""",
        math="precise",
    ).julia
    width, height, limit = 301, 203, 60
    c, span = complex(*rng.uniform((-0.85, 0.1), (-0.7, 0.3))), 3.0
    x, y = np.meshgrid(np.linspace(-span / 2, span / 2, width), np.linspace(-span / 2, span / 2, height))
    fewest, most = julia_counts(x + 1j * y, c, limit)
    assert (fewest == most).mean() > 0.9  # the bounds are tight
    view = {"c": (c.real, c.imag), "center": (0, 0), "span": span, "limit": limit}
    got = julia(view=view, grid=(width, height))
    assert got.shape == (height, width)
    assert ((fewest <= got) & (got <= most)).all()
    assert len(np.unique(got)) > 10


def julia_counts(z: np.ndarray, c: complex, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the fewest and the most steps that float32 may count, from float64 and a bound on its error.

    With u = 2^-24, the coordinates are within 16 u. A step turns an error e into 2 |z| e + e^2, and its roundings add at
    most 5 |z|^2 + 4 units u, fewer with fma; the length that is compared with 2 is rounded by at most 2 u.
    """
    u = 2.0**-24
    fewest, most = np.zeros(z.shape, int), np.zeros(z.shape, int)
    surely, maybe, error = np.ones(z.shape, bool), np.ones(z.shape, bool), np.full(z.shape, 16 * u)
    for _ in range(limit):
        size = np.abs(z)
        surely &= size + error <= 2 * (1 - 2 * u)
        maybe &= size - error <= 2 * (1 + 2 * u)
        fewest += surely
        most += maybe
        error = 2 * size * error + error**2 + u * (5 * size**2 + 4)
        lost = error > 1  # from here on nothing is known
        z, error = np.where(maybe & ~lost, z * z + c, 0), np.where(lost, 1e3, error)
    return fewest, most


def test_sine_of_1234567_floats_matches_numpy(rng: np.random.Generator) -> None:
    wave = mnb.compile(HEAD + """
    kernel void wave(const device float* in, device float* out, constant float& constant_, uint i [[thread_position_in_grid]]) {
        out[i] = sin(in[i]) + constant_;
    }""").wave  # fmt: skip
    x = floats(rng, 1_234_567)
    np.testing.assert_allclose(wave(x, constant_=4.25), np.sin(x.astype(np.float64)) + 4.25, atol=2e-6)


TREE = (
    HEAD
    + """
kernel void tree(const device float* x, device float* partial, constant uint& n, uint i [[thread_position_in_grid]],
                 uint t [[thread_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
    threadgroup float tile[256];
    tile[t] = i < n ? x[i] : 0;
    for (uint step = 128; step > 0; step /= 2) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (t < step) tile[t] += tile[t + step];
    }
    if (t == 0) partial[group] = tile[0];
}
kernel void simd(const device float* x, device float* partial, uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]],
                 uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                 uint s [[simdgroup_index_in_threadgroup]], uint count [[simdgroups_per_threadgroup]]) {
    threadgroup float sums[32];
    float sum = simd_sum(x[i]);
    if (lane == 0) sums[s] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (s == 0) {
        float total = simd_sum(lane < count ? sums[lane] : 0.0f);
        if (lane == 0) partial[group] = total;
    }
}
kernel void least(const device int* x, device atomic_int& result, uint i [[thread_position_in_grid]]) {
    int low = simd_min(x[i]);
    if (simd_is_first()) atomic_fetch_min_explicit(&result, low, memory_order_relaxed);
}
"""
)


@pytest.mark.parametrize("n", SIZES)
def test_tree_reduction_sums_each_threadgroup(n: int, rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, n).astype(np.float32)
    groups = math.ceil(n / 256)
    partial = mnb.compile(TREE).tree(x, n=n, grid=groups * 256, threadgroup=256, shapes={"partial": groups})
    sums = np.add.reduceat(x.astype(np.float64), np.arange(0, n, 256))
    np.testing.assert_allclose(partial, sums, atol=2e-5)
    np.testing.assert_allclose(partial.sum(dtype=np.float64), x.sum(dtype=np.float64), atol=2e-5 * math.sqrt(groups))


@pytest.mark.parametrize("n", SIZES)
def test_simdgroup_reduction_sums_each_threadgroup(n: int, rng: np.random.Generator) -> None:
    """The last threadgroup, and the last SIMD-group in it, are cut off at the grid's end."""
    x = rng.uniform(-1, 1, n).astype(np.float32)
    partial = mnb.compile(TREE).simd(x, grid=n, threadgroup=256, shapes={"partial": math.ceil(n / 256)})
    np.testing.assert_allclose(partial, np.add.reduceat(x.astype(np.float64), np.arange(0, n, 256)), atol=2e-5)


@pytest.mark.parametrize("n", SIZES)
def test_simdgroup_minimum_through_an_atomic_is_the_minimum(n: int, rng: np.random.Generator) -> None:
    x = rng.integers(-(2**31), 2**31, n, np.int32)
    result = np.array(2**31 - 1, np.int32)
    mnb.compile(TREE).least(x, result)
    assert result == x.min()
