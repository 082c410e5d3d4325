// Exponentials and logarithms, in float, and powers, in double, whose extra digits leave little error beyond the final
// rounding.
#pragma once
#include "numbers.h"

/// Beyond these exponents, a power of 2 is 0 or infinite in float.
inline double $clamp_exponent(double x) {
    const double least = -200, most = 200, below = x > most ? most : x;
    return below < least ? least : below;
}
/// 2^(n + r), to 2^-34, for n between -1000 and 1000: 2^n times a polynomial of r.
inline float $power_of_2(const $nearest_wide n, double r) {
    double p = double(0x1.fe16c431faf55p-17L);
    p = p * r + double(0x1.446ad78d1ae44p-13L);
    p = p * r + double(0x1.5d8a72f768e05p-10L);
    p = p * r + double(0x1.3b29db5b0060cp-7L);
    p = p * r + double(0x1.c6b08aaae9cb5p-5L);
    p = p * r + double(0x1.ebfbe0a5d21f8p-3L);
    p = p * r + double(0x1.62e42ff1194f6p-1L);
    p = p * r + double(0x1.ffffffffab0eap-1L);
    return float(n.scale_up(p));
}
/// 2^n p for -150 <= n <= 128 and p near 1, rounded once: 2^(n + 64) p, or 2^(n - 64) p, is a normal number.
inline float $scale_by_power(float p, $nearest n, bool small) {
#ifdef __AVX512F__  // a processor with an instruction for this
    return __builtin_ldexpf(p, int(n.bits() - $bits_of(0x1.8p23f)));
#endif
    const metal::uint up = (127 + 64) << 23, down = (127 - 64) << 23, one = small ? up : down;
    const float least = 0x1p-64f, most = 0x1p64f, rest = small ? least : most;
    return p * $of_bits((n.bits() << 23) + one) * rest;
}
/// x, clamped to the exponents whose powers a float holds. NaN stays.
inline float $clamp_to(float x, float least, float most) {
    const float below = x > most ? most : x;
    return below < least ? least : below;
}
/// The logarithm of 1 + f, from sqrt(1/2) to sqrt(2): 2 atanh(f / (f + 2)), to 2^-37. `near` is 1 / (f + 2), as a
/// float: a float division and a Newton step take half as long. `twice` is twice the logarithm of e.
inline double $wide_series(double f, float near, double twice) {
    const double divisor = f + 2, half_way = near, s = f * (half_way * (2 - divisor * half_way)), z = s * s;
    double p = double(0x1.e31062297148bp-4L) * twice;
    p = p * z + double(0x1.24383649dfd5fp-3L) * twice;
    p = p * z + double(0x1.999a7cd552568p-3L) * twice;
    p = p * z + double(0x1.555554fc7aacap-2L) * twice;
    p = p * z + twice;
    return s * p;
}
/// The logarithm of a positive x = 2^e m, with m from sqrt(1/2) to sqrt(2): e times that of 2, plus that of m. `of_e`
/// is the logarithm of e.
inline double $wide_logarithm(double x, double of_2, double of_e) {
    const double root = double(0x1.6a09e667f3bcdp-1L), twice = of_e + of_e;
    const metal::ulong shifted_bits = $bits_of(x) + ($bits_of(double(1.0L)) - $bits_of(root));
    const double e = $of_bits(shifted_bits >> 52 | 0x4330000000000000ul) - double(0x1p52L + 1023);
    const double m = $of_bits((shifted_bits & 0xffffffffffffful) + $bits_of(root));
    return $wide_series(m - 1, 1 / float(m + 1), twice) + e * of_2;
}
/// x = 2^e (1 + f) with 1 + f from sqrt(1/2) to sqrt(2), for x > 0, and log(1 + f) = f + rest, to 2^-30.
struct $parts_of_logarithm {
    float e, f, rest;
    inline explicit $parts_of_logarithm(float x) {
        const bool denormal = x < 0x1p-126f;
        const float raised = x * 0x1p23f, below = -150, above = -127;
        split(denormal ? raised : x, denormal ? below : above);
        series();
    }
    /// The logarithm of x + lost, for a normal x.
    inline $parts_of_logarithm(float x, float lost) {
        f = lost * $of_bits(0x7f000000 - (split(x, -127) & 0x7f800000)) + f;
        series();
    }
    inline metal::uint split(float x, float bias) {
        const metal::uint root = $bits_of(0x1.6a09e6p-1f), shifted_bits = $bits_of(x) + (0x3f800000 - root);
        e = float(int(shifted_bits >> 23)) + bias;
        f = $of_bits((shifted_bits & 0x7fffff) + root) - 1;
        return shifted_bits;
    }
    inline void series() {
        float p = 0x1.14573ep-4f;
        p = p * f + -0x1.de3bf8p-4f;
        p = p * f + 0x1.e6f08cp-4f;
        p = p * f + -0x1.fc220ep-4f;
        p = p * f + 0x1.233766p-3f;
        p = p * f + -0x1.555c4ep-3f;
        p = p * f + 0x1.99a4b6p-3f;
        p = p * f + -0x1.000006p-2f;
        p = p * f + 0x1.555548p-2f;
        const float square = f * f;
        rest = square * f * p - square * 0.5f;
    }
    /// log(1 + f) times a number in two parts, the higher one with 13 bits: its product with 11 bits of f is exact.
    inline float times(float high, float low, float more) const {
        const float most = $of_bits($bits_of(f) & 0xffffe000);
        return most * high + (rest * (high + low) + ((f - most) * high + (f * low + more)));
    }
    inline float natural() const { return e * 0x1.62e4p-1f + (f + (rest + e * 0x1.7f7d1cp-20f)); }
};
/// A logarithm's value, except for 0, infinity, NaN and negative numbers.
inline float $apply_domain(float x, float value) {
    const float infinity = __builtin_inff(), pole = -infinity, undefined = __builtin_nanf("");
    const float positive = x < infinity ? value : x, other = x == 0 ? pole : undefined;
    return x > 0 ? positive : other;
}
inline float $h_log(float x) { return $apply_domain(x, $parts_of_logarithm(x).natural()); }
inline float $h_log2(float x) {
    const $parts_of_logarithm of(x);
    const float square = of.f * of.f, lost = of.f * of.f - square;  // 0 where nothing is fused
    return $apply_domain(x, of.e + of.times(0x1.715p+0f, 0x1.1d94aep-14f, lost * -0x1.715476p-1f));
}
inline float $h_log10(float x) {
    const $parts_of_logarithm of(x);
    return $apply_domain(x, of.e * 0x1.344p-2f + of.times(0x1.bcbp-2f, 0x1.ec549cp-16f, of.e * 0x1.3509f8p-18f));
}

