// Sine and cosine, to 3 ulp of every float where they are not MSL's own.
#pragma once
#include <metal_stdlib>
using namespace metal;

#if defined __SPIRV__ || defined __SPIR__
// On a CPU a call costs more than the function: x less a multiple of pi in three parts, and a polynomial. What that is not
// exact for, beyond 2^16, takes a SIMD-group a turn of a loop that it otherwise passes by. (An `if` would be computed by
// all, and its result thrown away.)
constant constexpr uint INVERSE_PI[] = {0u, 0x517CC1B7u, 0x27220A94u, 0xFE13ABE8u, 0xFA9A6EE0u, 0x6DB14ACCu, 0x9E21C820u,
                                        0xFF28B1D5u};  // its bits

// What a, beyond 2^16, leaves of half turns, and whether their number is odd; `quarter` of them are put on top of it.
// Source: M. Payne, R. Hanek, "Radian Reduction for Trigonometric Functions", ACM SIGNUM 18 (1983).
inline float far_angle(float a, uint quarter, thread uint& odd) {
    const uint bits = as_type<uint>(a), m = (bits & 0x7FFFFFu) | 0x800000u;
    const uint at = bits < 0x47800000u ? 24u : (bits >> 23) - 119u;  // of the bit that m makes a half turn
    constant const uint* w = INVERSE_PI + min(at >> 5, 4u);  // which is no more anyway: so the checks know it
    const uint s = at & 31u;
    const ulong w0 = ((ulong(w[0]) << 32 | w[1]) << s) >> 32, w1 = ((ulong(w[1]) << 32 | w[2]) << s) >> 32;
    const ulong w2 = ((ulong(w[2]) << 32 | w[3]) << s) >> 32;
    const ulong turns = (m * w0 << 32) + m * w1 + (m * w2 >> 32) + (ulong(quarter) << 62);
    odd = uint(turns >> 63) ^ (uint(turns >> 62) & 1u);
    const float r = float(long(turns << 1)) * 1.70306079e-19f;  // pi / 2^64
    return a < INFINITY ? r : a - a;
}

template <bool cosine>
inline float wave_of(float x) {
    const float a = abs(x), k = cosine ? rint(fma(a, 0.318309886f, -0.5f)) : rint(a * 0.318309886f);
    const float n = cosine ? k + 0.5f : k;
    float r = fma(n, 3.43059e-15f, fma(n, 8.74227766e-8f, fma(n, -3.14159274f, a)));
    uint odd = uint(int(k)) + (cosine ? 1u : 0u);
    for (uint turn = simd_any(a > 65536.0f) ? 1 : 0; turn != 0; turn = turn - simd_max(turn)) {
        uint far_odd;
        const float far = far_angle(a, cosine ? 1u : 0u, far_odd);
        r = a > 65536.0f ? far : r;
        odd = a > 65536.0f ? far_odd : odd;
    }
    const float s = r * r;
    float q = 2.6051334e-6f;  // (sin(r) - r) / r^3 in r^2 on [0, (pi / 2)^2]
    q = fma(q, s, -1.98094390e-4f);
    q = fma(q, s, 8.33306648e-3f);
    q = fma(q, s, -0.166666597f);
    const uint y = as_type<uint>(fma(r * s, q, r)) ^ (odd << 31);
    return as_type<float>(cosine ? y : y ^ (as_type<uint>(x) & 0x80000000u));
}
inline float sin_of(float x) { return wave_of<false>(x); }
inline float cos_of(float x) { return wave_of<true>(x); }
#else
inline float sin_of(float x) { return sin(x); }
inline float cos_of(float x) { return cos(x); }
#endif
