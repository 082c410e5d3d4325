// Sines, cosines and tangents: an angle is split into the nearest multiple of a half or quarter circle and a rest.
#pragma once
#include "numbers.h"

/// rest + n pi / 2; `quarters` is n in its last two bits.
struct $angle {
    float rest;
    metal::uint quarters;
};
/// x - n pi / 2, for n up to 2^12. pi / 2 is split into parts of 12 bits, so that their products with n are exact.
/// The first two differences are exact too, and so is the third if the remainder is small.
inline float $subtract_quarters(float x, float n) {
    return x - n * 0x1.92p+0f - n * 0x1.fb4p-12f - n * 0x1.444p-24f - n * 0x1.68c234p-39f;
}
/// An angle in circles, without the complete circles. It is multiplied by 1 / (2 pi) in parts of 28 bits, whose
/// products are exact, and complete circles are dropped after each part; the rest of the product, far below a quarter,
/// is added last.
struct $circles {
    double high, rest;
    inline explicit $circles(float size) {
        const double x = size;
        high = x * double(0x1.45f306cp-3L);
        high -= __builtin_elementwise_rint(high);
        high += x * double(0x1.c9c882ap-31L);
        high -= __builtin_elementwise_rint(high);
        high += x * double(0x1.4fe13a8p-61L);
        high -= __builtin_elementwise_rint(high);
        high += x * double(0x1.f47d4dp-88L);
        high -= __builtin_elementwise_rint(high);
        high += x * double(0x1.bb81b6cp-115L);
        high -= __builtin_elementwise_rint(high);
        rest = x * double(0x1.4acc9e21c8210p-145L);
    }
    inline float minus(double circles) const {
        return float((high - circles + rest) * double(0x1.921fb54442d18p+2L));
    }
};

/// The sine or cosine of |x|, from the distance to the nearest multiple of pi, or to the nearest odd multiple of
/// pi / 2, |r| <= pi / 2, to 2^-27; the last bit of `odd` flips its sign.
inline float $sine_or_cosine(float size, bool cosine) {
    const float shift = cosine ? 0.5f : 0.0f;
    const $nearest halves(size * 0x1.45f306p-2f - shift);
    float r = $subtract_quarters(size, (halves.value() + shift) * 2);
    metal::uint odd = halves.bits() + cosine;
    if (__builtin_expect(!(size < 6400), 0)) {
        const $circles circles(size);
        const $nearest_wide beyond(circles.high * 2 - shift);
        r = circles.minus((beyond.value() + shift) * double(0.5L));
        odd = metal::uint(beyond.bits()) + cosine;
    }
    const float z = r * r;
    float p = 0x1.5da7b4p-19f;
    p = p * z + -0x1.9f6f1ep-13f;
    p = p * z + 0x1.110ed4p-7f;
    p = p * z + -0x1.55554cp-3f;
    return $flip_sign(p * (z * r) + r, odd << 31);
}
inline float $h_sin(float x) {
    return $flip_sign($sine_or_cosine(__builtin_elementwise_abs(x), false), $bits_of(x));
}
inline float $h_cos(float x) { return $sine_or_cosine(__builtin_elementwise_abs(x), true); }

inline $angle $angle_of(float x) {
    const float size = __builtin_elementwise_abs(x);
    const $nearest quarters(size * 0x1.45f306p-1f);
    $angle angle = {$subtract_quarters(size, quarters.value()), quarters.bits()};
    if (__builtin_expect(!(size < 6400), 0)) {
        const $circles circles(size);
        const $nearest_wide beyond(circles.high * 4);
        angle = {circles.minus(beyond.value() * double(0.25L)), metal::uint(beyond.bits())};
    }
    return angle;
}
/// The quotient of two polynomials, to 2^-35.
inline float $h_tan(float x) {
    const $angle angle = $angle_of(x);
    const float r = angle.rest, z = r * r;
    const float sine = (0x1.19df54p-10f * z + -0x1.c8249p-4f) * (z * r) + r;
    const float cosine = (0x1.05b7e0p-6f * z + -0x1.c75e7ap-2f) * z + 1;
    const bool odd = angle.quarters & 1;
    return $flip_sign((odd ? cosine : sine) / (odd ? sine : cosine), angle.quarters << 31 ^ $bits_of(x));
}

/// sin(r) for |r| <= pi / 2, to 2^-35.
inline double $sine(double r) {
    const double z = r * r;
    double p = double(-0x1.99c7cec657607p-26L);
    p = p * z + double(0x1.71696d169eecdp-19L);
    p = p * z + double(-0x1.a017a302db5edp-13L);
    p = p * z + double(0x1.11110ba4fe6abp-7L);
    p = p * z + double(-0x1.5555554502099p-3L);
    return r * z * p + r;
}
// |x| = n + r with |r| <= 1/2, exactly; n is odd if its half is not an integer.
inline metal::uint $sign_of_half_circles(float n) {
    const float halved = n * 0.5f;
    return halved == __builtin_elementwise_floor(halved) ? 0 : 0x80000000;
}
inline float $h_sinpi(float x) {
    const float size = __builtin_elementwise_abs(x), n = __builtin_elementwise_rint(size), r = size - n;
    const float value = float($sine(double(r) * double(0x1.921fb54442d18p+1L)));
    return $flip_sign(value, (r == 0 ? 0 : $sign_of_half_circles(n)) ^ $bits_of(x));
}
inline float $h_cospi(float x) {
    const float size = __builtin_elementwise_abs(x), n = __builtin_elementwise_rint(size);
    const double r = double(0.5L) - double(__builtin_elementwise_abs(size - n));
    const float value = float($sine(r * double(0x1.921fb54442d18p+1L)));
    return $flip_sign(value, r == 0 ? 0 : $sign_of_half_circles(n));
}
inline float $h_tanpi(float x) { return $h_sinpi(x) / $h_cospi(x); }
