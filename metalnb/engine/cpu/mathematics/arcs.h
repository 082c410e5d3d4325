// The inverses of sine, cosine and tangent, in float: a series in an argument between 0 and 1, added to an angle held
// as a float and its rounding error.
#pragma once
#include "numbers.h"

/// base + angle, or base - angle if `bits` has the sign bit; base is `quarters` times pi / 2, where quarters is 0, 1 or
/// 2.
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
    const float square = size * size, beyond = 0.5f - size * 0.5f, z = near ? square : beyond;
    const float root = __builtin_elementwise_sqrt(z), arc = $short_arc(near ? size : root, z);
    const float far = $beside(1, arc + arc, 0x80000000);
    return $signed_by(near ? arc : far, $bits_of(x));
}
inline float $h_acos(float x) {
    const float size = __builtin_elementwise_abs(x);
    const bool near = size < 0.5625f;
    const float square = size * size, beyond = 0.5f - size * 0.5f, z = near ? square : beyond;
    const float root = __builtin_elementwise_sqrt(z), arc = $short_arc(near ? size : root, z), twice = arc + arc;
    const metal::uint positive = $bits_of(x), negative = ~positive;
    const float one = 1, two = 2, none = 0, quarters = x < 0 ? two : none;
    return $beside(near ? one : quarters, near ? arc : twice, near ? negative : positive);
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
    const float inverse = 1 / size, arc = $arc_of_slope(steep ? inverse : size), rest = $beside(1, arc, 0x80000000);
    return $signed_by(steep ? rest : arc, $bits_of(x));
}
inline float $h_atan2(float y, float x) {
    const float across = __builtin_elementwise_abs(x), up = __builtin_elementwise_abs(y);
    const bool steep = up > across;
    const float shorter = steep ? across : up, longer = steep ? up : across;
    const float quotient = shorter / longer, one = 1, two = 2, none = 0;
    const float slope = shorter == longer ? one : quotient, arc = $arc_of_slope(longer == 0 ? shorter : slope);
    const metal::uint left = $bits_of(x), right = ~left;
    const float half_turn = left >> 31 ? two : none;
    return $signed_by($beside(steep ? one : half_turn, arc, steep ? right : left), $bits_of(y));
}
