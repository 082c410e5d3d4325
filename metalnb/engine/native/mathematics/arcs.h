// The inverses of sine, cosine and tangent, in float: a series of one argument between 0 and 1, from an angle that has a
// float and what it lacks.
#pragma once
#include "numbers.h"

/// base + angle, or base - angle where `bits` has a sign; base is `quarters` times pi / 2, of 0, 1 and 2.
inline float $beside(float quarters, float angle, metal::uint bits) {
    return quarters * 0x1.921fb6p+0f + ($signed_by(angle, bits) - quarters * 0x1.777a5cp-25f);
}
/// asin(s) for z = s^2 <= 0.5625^2, to 2^-28.
inline float $short_arc(float s, float z) {
    float p = 0x1.8533c6p-5f;
    p = p * z + 0x1.b8278fp-8f;
    p = p * z + 0x1.16b2eap-5f;
    p = p * z + 0x1.6a55d4p-5f;
    p = p * z + 0x1.33495ap-4f;
    p = p * z + 0x1.555526p-3f;
    return s * z * p + s;
}
inline float $h_asin(float x) {
    const float size = __builtin_elementwise_abs(x);
    const bool near = size < 0.5625f;
    const float z = near ? size * size : 0.5f - size * 0.5f;
    const float arc = $short_arc(near ? size : __builtin_elementwise_sqrt(z), z);
    return $signed_by(near ? arc : $beside(1, arc + arc, 0x80000000), $bits_of(x));
}
inline float $h_acos(float x) {
    const float size = __builtin_elementwise_abs(x);
    const bool near = size < 0.5625f;
    const float z = near ? size * size : 0.5f - size * 0.5f;
    const float arc = $short_arc(near ? size : __builtin_elementwise_sqrt(z), z);
    const metal::uint negative = $bits_of(x);
    return $beside(near ? 1 : x < 0 ? 2 : 0, near ? arc : arc + arc, near ? ~negative : negative);
}

/// atan(q) for 0 <= q <= 1, to 2^-28.
inline float $arc_of_slope(float q) {
    const float z = q * q;
    float p = -0x1.d62ed17092425p-10f;
    p = p * z + 0x1.65a582f9a73c3p-7f;
    p = p * z + -0x1.fed058147ddabp-6f;
    p = p * z + 0x1.dac93c13bc13ap-5f;
    p = p * z + -0x1.58345454cd99dp-4f;
    p = p * z + 0x1.c099e54d45c2dp-4f;
    p = p * z + -0x1.2421b27015f4dp-3f;
    p = p * z + 0x1.9991fce38b44dp-3f;
    p = p * z + -0x1.55553e5995360p-2f;
    return q * z * p + q;
}
inline float $h_atan(float x) {
    const float size = __builtin_elementwise_abs(x);
    const bool steep = size > 1;
    const float arc = $arc_of_slope(steep ? 1 / size : size);
    return $signed_by(steep ? $beside(1, arc, 0x80000000) : arc, $bits_of(x));
}
inline float $h_atan2(float y, float x) {
    const float across = __builtin_elementwise_abs(x), up = __builtin_elementwise_abs(y);
    const bool steep = up > across;
    const float shorter = steep ? across : up, longer = steep ? up : across;
    const float slope = longer == 0 ? shorter : shorter == longer ? 1.0f : shorter / longer;  // 0 / 0, infinity / infinity
    const float arc = $arc_of_slope(slope);
    const metal::uint left = $bits_of(x);
    const float angle = steep ? $beside(1, arc, ~left) : $beside(left >> 31 ? 2 : 0, arc, left);
    return $signed_by(angle, $bits_of(y));
}
