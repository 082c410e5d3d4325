// Sines, cosines and tangents: of an angle's distance from the nearest quarter of a circle, and the number of quarters.
#pragma once
#include "numbers.h"

/// rest + n pi / 2; `quarters` is n in its last two bits.
struct $angle {
    float rest;
    metal::uint quarters;
};
/// An angle of up to 2^12 quarters. pi / 2 is in parts of 12 bits, so that their products by n are exact; so are the
/// differences from the first two, and the third where what is left is small.
inline $angle $near_angle(float x) {
    const $nearest quarters(x * 0x1.45f306p-1f);
    const float n = quarters.value();
    return {x - n * 0x1.92p+0f - n * 0x1.fb4p-12f - n * 0x1.444p-24f - n * 0x1.68c234p-39f, quarters.bits()};
}
/// Any angle. It is multiplied by 1 / (2 pi) in parts of 28 bits, whose products are exact, and loses whole circles after
/// each. The last part is far below a quarter: it is added when these are gone.
inline $angle $far_angle(float size) {
    const double x = size;
    double circles = x * double(0x1.45f306cp-3L);
    circles -= __builtin_elementwise_rint(circles);
    circles += x * double(0x1.c9c882ap-31L);
    circles -= __builtin_elementwise_rint(circles);
    circles += x * double(0x1.4fe13a8p-61L);
    circles -= __builtin_elementwise_rint(circles);
    circles += x * double(0x1.f47d4dp-88L);
    circles -= __builtin_elementwise_rint(circles);
    circles += x * double(0x1.bb81b6cp-115L);
    circles -= __builtin_elementwise_rint(circles);
    const $nearest_wide quarters(circles * 4);
    const double rest = (circles - quarters.value() * double(0.25L)) + x * double(0x1.4acc9e21c8210p-145L);
    return {float(rest * double(0x1.921fb54442d18p+2L)), metal::uint(quarters.bits())};
}
inline $angle $angle_of(float x) {
    const float size = __builtin_elementwise_abs(x);
    $angle angle = $near_angle(size);
    if (__builtin_expect(!(size < 6400), 0)) angle = $far_angle(size);
    return angle;
}

/// The sine of an angle: to 2^-27 of the rest, |rest| <= pi / 4, or its cosine, to 2^-32.
inline float $sine_of(float rest, metal::uint quarters) {
    const float z = rest * rest;
    const float sine = ((-0x1.990cdap-13f * z + 0x1.11069ap-7f) * z + -0x1.555544p-3f) * (rest * z) + rest;
    const float cosine = ((0x1.99b936p-16f * z + -0x1.6c0b84p-10f) * z + 0x1.55554ap-5f) * (z * z) + (1 - z * 0.5f);
    return $signed_by(quarters & 1 ? cosine : sine, quarters << 30);
}
inline float $h_sin(float x) {
    const $angle angle = $angle_of(x);
    return $signed_by($sine_of(angle.rest, angle.quarters), $bits_of(x));
}
inline float $h_cos(float x) {
    const $angle angle = $angle_of(x);
    return $sine_of(angle.rest, angle.quarters + 1);
}
/// One polynomial over the other, together to 2^-35.
inline float $h_tan(float x) {
    const $angle angle = $angle_of(x);
    const float r = angle.rest, z = r * r;
    const float sine = (0x1.19df54p-10f * z + -0x1.c8249p-4f) * (z * r) + r;
    const float cosine = (0x1.05b7e0p-6f * z + -0x1.c75e7ap-2f) * z + 1;
    const bool odd = angle.quarters & 1;
    return $signed_by((odd ? cosine : sine) / (odd ? sine : cosine), angle.quarters << 31 ^ $bits_of(x));
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
// Of |x| = n + r with |r| <= 1/2, exactly; n is odd where its half is not whole.
inline metal::uint $sign_of_half_circles(float n) {
    const float halved = n * 0.5f;
    return halved == __builtin_elementwise_floor(halved) ? 0 : 0x80000000;
}
inline float $h_sinpi(float x) {
    const float size = __builtin_elementwise_abs(x), n = __builtin_elementwise_rint(size), r = size - n;
    const float value = float($sine(double(r) * double(0x1.921fb54442d18p+1L)));
    return $signed_by(value, (r == 0 ? 0 : $sign_of_half_circles(n)) ^ $bits_of(x));
}
inline float $h_cospi(float x) {
    const float size = __builtin_elementwise_abs(x), n = __builtin_elementwise_rint(size);
    const double r = double(0.5L) - double(__builtin_elementwise_abs(size - n));
    const float value = float($sine(r * double(0x1.921fb54442d18p+1L)));
    return $signed_by(value, r == 0 ? 0 : $sign_of_half_circles(n));
}
inline float $h_tanpi(float x) { return $h_sinpi(x) / $h_cospi(x); }
