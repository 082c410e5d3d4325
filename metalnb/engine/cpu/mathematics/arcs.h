// The inverses of sine, cosine and tangent, in float: a series in an argument between 0 and 1, added to an angle held
// as a float and its rounding error.
#pragma once
#include "numbers.h"

/// base + angle, or base - angle if `bits` has the sign bit; base is `quarters` times pi / 2, where quarters is 0, 1 or
/// 2.
inline float $add_to_quarters(float quarters, float angle, metal::uint bits) {
    return quarters * 0x1.921fb6p+0f + ($flip_sign(angle, bits) - quarters * 0x1.777a5cp-25f);
}
/// asin(s) for z = s^2 <= 0.5625^2, to 2^-28.
inline float $small_asin(float s, float z) {
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
    const float root = __builtin_elementwise_sqrt(z), arc = $small_asin(near ? size : root, z);
    const float far = $add_to_quarters(1, arc + arc, 0x80000000);
    return $flip_sign(near ? arc : far, $bits_of(x));
}
inline float $h_acos(float x) {
    const float size = __builtin_elementwise_abs(x);
    const bool near = size < 0.5625f;
    const float square = size * size, beyond = 0.5f - size * 0.5f, z = near ? square : beyond;
    const float root = __builtin_elementwise_sqrt(z), arc = $small_asin(near ? size : root, z), twice = arc + arc;
    const metal::uint positive = $bits_of(x), negative = ~positive;
    const float one = 1, two = 2, none = 0, quarters = x < 0 ? two : none;
    return $add_to_quarters(near ? one : quarters, near ? arc : twice, near ? negative : positive);
}

/// atan(q) for 0 <= q <= 1, to 2^-28.
inline float $small_atan(float q) {
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
    const float inverse = 1 / size, arc = $small_atan(steep ? inverse : size);
    const float rest = $add_to_quarters(1, arc, 0x80000000);
    return $flip_sign(steep ? rest : arc, $bits_of(x));
}
inline float $h_atan2(float y, float x) {
    const float across = __builtin_elementwise_abs(x), up = __builtin_elementwise_abs(y);
    const bool steep = up > across;
    const float shorter = steep ? across : up, longer = steep ? up : across;
    const float quotient = shorter / longer, one = 1, two = 2, none = 0;
    const float slope = shorter == longer ? one : quotient, arc = $small_atan(longer == 0 ? shorter : slope);
    const metal::uint sign = $bits_of(x), opposite = ~sign;
    const float half_turn = sign >> 31 ? two : none;
    return $flip_sign($add_to_quarters(steep ? one : half_turn, arc, steep ? opposite : sign), $bits_of(y));
}
