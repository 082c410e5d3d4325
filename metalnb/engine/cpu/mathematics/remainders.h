// Functions of a float's exponent and bits: all are exact, or rounded once.
#pragma once
#include "numbers.h"

/// Rounded once, when the double becomes a float.
inline float $h_ldexp(float x, int k) {
    const int below = k > 300 ? 300 : k, held = below < -300 ? -300 : below;
    return float(double(x) * $of_bits(metal::ulong(held + 1023) << 52));
}
inline float $h_nextafter(float x, float y) {
    const metal::uint bits = $bits_of(x), outward = bits + 1, inward = bits - 1;
    const bool up = y > x;
    const metal::uint from_zero = up ? 1 : 0x80000001, beside = up == (x > 0) ? outward : inward;
    const float sum = x + y, next = $of_bits(x == 0 ? from_zero : beside), number = (x != x) | (y != y) ? sum : next;
    return x == y ? y : number;
}
/// x - n y, if that is a float.
inline float $subtract_multiple(float x, float n, float y) {
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_elementwise_fma(-n, y, x);
#else
    return float(double(x) - double(n) * double(y));
#endif
}
/// The remainder of one magnitude by another: subtracts multiples 2^28 k of the latter, largest first, while any fit.
/// Each quotient has 28 bits, so that all products and differences are exact; since it is rounded, the rest may be
/// negative.
inline float $large_remainder(float size, float of) {
    const double by = of, inverse = 1 / by;
    double rest = size, unit = by * double(0x1p252L), inverse_of_unit = inverse * double(0x1p-252L);
#pragma clang loop unroll(full)
    for (int k = 9; k > 0; --k) {
        rest -= __builtin_elementwise_rint(rest * inverse_of_unit) * unit;
        unit *= double(0x1p-28L);
        inverse_of_unit *= double(0x1p28L);
    }
    rest -= __builtin_elementwise_rint(rest * inverse) * by;
    const double more = rest + by;
    const float value = float(rest < 0 ? more : rest), infinity = __builtin_inff();
    return (of == infinity) & (size < infinity) ? size : value;
}
/// A quotient below 2^20 is accurate to a quarter, so the rounded quotient leaves a remainder smaller than y. It is a
/// float, since it is a multiple of the last place of x or y.
inline float $h_fmod(float x, float y) {
    const float size = __builtin_elementwise_abs(x), of = __builtin_elementwise_abs(y), infinity = __builtin_inff();
    const float quotient = size / of, n = __builtin_elementwise_rint(quotient);
    const float rest = $subtract_multiple(size, n, of), more = rest + of;
    float value = rest < 0 ? more : rest;
    const bool usual = (quotient < 0x1p20f) & (of < infinity);
    if (__builtin_expect(!usual, 0)) value = $large_remainder(size, of);
    return __builtin_elementwise_copysign(value, x);
}
/// x y + z, rounded once, for a processor without an instruction for it. The product is exact in double; the sum is
/// rounded to odd there, so that rounding it again to float is rounding once.
inline float $h_fma(float x, float y, float z) {
    const double product = double(x) * double(y), addend = z, sum = product + addend;
    const double rest = sum - product, lost = (product - (sum - rest)) + (addend - rest);
    const metal::ulong bits = $bits_of(sum), below = (lost > 0) == (sum > 0) ? bits : bits - 1;
    const double odd = $of_bits(below | 1);
    return float((lost > 0) | (lost < 0) ? odd : sum);
}
