// Hyperbolic functions and their inverses; in double but for cosh and tanh, which lose little in float.
#pragma once
#include "logarithms.h"

/// a = n ln(2) + r, of cosh(r) and sinh(r), |r| <= ln(2) / 2, to 2^-34.
struct $hyperbolic {
    double cosine, sine;
    $nearest_wide n;
    inline explicit $hyperbolic(double a) : n(a * double(0x1.71547652b82fep+0L)) {
        const double r = a - n.value() * double(0x1.62e42fefa39efp-1L), z = r * r;
        cosine = ((double(0x1.6da22fd8e62f7p-10L) * z + double(0x1.5554732666713p-5L)) * z +
            double(0x1.0000004955528p-1L)) * z + double(1.0L);
        sine = ((double(0x1.a17a3447b135ap-13L) * z + double(0x1.1110ac0450482p-7L)) * z +
            double(0x1.5555557642e1ap-3L)) * z * r + r;
    }
};
inline float $h_sinh(float x) {
    const float size = __builtin_elementwise_abs(x);
    const float most = 90;  // float has infinity there
    const $hyperbolic h(size > most ? most : size);
    const double up = h.n.raised(double(0.5L)), down = h.n.lowered(double(0.5L));
    return __builtin_elementwise_copysign(float(h.cosine * (up - down) + h.sine * (up + down)), x);
}
/// e^a = 2^n e^r and e^-a = 2^-n e^-r, with what e^r and e^-r are beyond 1.
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
    /// 2^n times a power of two.
    inline float raised(float x) const { return $of_bits($bits_of(x) + (n.bits() << 23)); }
};
inline float $h_cosh(float x) {
    const float size = __builtin_elementwise_abs(x);
    const float most = 89.5f;  // float has infinity there
    const $exponential e(size > most ? most : size);
    const float shifted = e.n.shifted, limit = 0x1.8p23f + 60;  // where down is beyond the digits of up
    const float lowered = $of_bits($bits_of(0.25f) - ($bits_of(shifted > limit ? limit : shifted) << 23));
    return ((e.up + 1) * e.raised(0.25f) + (e.down + 1) * lowered) * 2;
}
/// A series near 0, to 2^-29; else 1 - 2 / (e^2x + 1).
inline float $h_tanh(float x) {
    const float size = __builtin_elementwise_abs(x), z = x * x;
    float p = -0x1.9b306ap-8f;
    p = p * z + 0x1.593d12p-6f;
    p = p * z + -0x1.b9287ep-5f;
    p = p * z + 0x1.110d26p-3f;
    p = p * z + -0x1.55554ap-2f;
    const float twice = size + size, most = 20;  // 1 there
    const $exponential e(twice > most ? most : twice);
    const float near = p * (z * size) + size, far = 1 - 2 / ((e.up + 1) * e.raised(1.0f) + 1);
    return __builtin_elementwise_copysign(size < 0.55f ? near : far, x);
}

inline double $natural_logarithm(double x) {
    return $wide_logarithm(x, double(0x1.62e42fefa39efp-1L), double(1.0L));
}
inline float $h_acosh(float x) {
    const double wide = x;
    const float value = float($natural_logarithm(wide + __builtin_elementwise_sqrt(wide * wide - 1)));
    const float infinity = __builtin_inff(), undefined = __builtin_nanf(""), above = x < infinity ? value : x;
    return x >= 1 ? above : undefined;
}
// Near 0, where the argument of the logarithm has lost what counts: the first terms of the series.
inline float $h_asinh(float x) {
    const float size = __builtin_elementwise_abs(x);
    const double wide = size, square = wide * wide;
    const float far = float($natural_logarithm(wide + __builtin_elementwise_sqrt(square + 1)));
    const float near = float(wide - square * wide * double(1.0L / 6));
    const float infinity = __builtin_inff(), finite = size < 0x1p-10f ? near : far;
    return __builtin_elementwise_copysign(size < infinity ? finite : size, x);
}
inline float $h_atanh(float x) {
    const float size = __builtin_elementwise_abs(x);
    const double wide = size, square = wide * wide;
    const float far = float($natural_logarithm((1 + wide) / (1 - wide)) * double(0.5L));
    const float near = float(wide + square * wide * (double(1.0L / 3) + square * double(1.0L / 5)));
    const float infinity = __builtin_inff(), undefined = __builtin_nanf("");
    const float inside = size < 0x1p-8f ? near : far, pole = size == 1 ? infinity : undefined;
    return __builtin_elementwise_copysign(size < 1 ? inside : pole, x);
}
