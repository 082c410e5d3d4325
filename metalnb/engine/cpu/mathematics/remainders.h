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
/// Multiples of y are taken away, and as y times 2^28 k, largest first, where there are that many. Each quotient has 28
/// bits, so that all products and differences are exact; being rounded, it may leave a rest below 0.
inline float $h_fmod(float x, float y) {
    const float size = __builtin_elementwise_abs(x), of = __builtin_elementwise_abs(y), infinity = __builtin_inff();
    const double by = of, inverse = 1 / by;
    double rest = size;
    if (__builtin_expect(!(rest * inverse < double(0x1p28L)), 0)) {
        double unit = by * double(0x1p252L), inverse_of_unit = inverse * double(0x1p-252L);
#pragma clang loop unroll(full)
        for (int k = 9; k > 0; --k) {
            rest -= __builtin_elementwise_rint(rest * inverse_of_unit) * unit;
            unit *= double(0x1p-28L);
            inverse_of_unit *= double(0x1p28L);
        }
    }
    rest -= __builtin_elementwise_rint(rest * inverse) * by;
    const double more = rest + by;
    const float value = float(rest < 0 ? more : rest);
    return __builtin_elementwise_copysign((of == infinity) & (size < infinity) ? size : value, x);
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
