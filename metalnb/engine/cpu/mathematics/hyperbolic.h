// Hyperbolic functions and their inverses.
#pragma once
#include "exp_log_pow.h"

/// e^a = 2^n e^r and e^-a = 2^-n e^-r, with e^r - 1 and e^-r - 1.
struct $exponential {
    float up, down;
    $nearest n;
    inline explicit $exponential(float a) : n(a * 0x1.715476p+0f) {
        const float r = a - n.value() * 0x1.62e4p-1f - n.value() * 0x1.7f7d1cp-20f, z = r * r;
        const float cosine = ((0x1.6da230p-10f * z + 0x1.555474p-5f) * z + 0.5f) * z;
        const float sine = (0x1.12304ep-7f * z + 0x1.5554a6p-3f) * (z * r) + r;
        up = cosine + sine;
        down = cosine - sine;
    }
    /// Multiply a power of two by 2^n.
    inline float scale_up(float x) const { return $of_bits($bits_of(x) + (n.bits() << 23)); }
    /// A quarter of e^a, and one of e^-a unless it is too small to change a sum of both; cosh(90) is infinite in float.
    inline float upper() const { return (up + 1) * scale_up(0.25f); }
    inline float lower() const {
        const float shifted = n.shifted, limit = 0x1.8p23f + 60;
        return (down + 1) * $of_bits($bits_of(0.25f) - ($bits_of(shifted > limit ? limit : shifted) << 23));
    }
    static inline $exponential of(float size) { const float most = 90; return $exponential(size > most ? most : size); }
};
inline float $h_cosh(float x) {
    const $exponential e = $exponential::of(__builtin_elementwise_abs(x));
    return (e.upper() + e.lower()) * 2;
}
/// A series for arguments up to 1, to 2^-34.
inline float $h_sinh(float x) {
    const float size = __builtin_elementwise_abs(x), z = x * x;
    const $exponential e = $exponential::of(size);
    float p = 0x1.7a15b6p-19f;
    p = p * z + 0x1.9ffe92p-13f;
    p = p * z + 0x1.111134p-7f;
    p = p * z + 0x1.555556p-3f;
    const float near = p * (z * size) + size, far = (e.upper() - e.lower()) * 2;
    return __builtin_elementwise_copysign(size < 1 ? near : far, x);
}
/// A series near 0, to 2^-29; else 1 - 2 / (e^2x + 1).
inline float $h_tanh(float x) {
    const float size = __builtin_elementwise_abs(x), z = x * x;
    float p = -0x1.9b306ap-8f;
    p = p * z + 0x1.593d12p-6f;
    p = p * z + -0x1.b9287ep-5f;
    p = p * z + 0x1.110d26p-3f;
    p = p * z + -0x1.55554ap-2f;
    const float twice = size + size, most = 20;  // beyond it, tanh is 1
    const $exponential e(twice > most ? most : twice);
    const float near = p * (z * size) + size, far = 1 - 2 / ((e.up + 1) * e.scale_up(1.0f) + 1);
    return __builtin_elementwise_copysign(size < 0.55f ? near : far, x);
}

/// log(1 + y) for y >= 0, with the rounding error of 1 + y; where x is large, log(2 x), from x / 2 and 4.
inline float $log_plus_1(float y, float x = 0) {
    const bool far = x >= 0x1p20f;
    const float u = 1 + y, one = 1, none = 0, two = 2, halved = x * 0.5f;
    const float large = y > 1 ? y : one, little = y > 1 ? one : y, lost = little - (u - large);
    $parts_of_logarithm of(far ? halved : u, far ? none : lost);
    of.e += far ? two : none;
    return of.natural();
}
inline float $h_acosh(float x) {
    const float t = x - 1, infinity = __builtin_inff(), undefined = __builtin_nanf("");
    const float value = $log_plus_1(t + __builtin_elementwise_sqrt(t * t + 2 * t), x);
    const float above = x < infinity ? value : x;
    return x >= 1 ? above : undefined;
}
inline float $h_asinh(float x) {
    const float size = __builtin_elementwise_abs(x), square = size * size, infinity = __builtin_inff();
    const float y = size + square / (1 + __builtin_elementwise_sqrt(1 + square)), value = $log_plus_1(y, size);
    return __builtin_elementwise_copysign(size < infinity ? value : size, x);
}
inline float $h_atanh(float x) {
    const float size = __builtin_elementwise_abs(x), infinity = __builtin_inff(), undefined = __builtin_nanf("");
    const float inside = $log_plus_1(2 * size / (1 - size)) * 0.5f, pole = size == 1 ? infinity : undefined;
    return __builtin_elementwise_copysign(size < 1 ? inside : pole, x);
}
