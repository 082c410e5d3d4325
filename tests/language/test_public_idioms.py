"""Complete kernels in the style of public Metal projects: each is compiled, run, and compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb

STD = "#include <metal_stdlib>\nusing namespace metal;\n"
ID = "uint i [[thread_position_in_grid]]"

DEQUANTIZED = STD + """
#define QK4_0 32
typedef struct { half d; uint8_t qs[QK4_0 / 2]; } block_q4_0;
template <typename type4x4>
void dequantize_q4_0(device const block_q4_0 * xb, short il, thread type4x4 & reg) {
    device const uint16_t * qs = ((device const uint16_t *)xb + 1);
    const float d1 = il ? (xb->d / 16.h) : xb->d;
    const float d2 = d1 / 256.f;
    const float md = -8.h * xb->d;
    const ushort mask0 = il ? 0x00F0 : 0x000F;
    const ushort mask1 = mask0 << 8;
    float4x4 reg_f;
    for (int i = 0; i < 8; i++) {
        reg_f[i/2][2*(i%2) + 0] = d1 * (qs[i] & mask0) + md;
        reg_f[i/2][2*(i%2) + 1] = d2 * (qs[i] & mask1) + md;
    }
    reg = (type4x4) reg_f;
}
typedef struct { int32_t ne00; uint64_t nb01; } rows_args;
template<typename block_q, short nl, void (*dequantize_func)(device const block_q *, short, thread float4x4 &)>
kernel void get_rows_q(constant rows_args & args, device const void * src0, device float * dst,
        uint3 tgpig[[threadgroup_position_in_grid]], ushort tiitg[[thread_index_in_threadgroup]],
        ushort3 ntg [[threads_per_threadgroup]]) {
    for (int64_t ind = tiitg; ind < args.ne00/16; ind += ntg.x) {
        float4x4 temp;
        dequantize_func(((device const block_q *)((const device char *) src0 + tgpig.x*args.nb01)) + ind/nl, ind%nl,
            temp);
        *(((device float4x4 *) ((device char *) dst + tgpig.x*args.ne00*4)) + ind) = temp;
    }
}
typedef decltype(get_rows_q<block_q4_0, 2, dequantize_q4_0>) get_rows_q_t;
template [[host_name("get_rows_q4_0")]] kernel get_rows_q_t get_rows_q<block_q4_0, 2, dequantize_q4_0>;
"""


def test_a_function_as_template_argument_reads_quantized_rows() -> None:
    rng = np.random.default_rng(0)
    blocks = np.zeros((3, 2), dtype=[("d", "f2"), ("qs", "u1", 16)])
    blocks["d"], blocks["qs"] = rng.random((3, 2)), rng.integers(0, 256, (3, 2, 16))
    out = np.zeros((3, 64), np.float32)
    k = mnb.compile(DEQUANTIZED, engine="cpu").get_rows_q4_0
    k({"ne00": 64, "nb01": 36}, blocks.view(np.uint8).ravel(), out, groups=(3, 1, 1), threadgroup=(4, 1, 1))
    nibbles = np.concatenate([blocks["qs"] & 15, blocks["qs"] >> 4], -1).astype(np.float32) - 8
    expected = (nibbles * blocks["d"][..., None].astype(np.float32)).reshape(3, 64)
    np.testing.assert_array_equal(out, expected)  # a half times four bits fits into a float


UNARY = STD + """
#define instantiate_kernel(name, func, ...) \\
  template [[host_name(name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;
struct Abs { template <typename T> T operator()(T x) { return metal::abs(x); }; };
struct Square {
  template <typename T> T operator()(T x) { return x * x; };
  template <> float operator()(float x) { return x * x; }
};
template <typename T, typename U, typename Op, int N = 4>
[[kernel]] void unary_v(device const T* in, device U* out, constant uint& size,
    uint index [[thread_position_in_grid]]) {
  index *= N;
  if (N > 1 && index + N > size) {
    for (int i = 0; index + i < size; ++i) { out[index + i] = static_cast<U>(Op()(in[index + i])); }
  } else {
    for (int i = 0; i < N; ++i) { out[index + i] = static_cast<U>(Op()(in[index + i])); }
  }
}
#define instantiate_unary_all(op, tname, type) \\
  instantiate_kernel("v_" #op #tname, unary_v, type, type, op) \\
  instantiate_kernel("v2_" #op #tname, unary_v, type, type, op, 2)
#define instantiate_unary_types(op) \\
  instantiate_unary_all(op, float32, float) instantiate_unary_all(op, int32, int32_t)
instantiate_unary_types(Abs) instantiate_unary_types(Square) // clang-format on
"""


@pytest.mark.parametrize("width", ["v", "v2"])
@pytest.mark.parametrize("name", ["Abs", "Square"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_instantiations_that_macros_of_macros_make(width: str, name: str, dtype: type) -> None:
    x = np.arange(-5, 6).astype(dtype)
    out = np.zeros_like(x)
    mnb.compile(UNARY, engine="cpu")[f"{width}_{name}{np.dtype(dtype)}"](x, out, 11, grid=6)
    np.testing.assert_array_equal(out, np.abs(x) if name == "Abs" else x * x)


PHILOX = STD + f"""
struct Philox {{
    uint4 ctr;
    uint2 key;
    static uint2 mulhilo(uint a, uint b) {{ return uint2(a * b, mulhi(a, b)); }}
    uint4 round(uint4 c, uint2 k) {{
        uint2 r0 = mulhilo(0xD2511F53u, c.x), r1 = mulhilo(0xCD9E8D57u, c.z);
        return uint4(r1.y ^ c.y ^ k.x, r1.x, r0.y ^ c.w ^ k.y, r0.x);
    }}
    uint4 operator()() {{
        uint4 c = ctr;
        uint2 k = key;
        for (int i = 0; i < 10; ++i) {{ c = round(c, k); k += uint2(0x9E3779B9u, 0xBB67AE85u); }}
        ctr.x++;
        return c;
    }}
}};
kernel void k(device uint4* o, constant uint2& key, {ID}) {{ Philox g{{uint4(i, 0, 0, 0), key}}; o[i] = g(); }}"""


def philox(counter: int, key: tuple[int, int]) -> list[int]:
    c, k, low = [counter, 0, 0, 0], list(key), 0xFFFFFFFF
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & low, (a >> 32) ^ c[3] ^ k[1], a & low]
        k = [(k[0] + 0x9E3779B9) & low, (k[1] + 0xBB67AE85) & low]
    return c


def test_a_counter_based_generator() -> None:
    out = np.zeros((4, 4), np.uint32)
    mnb.compile(PHILOX, engine="cpu").k(out, [1, 2], grid=4)
    np.testing.assert_array_equal(out, [philox(i, (1, 2)) for i in range(4)])


CONSTANTS = STD + f"""
constant bool use_bias [[function_constant(0)]];
constant int N [[function_constant(1)]];
constant bool has_n = is_function_constant_defined(N);
constant int M = has_n ? N : 3;
constexpr constant array<float, 4> tab = {{1, 2, 3, 4}};
static_assert(sizeof(packed_float3) == 12 && sizeof(float3) == 16, "layout");
enum class Mode : ushort {{ add = 1, mul }};
using vec3 = packed_float3;
template <Mode M> struct Op {{
    static float apply(float a, float b) {{ if constexpr (M == Mode::add) return a + b; else return a * b; }}
}};
struct P {{ vec3 p; float w; }};
[[kernel, max_total_threads_per_threadgroup(64)]]
void k(device P* x [[buffer(0)]], device const float* bias [[buffer(1), function_constant(use_bias)]], {ID}) {{
    array<float, 3> a = {{x[i].p[0], x[i].p.y, x[i].p.z}};
    float s = 0;
    for (auto v : a) s += v;
    float3 q = x[i].p;
    q.xy = q.yx;
    x[i].p = q * 2;
    x[i].p.z += 1;
    x[i].w = Op<Mode::add>::apply(s, Op<Mode::mul>::apply(tab[i % 4], M)) + (use_bias ? bias[i] : 0.0f);
}}"""


@pytest.mark.parametrize("n", [None, 5])
@pytest.mark.parametrize("biased", [False, True])
def test_function_constants_arrays_and_packed_vectors_work_together(n: int | None, biased: bool) -> None:
    program = mnb.compile(CONSTANTS, constants={"use_bias": biased, **({"N": n} if n else {})}, engine="cpu")
    x, bias = np.zeros(6, program.dtype("P")), np.arange(6, dtype=np.float32)
    x["p"] = given = np.arange(18).reshape(6, 3)
    program.k(x, *([bias] if biased else []), grid=6)
    np.testing.assert_array_equal(x["w"], given.sum(1) + (np.arange(6) % 4 + 1) * (n or 3) + bias * biased)
    np.testing.assert_array_equal(x["p"], given[:, [1, 0, 2]] * 2 + [0, 0, 1])
    assert program.k.signature.max_threads == 64


PRODUCT = STD + """
kernel void product(device const float* A, device const float* B, device float* C,
        uint2 g [[threadgroup_position_in_grid]]) {
    simdgroup_float8x8 a, b, acc = make_filled_simdgroup_matrix<float, 8>(0.f);
    for (uint k = 0; k < 16; k += 8) {
        simdgroup_load(a, A + g.y * 8 * 16 + k, 16);
        simdgroup_load(b, B + k * 16 + g.x * 8, 16, ulong2(0, 0), false);
        simdgroup_multiply_accumulate(acc, a, b, acc);
    }
    simdgroup_store(acc, C + g.y * 8 * 16 + g.x * 8, 16);
}"""


def test_a_product_by_simdgroup_matrices() -> None:
    a, b = np.random.default_rng(1).integers(-3, 4, (2, 16, 16)).astype(np.float32)
    c = np.zeros((16, 16), np.float32)
    mnb.compile(PRODUCT, engine="cpu").product(a, b, c, groups=(2, 2, 1), threadgroup=(32, 1, 1))
    np.testing.assert_array_equal(c, a @ b)


TRAITS = STD + f"""
template <typename T> METAL_FUNC enable_if_t<is_integral_v<T>, T> half_of(T x) {{ return x >> 1; }}
template <typename T, typename = enable_if_t<is_floating_point_v<T>>> METAL_FUNC T half_of(T x) {{ return x / 2; }}
template <typename T> struct acc_type {{ using type = T; }};
template <> struct acc_type<half> {{ using type = float; }};
template <typename... Ts> constexpr int count() {{ return sizeof...(Ts); }}
template <typename T, typename... R> T total(T a, R... r) {{
    if constexpr (sizeof...(r) == 0) return a; else return a + total(r...);
}}
kernel void k(device half* x, device int* y, {ID}) {{
    typename acc_type<half>::type a = x[i];
    a = half_of(a);
    x[i] = half(a) + half(count<int, float, half>());
    y[i] = half_of(y[i]) + total(1, 2, 3) + popcount(uint(y[i]));
}}"""


def test_type_traits_and_parameter_packs_compute_right_values() -> None:
    x, y = np.arange(6, dtype=np.float16), np.arange(6, dtype=np.int32)
    mnb.compile(TRAITS, engine="cpu").k(x, y)
    np.testing.assert_array_equal(x, np.arange(6) / 2 + 3)
    np.testing.assert_array_equal(y, np.arange(6) // 2 + 6 + [v.bit_count() for v in range(6)])


BITS = STD + f"""
union U {{ float f; uint u; uchar b[4]; }};
constant ushort kmask[4] = {{0x1, 0x2, 0x4, 0x8}};
struct Complex {{
    float re, im;
    constexpr Complex(float r = 0, float i = 0) : re(r), im(i) {{}}
    constexpr Complex operator*(Complex o) const {{
        return Complex(re * o.re - im * o.im, re * o.im + im * o.re);
    }}
    explicit operator bool() const {{ return re != 0; }}
}};
kernel void k(device uint* o, device float2* z, {ID}) {{
    U u;
    u.f = as_type<float>(o[i]);
    uint v = u.u ^ (u.b[1] << 8) | kmask[i & 3];
    v = insert_bits(extract_bits(v, 0, 24), i, 24, 8);
    o[i] = rotate(v, 4u) + clz(v) + ctz(i | 16) + reverse_bits(i);
    Complex c = Complex(z[i].x, z[i].y) * Complex(0, 1);
    z[i] = c ? float2(c.re, c.im) : float2(-1);
}}"""


def bits(o: int, i: int) -> int:
    v = ((o ^ (o >> 8 & 255) << 8) | 1 << (i & 3)) & 0xFFFFFF | i << 24
    trailing = ((i | 16) & -(i | 16)).bit_length() - 1
    return ((v << 4 | v >> 28) + 32 - v.bit_length() + trailing + int(f"{i:032b}"[::-1], 2)) & 0xFFFFFFFF


def test_unions_bits_and_complex_numbers() -> None:
    o, z = np.arange(100, 108, dtype=np.uint32) * 70001, np.arange(16, dtype=np.float32).reshape(8, 2)
    expected = [bits(int(v), i) for i, v in enumerate(o)], [[-b, a] if b else [-1, -1] for a, b in z]
    mnb.compile(BITS, engine="cpu").k(o, z, grid=8)
    np.testing.assert_array_equal(o, expected[0])
    np.testing.assert_array_equal(z, expected[1])


HISTOGRAM = STD + """
kernel void histogram(device const uchar* x, device atomic_uint* h, device atomic_float* s,
        uint i [[thread_position_in_grid]], uint l [[thread_position_in_threadgroup]]) {
    threadgroup atomic_uint t[16];
    if (l < 16) atomic_store_explicit(&t[l], 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_fetch_add_explicit(&t[x[i] & 15], 1u, memory_order_relaxed);
    atomic_fetch_add_explicit(s, float(x[i]), memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (l < 16)
        atomic_fetch_add_explicit(h + l, atomic_load_explicit(&t[l], memory_order_relaxed), memory_order_relaxed);
}"""


def test_atomics_in_both_memories() -> None:
    x = np.random.default_rng(3).integers(0, 256, 256).astype(np.uint8)
    h, s = np.zeros(16, np.uint32), np.zeros(1, np.float32)
    mnb.compile(HISTOGRAM, engine="cpu").histogram(x, h, s, grid=256, threadgroup=64)
    np.testing.assert_array_equal(h, np.bincount(x & 15, minlength=16))
    assert s[0] == x.sum()
    with pytest.raises(mnb.CompileError, match="undefined template 'atomic<ushort>'"):
        mnb.compile(HISTOGRAM.replace("device atomic_uint*", "device atomic<ushort>*"), engine="cpu")


ATTENTION = STD + """
template <typename T, short D> struct Tile {
    threadgroup T* p;
    METAL_FUNC Tile(threadgroup T* q, ushort l) : p(q + l * D) {}
    METAL_FUNC void load(device const T* s) const {
#pragma unroll
        for (short d = 0; d < D; ++d) p[d] = s[d];
    }
};
#define FOR_UNROLL(x) _Pragma("clang loop unroll(full)") for (x)
template <typename T, short D, bool CAUSAL>
kernel void scores(device const T* q, device const T* kk, device T* o, threadgroup T* sm [[threadgroup(0)]],
        constant int& n, ushort l [[thread_index_in_threadgroup]]) {
    Tile<T, D> t(sm, l);
    t.load(kk + l * D);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    T acc = 0;
    for (int j = 0; j < n; ++j) {
        if (CAUSAL && j > l) continue;
        T s = 0;
        FOR_UNROLL (short d = 0; d < D; ++d) s += q[l * D + d] * sm[j * D + d];
        acc += s;
    }
    o[l] = acc;
}
typedef decltype(scores<float, 4, true>) scores_t;
template [[host_name("causal")]] kernel scores_t scores<float, 4, true>;
template [[host_name("full")]] kernel scores_t scores<float, 4, false>;
"""


@pytest.mark.parametrize("name", ["causal", "full"])
def test_a_class_may_hold_a_tile_in_threadgroup_memory(name: str) -> None:
    q, k = np.random.default_rng(4).integers(-3, 4, (2, 8, 4)).astype(np.float32)
    out = np.zeros(8, np.float32)
    kernel = mnb.compile(ATTENTION, engine="cpu")[name]
    kernel(q, k, out, n=8, grid=8, threadgroup=8, threadgroup_memory={"sm": 128})
    products = q @ k.T
    np.testing.assert_array_equal(out, (np.tril(products) if name == "causal" else products).sum(1))
