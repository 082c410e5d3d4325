// Exponentials, logarithms and powers. They are evaluated in double, whose digits to spare leave little more than the last
// rounding.
#pragma once
#include "numbers.h"

/// A power of 2 is 0 in float, or infinite, for what lies beyond.
inline double $held(double x) {
    const double least = -200, most = 200, below = x > most ? most : x;
    return below < least ? least : below;
}
/// 2 to the x, to 2^-34: 2^n times a polynomial of x - n.
inline float $power_of_2(double x) {
    const $nearest_wide n($held(x));
    const double r = $held(x) - n.value();
    double p = double(0x1.fe16c431faf55p-17L);
    p = p * r + double(0x1.446ad78d1ae44p-13L);
    p = p * r + double(0x1.5d8a72f768e05p-10L);
    p = p * r + double(0x1.3b29db5b0060cp-7L);
    p = p * r + double(0x1.c6b08aaae9cb5p-5L);
    p = p * r + double(0x1.ebfbe0a5d21f8p-3L);
    p = p * r + double(0x1.62e42ff1194f6p-1L);
    p = p * r + double(0x1.ffffffffab0eap-1L);
    return float(n.raised(p));
}
/// b to the x, to 2^-34, where log2_of_b and ln_of_b are b's logarithms: 2^n times e^(x ln(b) - n ln(2)).
inline float $power(float x, double log2_of_b, double ln_of_b) {
    const double wide = x, power = wide * log2_of_b, held = $held(power);
    const $nearest_wide n(held);
    const bool beyond = (power < held) | (power > held);
    const double rest = wide * ln_of_b - n.value() * double(0x1.62e42fefa39efp-1L), none = 0, r = beyond ? none : rest;
    double p = double(0x1.9eb473dcfa350p-13L);
    p = p * r + double(0x1.6da7cf1848bcdp-10L);
    p = p * r + double(0x1.111301d690a25p-7L);
    p = p * r + double(0x1.555464b17f638p-5L);
    p = p * r + double(0x1.55555337678c4p-3L);
    p = p * r + double(0x1.0000005bf08c8p-1L);
    p = p * r + double(0x1.0000000113eb7p+0L);
    p = p * r + double(0x1.ffffffffa9140p-1L);
    return float(n.raised(p));
}

/// The logarithm of a positive x = 2^e m, with m from sqrt(1/2) to sqrt(2): e times that of 2, and 2 atanh((m-1)/(m+1)),
/// to 2^-37. `of_e` is the logarithm of e.
inline double $wide_logarithm(double x, double of_2, double of_e) {
    const double root = double(0x1.6a09e667f3bcdp-1L), twice = of_e + of_e;
    const metal::ulong moved = $bits_of(x) + ($bits_of(double(1.0L)) - $bits_of(root));
    const double e = $of_bits(moved >> 52 | 0x4330000000000000ul) - double(0x1p52L + 1023);
    const double m = $of_bits((moved & 0xffffffffffffful) + $bits_of(root));
    const double near = double(1 / float(m + 1));  // a division of floats, and a step of Newton's, take half as long
    const double s = (m - 1) * (near * (2 - (m + 1) * near)), z = s * s;
    double p = double(0x1.e31062297148bp-4L) * twice;
    p = p * z + double(0x1.24383649dfd5fp-3L) * twice;
    p = p * z + double(0x1.999a7cd552568p-3L) * twice;
    p = p * z + double(0x1.555554fc7aacap-2L) * twice;
    p = p * z + twice;
    return s * p + e * of_2;
}
inline float $logarithm(float x, double of_2, double of_e) {
    const float value = float($wide_logarithm(x, of_2, of_e));
    const float infinity = __builtin_inff(), pole = -infinity, undefined = __builtin_nanf("");
    const float positive = x < infinity ? value : x, other = x == 0 ? pole : undefined;
    return x > 0 ? positive : other;
}

inline float $h_exp(float x) { return $power(x, double(0x1.71547652b82fep+0L), double(1.0L)); }
inline float $h_exp2(float x) { return $power_of_2(x); }
inline float $h_exp10(float x) { return $power(x, double(0x1.a934f0979a371p+1L), double(0x1.26bb1bbb55516p+1L)); }
inline float $h_log(float x) { return $logarithm(x, double(0x1.62e42fefa39efp-1L), double(1.0L)); }
inline float $h_log2(float x) { return $logarithm(x, double(1.0L), double(0x1.71547652b82fep+0L)); }
inline float $h_log10(float x) { return $logarithm(x, double(0x1.34413509f79ffp-2L), double(0x1.bcb7b1526e50ep-2L)); }

/// x^y where |x|^y is `value`, but for an x or y of 0, infinity or NaN: C99, F.9.4.4.
inline float $unusual_power(float x, float y, float value) {
    const metal::uint negative = $bits_of(x) & 0x80000000;
    const float size = __builtin_elementwise_abs(x), halved = y * 0.5f, sum = x + y, one = 1;
    const float infinity = __builtin_inff(), zero = 0, undefined = __builtin_nanf("");
    const bool whole = __builtin_elementwise_rint(y) == y, even = __builtin_elementwise_rint(halved) == halved;
    const bool extreme = ($bits_of(size) - 1) >= 0x7f7fffff;  // 0 or infinity
    const float limit = (size < 1) == (y < 0) ? infinity : zero, plain = size == 1 ? one : value;
    const float power = $signed_by(extreme ? limit : plain, whole & !even ? negative : 0);
    const float real = (negative != 0) & !whole & !extreme ? undefined : power;
    const float number = (x != x) | (y != y) ? sum : real;
    return (x == 1) | (y == 0) ? one : number;
}
inline float $h_pow(float x, float y) {
    const float size = __builtin_elementwise_abs(x);
    float value = $power_of_2(double(y) * $wide_logarithm(size, double(1.0L), double(0x1.71547652b82fep+0L)));
    const metal::uint infinity = 0x7f800000;
    const bool usual = ($bits_of(x) - 1 < infinity - 1) & (($bits_of(y) & 0x7fffffff) < infinity);
    if (__builtin_expect(!usual, 0)) value = $unusual_power(x, y, value);
    return value;
}
/// x^y for x >= 0 alone (MSL 6.5), of |x|^y.
inline float $powr_of(float x, float y, float power) {
    const float undefined = __builtin_nanf(""), size = __builtin_elementwise_abs(x);
    const bool extreme = ($bits_of(size) - 1) >= 0x7f7fffff;  // 0 or infinity
    const bool endless = ($bits_of(y) & 0x7fffffff) == 0x7f800000;
    const bool wrong = (x < 0) | (extreme & (y == 0)) | ((x == 1) & endless) | (x != x) | (y != y);
    return wrong ? undefined : power;
}
inline float $h_powr(float x, float y) { return $powr_of(x, y, $h_pow(__builtin_elementwise_abs(x), y)); }
