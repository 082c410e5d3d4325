"""Idioms of public kernels: each a cell that writes ``out``, and the expected output."""

from __future__ import annotations

import numpy as np
import pytest
from msl.cells import PRELUDE

import metalnb as mnb

# A number class with a constructor for each address space that its objects may be in (MSL 4).
NUMBER = """
    template <class T> struct number {
        T re, im;
        constexpr number() thread = default;
        constexpr number() threadgroup = default;
        constexpr number(T a, T b) : re(a), im(b) {}
        template <class U, class = enable_if_t<is_convertible_v<U, T>>>
        constexpr number(U x) thread : re(x), im(1) {}
        template <class U, class = enable_if_t<is_convertible_v<U, T>>>
        constexpr number(U x) threadgroup : re(x), im(2) {}
        template <class U, class = enable_if_t<is_convertible_v<U, T>>>
        constexpr number(U x) device : re(x), im(3) {}
        template <class U, class = enable_if_t<is_convertible_v<U, T>>>
        constexpr number(U x) constant : re(x), im(1) {}
    };
    template <class U> struct neutral { static constexpr constant U init = U(7); };
"""

IDIOMS = {
    "a constructor for each address space": (
        NUMBER + """
        constant number<float> one = 1.5f;
        kernel void k(device float* out) {
            threadgroup number<float> shared;
            shared = number<float>(3, 4);
            number<float> a = 2.5f;
            out[0] = one.re; out[1] = a.re; out[2] = a.im; out[3] = shared.im;
        }""",
        [1.5, 2.5, 1, 4],
    ),
    "a choice between a call's value and a constant object": (
        NUMBER + """
        template <class U> U cast_to(float x) { return U(x, x); }
        template <class U, class Op> float chosen(float x, int i) {
            Op op;
            U v = (i < 1) ? cast_to<U>(x) : op.init;
            return v.re;
        }
        kernel void k(device float* out) {
            for (int i = 0; i < 2; ++i) out[i] = chosen<number<float>, neutral<number<float>>>(5, i);
        }""",
        [5, 7],
    ),
    "a literal in a template is a float": (
        """
        template <class T> int size(T x) { return sizeof(x * 0.5); }
        template <class T> float hard(T y) { return fmax(0, fmin(1, y / 6 + 0.5)); }
        #define HALF 0.5
        template <class T> auto halved(T x) { return x * HALF + 1e0 - 1.; }
        kernel void k(device float* out) {
            out[0] = size(1); out[1] = size(half(1)); out[2] = hard(half(1.5)); out[3] = sizeof(halved(1));
            out[4] = halved(5); out[5] = 0x1p-1 + .25;
        }""",
        [4, 4, 0.75, 4, 2.5, 0.75],
    ),
    "a macro that gives a literal its suffix": (
        """
        #define F(x) x##f
        #define TWICE(x) F(x) + F(x)
        template <class T> int size(T x) { return sizeof(x * 0.5); }
        kernel void k(device float* out) { out[0] = F(1.5); out[1] = 0.25; out[2] = size(1); out[3] = TWICE(2.5); }""",
        [1.5, 0.25, 4, 5],
    ),
    "bfloat literals": (
        """
        kernel void k(device float* out) {
            bfloat a = 1.00390625bf; auto b = 2.5BF; out[0] = a; out[1] = b; out[2] = sizeof(b);
        }""",
        [1, 2.5, 2],
    ),
    "a 64-bit counter compared as an int": (
        """
        template <int kind> bool kept(const int i, const int r);
        template <> bool kept<0>(const int i, const int r) { return i >= r; }
        struct sizes { int n; ulong stride; };
        template <class T, int kind>
        kernel void triangle(constant sizes& s, device const char* x, device char* out,
                             uint3 group [[threadgroup_position_in_grid]], ushort3 t [[thread_position_in_threadgroup]],
                             ushort3 threads [[threads_per_threadgroup]]) {
            const int row = group.x;
            device const T* from = (device const T*)(x + row * s.stride);
            device T* to = (device T*)(out + row * s.stride);
            for (int64_t i = t.x; i < s.n; i += threads.x) to[i] = static_cast<T>(kept<kind>(i, row)) * from[i];
        }
        typedef decltype(triangle<float, 0>) triangle_t;
        template [[host_name("k0")]] kernel triangle_t triangle<float, 0>;
        kernel void k(device float* out) { out[0] = 1; }""",
        [1],
    ),
    "components changed beside an operator of the author's": (
        """
        struct pair { float a, b; };
        thread pair& operator+=(thread pair& p, pair q) { p.a += q.a; return p; }
        thread pair& operator*=(thread pair& p, pair q) { p.a *= q.a; return p; }
        template <class T> vec<T, 2> place(T a) { return vec<T, 2>(a, a); }
        template <class T> float sum(T a) {
            auto v = place<T>(a);
            vec<T, 4> w[2] = {};
            T step = 3;
            for (int i = 0; i < 2; ++i, v.x += step) v.y += max(step, T(1)) + 0.5;
            if (v.x > 2) w[1].yz += v;
            w[0].x -= 1, w[1].w *= 2;
            return v.x + 100 * v.y + 10000 * (w[1].y + w[1].z) + w[0].x;
        }
        kernel void k(device float* out) { pair p = {1, 2}; p += p; out[0] = sum(1.0); out[1] = p.a; }""",
        [7 + 800 + 150000 - 1, 2],
    ),
    "instantiations that the preprocessor decides on": (
        """
        #define TYPES float, 3
        #if defined(NEVER_DEFINED)
        template <class T, int n> void twice(device T* out) { out[0] = missing; }
        #endif
        template <class T, int n> kernel void filled(device T* out) { out[0] = n; }
        #if defined(NEVER_DEFINED)
        template [[host_name("absent")]] kernel decltype(filled<absent, 1>) filled<absent, 1>;
        #else
        template [[host_name("k")]] kernel decltype(filled<TYPES>) filled<TYPES>;
        #endif
        #undef TYPES""",
        [3],
    ),
    "texts as arguments": (
        """
        struct journal { constant char* name; constexpr journal(constant char* n, constant char*) constant : name(n) {}
            template <class... A> void debug(constant char*, A...) const thread {}
            template <class... A> void debug(constant char*, A...) const constant {} };
        constant journal logger("no", "name");
        int length(constant char* s) { int n = 0; while (s[n]) ++n; return n; }
        #define REPORT(text) length(text)
        #define CHECK(condition, text) static_assert(condition, text)
        constant char word[] = "fixed";
        CHECK(true, "never told"); static_assert(true, "nor this");
        kernel void k(device float* out) {
            logger.debug("nothing %d", 1);
            out[0] = length("four"); out[1] = length(logger.name); out[2] = length(word); out[3] = length("a" "bc");
        }""",
        [4, 2, 5, 3],
    ),
    "function constants that are called constexpr": (
        """
        #define CONST static constant constexpr const
        CONST int n [[function_constant(0)]];
        constant int size = is_function_constant_defined(n) ? n : 5;
        kernel void k(device float* out) { out[0] = size; }""",
        [5],
    ),
    "names of types without their space": (
        """
        kernel void k(device float* out) {
            constexpr auto three = 3;
            remove_addrspace_t<decltype(three)> a = three;
            uniform<int> b = make_uniform(4);
            out[0] = a; out[1] = b; out[2] = is_same_v<remove_addrspace_t<device int>, int>;
        }""",
        [3, 4, 1],
    ),
    "a reference to a pointer": (
        """
        template <class T> void ahead(const device T*& x, constant const int*& n, int k) { x += k; }
        void ahead(device float*& x) { x += 1; }
        kernel void k(device float* out) { ahead(out); out[-1] = 4; }""",
        [4],
    ),
    "an alias of functions for a template": (
        """
        template <class T> void twice(thread T* x) { *x *= 2; }
        template <class T> void less(thread T* x) { *x -= 1; }
        template <class T> using change = void (*)(thread T*);
        template <class T, change<T> by> void changed(thread T* x) { by(x); by(x); }
        kernel void k(device float* out) {
            float a = 3; changed<float, twice<float>>(&a); changed<float, less<float>>(&a); out[0] = a;
        }""",
        [10],
    ),
    "an array as a parameter of a template": (
        """
        template <class T> T rational(T x, const T above[], int64_t n, const T below[], int64_t m) {
            const thread T* p = above;
            return (x + p[n]) / below[m];
        }
        template <class T> T last(const T a[3]) { return a[2]; }
        kernel void k(device float* out) {
            const float a[3] = {1, 2, 3}; float b[2] = {4, 5};
            out[0] = rational(7.0, a, sizeof(a) / sizeof(a[0]) - 1, b, 1);
            out[1] = last(a);
        }""",
        [2, 3],
    ),
    "a pointer moved on by an integral constant": (
        """
        template <class T, T v> struct constant_of {
            static constant constexpr T value = v;
            constexpr operator T() const thread noexcept { return value; }
        };
        struct total { float sum; total operator+(total o) const { return total{sum - o.sum}; }
                       thread total& operator+=(total o) { sum += o.sum; return *this; } };
        template <class P, class S> void moved(P p, S step, thread float& far) {
            p += step;
            far = p[0]; float a = 1; half h = 2; a += h; far += a;
            total t = {1}; total u = {2}; t += u; far += t.sum;
        }
        kernel void k(device float* out) {
            constexpr float x[4] = {1, 2, 3, 4}; float a[4]; for (int i = 0; i < 4; ++i) a[i] = x[i];
            float far; constant_of<int, 2> two; moved((thread float*)a, two, far); out[0] = far;
            moved((thread float*)a, 1, far); out[1] = far;
        }""",
        [3 + 3 + 3, 2 + 3 + 3],
    ),
    "Apple's own names": (
        """
        template <class T> constexpr constant bool plain = _disjunction<is_same<T, int>, is_same<T, float>>::value;
        kernel void k(device float* out, uint i [[thread_position_in_grid]]) {
            const float x = __metal_simd_xor(i == 3 ? 2.5f : 0.0f);
            const ushort lane = __metal_get_thread_index_in_simdgroup(ushort());
            if (i == 5) { out[0] = plain<float>; out[1] = plain<half>; out[2] = x; out[3] = lane; }
        }""",
        [1, 0, 2.5, 5],
    ),
}