/// x = n ln(2) + r, and e^r to 2^-28; r is kept in two parts, since its rounding would otherwise be a quarter of an
/// ulp.
inline float $h_exp(float x) {
    const float clamped = $clamp_to(x, -104, 89);
    const $nearest n(clamped * 0x1.715476p+0f);
    const float high = clamped - n.value() * 0x1.62e4p-1f, low = n.value() * 0x1.7f7d1cp-20f, r = high - low;
    float p = 0x1.6a234ep-10f;
    p = p * r + 0x1.123a6cp-7f;
    p = p * r + 0x1.5558f4p-5f;
    p = p * r + 0x1.555490p-3f;
    p = p * r + 0x1.fffffcp-2f;
    return $scale_by_power(p * (r * r) - low + high + 1, n, x < 0);
}
/// x = n + r, and 2^r to 2^-29.
inline float $h_exp2(float x) {
    const float clamped = $clamp_to(x, -150, 128);
    const $nearest n(clamped);
    const float r = clamped - n.value();
    float p = 0x1.41fbbap-13f;
    p = p * r + 0x1.5f3e54p-10f;
    p = p * r + 0x1.3b2d4cp-7f;
    p = p * r + 0x1.c6aee8p-5f;
    p = p * r + 0x1.ebfbdcp-3f;
    p = p * r + 0x1.62e43p-1f;
    return $scale_by_power(p * r + 1, n, x < 0);
}
/// x = n log10(2) + r, and 10^r to 2^-29.
inline float $h_exp10(float x) {
    const float clamped = $clamp_to(x, -45.2f, 38.6f);
    const $nearest n(clamped * 0x1.a934fp+1f);
    const float r = clamped - n.value() * 0x1.344p-2f - n.value() * 0x1.3509f8p-18f;
    float p = 0x1.a68b3cp-3f;
    p = p * r + 0x1.158502p-1f;
    p = p * r + 0x1.2bd9d8p+0f;
    p = p * r + 0x1.046f68p+1f;
    p = p * r + 0x1.53524ap+1f;
    p = p * r + 0x1.26bb1cp+1f;
    return $scale_by_power(p * r + 1, n, x < 0);
}