@pytest.mark.parametrize("idiom", IDIOMS)
def test_an_idiom_of_public_kernels_computes_right(idiom: str) -> None:
    source, expected = IDIOMS[idiom]
    program = mnb.compile(PRELUDE + source)
    out = np.zeros(len(expected), np.float32)
    program["k"](out, grid=32, threadgroup=32)
    np.testing.assert_array_equal(out, np.array(expected, np.float32))


def test_a_kernel_whose_64_bit_counter_is_compared_as_an_int_computes() -> None:
    source, _ = IDIOMS["a 64-bit counter compared as an int"]
    x = np.ones((4, 4), np.float32)
    got = np.zeros_like(x)
    size = {"n": 4, "stride": 16}
    mnb.compile(PRELUDE + source)["k0"](size, x.view(np.int8), got.view(np.int8), grid=(4 * 32,), threadgroup=32)
    np.testing.assert_array_equal(got, np.triu(x))


@pytest.mark.parametrize("guard", ["if (i < 5) return;", "if (t < 37) return;", "if (i == 7)", "if (i >= 3 && i < 43)"])
def test_a_guard_leaves_simd_groups_unchanged(guard: str) -> None:
    program = mnb.compile(f"""{PRELUDE}
    kernel void k(device uint* out, uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]],
                  uint lane [[thread_index_in_simdgroup]]) {{
        {guard} out[i] = 100 * simd_sum(1u) + lane;
    }}""")
    out = np.zeros(128, np.uint32)
    program["k"](out, grid=128, threadgroup=64)
    i = np.arange(128)
    t = i % 64
    kept = {"if (i < 5) return;": i >= 5, "if (t < 37) return;": t >= 37, "if (i == 7)": i == 7}
    active = kept.get(guard, (i >= 3) & (i < 43))
    together = active.reshape(-1, 32).sum(axis=1).repeat(32)
    np.testing.assert_array_equal(out, np.where(active, 100 * together + i % 32, 0))