/// x^y, given |x|^y as `value` unless x or y is 0, infinity or NaN: C99, F.9.4.4.
inline float $special_power(float x, float y, float value) {
    const metal::uint negative = $bits_of(x) & 0x80000000;
    const float size = __builtin_elementwise_abs(x), halved = y * 0.5f, sum = x + y, one = 1;
    const float infinity = __builtin_inff(), zero = 0, undefined = __builtin_nanf("");
    const bool is_integer = __builtin_elementwise_rint(y) == y, even = __builtin_elementwise_rint(halved) == halved;
    const bool extreme = ($bits_of(size) - 1) >= 0x7f7fffff;  // 0 or infinity
    const float limit = (size < 1) == (y < 0) ? infinity : zero, plain = size == 1 ? one : value;
    const float power = $flip_sign(extreme ? limit : plain, is_integer & !even ? negative : 0);
    const float real = (negative != 0) & !is_integer & !extreme ? undefined : power;
    const float number = (x != x) | (y != y) ? sum : real;
    return (x == 1) | (y == 0) ? one : number;
}
/// |x|^y for the rare cases: an x that is 0, denormal, infinite or NaN, and results far outside the range of a float.
inline float $extreme_power(float size, float y) {
    const double x = $clamp_exponent(double(y) * $wide_logarithm(size, double(1.0L), double(0x1.71547652b82fep+0L)));
    const $nearest_wide n(x);
    return $power_of_2(n, x - n.value());
}
/// |x|^y, unless `far` marks it as a rare case.
struct $power {
    float size, value;
    bool far;
    inline $power(float x, float y) : size(__builtin_elementwise_abs(x)) {
        const float factor = __builtin_elementwise_abs(y);
        const metal::uint root = $bits_of(0x1.6a09e6p-1f), shifted_bits = $bits_of(size) - root;
        const float e = float(int(shifted_bits) >> 23), f = $of_bits((shifted_bits & 0x7fffff) + root) - 1;
        const double logarithm = $wide_series(f, 1 / (f + 2), double(0x1.71547652b82fep+1L)) + double(e), by = y;
        const $nearest_wide n(by * logarithm);
        value = $power_of_2(n, by * logarithm - n.value());
        far = !(is_normal(size) & (factor * __builtin_elementwise_abs(e) + factor < 1000));
    }
    static inline bool is_normal(float x) { return $bits_of(x) - 0x00800000 < 0x7f000000; }  // and above 0
};
inline float $h_pow(float x, float y) {
    const $power of(x, y);
    float value = of.value;
    if (__builtin_expect(of.far | (x < 0), 0)) {
        if (__builtin_expect(of.far, 0)) value = $extreme_power(of.size, y);
        value = $special_power(x, y, value);
    }
    return value;
}
/// x^y, which is defined only for x >= 0 (MSL 6.5), from |x|^y.
inline float $powr_of(float x, float y, float power) {
    const float undefined = __builtin_nanf(""), size = __builtin_elementwise_abs(x);
    const bool extreme = ($bits_of(size) - 1) >= 0x7f7fffff;  // 0 or infinity
    const bool endless = ($bits_of(y) & 0x7fffffff) == 0x7f800000;
    const bool wrong = (x < 0) | (extreme & (y == 0)) | ((x == 1) & endless) | (x != x) | (y != y);
    return wrong ? undefined : power;
}
inline float $h_powr(float x, float y) {
    const $power of(x, y);
    float value = of.value;
    if (__builtin_expect(of.far | (x < 0), 0)) {
        if (__builtin_expect(of.far, 0)) value = $extreme_power(of.size, y);
        value = $powr_of(x, y, $special_power(of.size, y, value));
    }
    return value;
}
