// Functions that MSL lacks, in float arithmetic only. They are correct over the whole range (NaN, infinities, zeros of
// either sign, denormal numbers where the device keeps them) and branch-free, so that a CPU's compiler vectorizes them.
// Errors are in units in the last place, relative to float64, as tested by tests/library/test_library.py.
//
// Unless cited otherwise, the reduction is the textbook's (J.-M. Muller, "Elementary Functions", 3rd ed., 2016), and
// the coefficients were fitted for the least relative error on the given interval.
#pragma once
#include <metal_stdlib>
#include <metalnb/storage.h>
using namespace metal;

// The larger and the smaller of two, or NaN if either is, like NumPy's maximum and minimum.
template <typename T>
inline T maximum_of(T a, T b) { return (a > b || a != a) ? a : b; }
template <typename T>
inline T minimum_of(T a, T b) { return (a < b || a != a) ? a : b; }

// The nearest number in [low, high]; NaN stays NaN, and `high` wins over a `low` above it, as in NumPy's clip.
template <typename T>
inline T clip_of(T x, T low, T high) { return minimum_of(maximum_of(x, low), high); }

// exp(x) - 1, to 1 ulp: for x = k ln 2 + r it is 2^k (exp(r) - 1) + (2^k - 1), without cancellation.
inline float expm1_of(float x) {
    const float t = x > 88.9f ? 88.9f : x < -30.0f ? -30.0f : x;  // beyond: infinity, and -1
    const float k = rint(t * 1.44269504f);
    const float r = fma(k, -1.42860677e-6f, fma(k, -0.693145752f, t));  // ln 2 in two parts
    float q = 1.98578156e-4f;  // (exp(r) - 1 - r) / r^2 on [-ln 2 / 2, ln 2 / 2]
    q = fma(q, r, 1.39336870e-3f);
    q = fma(q, r, 8.33336078e-3f);
    q = fma(q, r, 4.16664630e-2f);
    q = fma(q, r, 0.166666672f);
    q = fma(q, r, 0.5f);
    const float p = fma(r * r, q, r);
    const float half_power = as_type<float>(uint(int(k) + 126) << 23);  // 2^(k-1), since 2^128 is not a float
    const float result = 2.0f * fma(half_power, p, half_power - 0.5f);
    return abs(x) < 1e-7f ? x : result;
}

// log(1 + x), to 2 ulp: log(u) for the rounded u = 1 + x, plus a correction for the rounding.
// Source: W. Kahan's correction, in N. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., 1.14.1.
inline float log1p_of(float x) {
    const float u = 1.0f + x;
    const float lost = (x - (u - 1.0f)) / u;
    const float result = log(u) + (u > 0.0f && u < INFINITY ? lost : 0.0f);
    return abs(x) < 3e-8f ? x : result;
}

// log(1 + e) for e in [0, 1], to 2 ulp: 2 atanh(e / (2 + e)).
inline float log1p_unit(float e) {
    const float z = e / (2.0f + e), s = z * z;
    float q = 0.281789988f;  // 2 atanh(z) / z in s = z^2 on [0, 1/9]
    q = fma(q, s, 0.279604733f);
    q = fma(q, s, 0.400249183f);
    q = fma(q, s, 0.666663170f);
    return fma(z * s, q, 2.0f * z);
}

// log(exp(x) + exp(y)), to 4 ulp of the larger of |x|, |y| and the result; equal infinities are themselves.
inline float logaddexp_of(float x, float y) {
    const float sum = maximum_of(x, y) + log1p_unit(exp(-abs(x - y)));
    return x == y ? x + 0.693147181f : sum;
}

// log(1 + exp(x)), without overflow.
inline float softplus_of(float x) { return maximum_of(x, 0.0f) + log1p_unit(exp(-abs(x))); }

// (x + 3) / 6, clamped to [0, 1], to 1.5 ulp: near -3 the sum is exact, while x / 6 + 1/2 would cancel.
inline float hard_sigmoid_of(float x) { return clip_of((x + 3.0f) * 0.166666667f, 0.0f, 1.0f); }

// 1 / (1 + exp(-x)), to 3 ulp down to denormal results.
inline float sigmoid_of(float x) {
    const float e = exp(-abs(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

// x sigmoid(x), to 5 ulp; exp(x) in two halves, because it may be denormal where x exp(x) is not.
inline float silu_of(float x) {
    const float t = x < -200.0f ? -200.0f : x;  // below, exp(x) falls faster than |x| grows
    const float half_way = exp(-0.5f * abs(t)), e = half_way * half_way;
    return (t < 0.0f ? t * half_way * half_way : t) / (1.0f + e);
}

// x tanh(log(1 + exp(x))), to 6 ulp: with e = exp(-|x|) nothing overflows.
inline float mish_of(float x) {
    const float t = x < -200.0f ? -200.0f : x;
    const float half_way = exp(-0.5f * abs(t)), e = half_way * half_way;
    const float n = t > 0.0f ? fma(2.0f, e, 1.0f) : e + 2.0f;
    const float d = t > 0.0f ? fma(2.0f * e, e, n) : fma(e, n, 2.0f);
    const float gate = n / d;
    return t > 0.0f ? t * gate : t * half_way * gate * half_way;
}

// The cube root, to 1 ulp: a third of the exponent is a guess accurate to 5 bits; each Halley step triples them.
// Source: W. Kahan, "Computing a Real Cube Root", 1991.
inline float cbrt_of(float x) {
    const float a = abs(x);
    const bool tiny = a < 1e-30f, huge = a > 1e30f;  // in between, squares and cubes do not overflow
    const float m = tiny ? a * 4398046511104.0f : huge ? a * 2.27373675e-13f : a;  // 2^42
    float y = as_type<float>(as_type<uint>(m) / 3u + 709958130u);
    float cube = y * y * y;
    y = y * ((cube + 2.0f * m) / (2.0f * cube + m));
    cube = y * y * y;
    y = fma(y, (m - cube) / fma(2.0f, cube, m), y);
    y = tiny ? y * 6.10351562e-5f : huge ? y * 16384.0f : y;
    return x == 0.0f || !(a < INFINITY) ? x : copysign(y, x);
}

// sqrt(x^2 + y^2), to 1 ulp, scaled by a power of two where a square would leave float's range.
inline float hypot_of(float x, float y) {
    const float a = abs(x), b = abs(y), m = maximum_of(a, b);
    const float down = m > 1e19f ? 5.42101086e-20f : m < 1e-15f ? 7.92281625e28f : 1.0f;  // 2^96
    const float up = m > 1e19f ? 18446744073709551616.0f : m < 1e-15f ? 1.26217745e-29f : 1.0f;
    const float s = a * down, t = b * down;
    const float result = sqrt(fma(s, s, t * t)) * up;
    return a == INFINITY || b == INFINITY ? INFINITY : result;
}

// The error function, to 2 ulp: 1 - exp(-g), g = -log(erfc(|x|)) a polynomial, up to where it rounds to 1. exp(-g) - 1
// as in expm1_of, without a branch or a call: g is within the required bounds.
inline float erf_of(float x) {
    const float a = abs(x), t = a > 4.0f ? 4.0f : a;
    float h = -9.388202e-6f;  // g / t - 1 in t on [0, 4]
    h = fma(h, t, 1.18862743e-4f);
    h = fma(h, t, -6.37366553e-4f);
    h = fma(h, t, 1.67567935e-3f);
    h = fma(h, t, -1.69505234e-4f);
    h = fma(h, t, -1.91478226e-2f);
    h = fma(h, t, 0.102776304f);
    h = fma(h, t, 0.63661957f);
    h = fma(h, t, 0.128379166f);
    const float g = fma(h, t, t);
    const float k = rint(g * -1.44269504f);
    const float r = fma(k, -1.42860677e-6f, fma(k, -0.693145752f, -g));
    float q = 1.38718626e-3f;  // (exp(r) - 1 - r) / r^2 on [-ln 2 / 2, ln 2 / 2]
    q = fma(q, r, 8.36687535e-3f);
    q = fma(q, r, 4.16674316e-2f);
    q = fma(q, r, 0.166665420f);
    q = fma(q, r, 0.499999970f);
    const float power = as_type<float>(uint(int(k) + 127) << 23);
    return copysign(fma(-power, fma(r * r, q, r), 1.0f - power), x);
}

// The inverse of erf, to 4 ulp: x times a polynomial in w = -log(1 - x^2), beyond 5 in sqrt(w); infinite at 1, NaN
// beyond. Source: the form is M. Giles', "Approximating the erfinv function", GPU Computing Gems, 2012; the
// coefficients are ours.
inline float erfinv_of(float x) {
    const float w = -log(fma(-x, x, 1.0f)), v = w - 2.5f, u = sqrt(w) - 3.0f;
    float p = -8.79119322e-9f;  // erfinv(x) / x in w - 5/2 on [0, 5]
    p = fma(p, v, 2.32327317e-8f);
    p = fma(p, v, 4.66172544e-7f);
    p = fma(p, v, -3.46270583e-6f);
    p = fma(p, v, -4.96335640e-6f);
    p = fma(p, v, 2.18344444e-4f);
    p = fma(p, v, -1.25274186e-3f);
    p = fma(p, v, -4.17738679e-3f);
    p = fma(p, v, 0.246640286f);
    p = fma(p, v, 1.50140936f);
    float q = -2.05605667e-4f;  // the same in sqrt(w) - 3, up to the largest float below 1
    q = fma(q, u, 1.05086851e-4f);
    q = fma(q, u, 1.35639093e-3f);
    q = fma(q, u, -3.67773221e-3f);
    q = fma(q, u, 5.73637351e-3f);
    q = fma(q, u, -7.62121918e-3f);
    q = fma(q, u, 9.43935999e-3f);
    q = fma(q, u, 1.00167401f);
    q = fma(q, u, 2.83297691f);
    const float result = x * (w < 5.0f ? p : q);
    return abs(x) == 1.0f ? x * INFINITY : result;
}

// x times the part of a normal distribution below x, to 8 ulp down to denormal results. The part below -t, t = |x|, is
// exp(-t^2 / 2) times a rational function; the rounding of t^2 is compensated, and the power is computed in two halves.
inline float gelu_of(float x) {
    const float a = abs(x), t = a > 15.0f ? 15.0f : a;
    float p = 4.15369449e-3f;  // erfc(t / sqrt 2) exp(t^2 / 2) / 2 on [0, 15]
    p = fma(p, t, 4.08842266e-2f);
    p = fma(p, t, 0.183978230f);
    p = fma(p, t, 0.439295471f);
    p = fma(p, t, 0.5f);
    float q = 1.04116565e-2f;
    q = fma(q, t, 0.102487676f);
    q = fma(q, t, 0.471432686f);
    q = fma(q, t, 1.20558572f);
    q = fma(q, t, 1.67647600f);
    q = fma(q, t, 1.0f);
    const float s = t * t, lost = fma(t, t, -s);
    const float half_way = exp(-0.25f * s);
    const float part = half_way * (p / q) * fma(-0.5f, lost, 1.0f);
    return x >= 0.0f ? x * fma(-half_way, part, 1.0f) : -t * part * half_way;
}

// The same by the formula with tanh, to 6 ulp: it is x sigmoid(w), w = 2 sqrt(2 / pi) (x + 0.044715 x^3). exp amplifies
// w's error by |w|, so w is computed in two floats (O. Moeller's two-sum, and fused products).
inline float gelu_tanh_of(float x) {
    const float t = clamp(x, -15.0f, 15.0f);
    const float s = t * t, s_low = fma(t, t, -s);
    const float p = 0.071354814f * s, p_low = fma(0.071354814f, s, -p) + 0.071354814f * s_low + 2.398832e-09f * s;
    const float v = p + 1.5957692f, back = v - p;
    const float v_low = (p - (v - back)) + (1.5957692f - back) + p_low - 4.534068e-08f;
    const float w = t * v, w_low = fma(t, v, -w) + t * v_low;
    const float half_way = exp(-0.5f * abs(w)), e = half_way * half_way;
    const float made_good = half_way * (t < 0.0f ? 1.0f + w_low : 1.0f);
    const float result = (t < 0.0f ? t * made_good * half_way : x) / (1.0f + e);
    return x != x ? x : result;
}

// The remainder of x / y with x's sign, exact. While the quotient is below 2^20, one fused step suffices: it is right
// to a quarter, so the remainder by its nearest integer is less than y, and a multiple of the smaller operand's last
// place. Beyond, y times a power of two is subtracted first. Source: IEEE 754-2019, 9.2 (fmod of C).
inline int exponent_of(float a) {  // of a > 0
    const bool tiny = a < 1.17549435e-38f;
    return int(as_type<uint>(tiny ? a * 16777216.0f : a) >> 23) - (tiny ? 24 : 0);
}
inline float fmod_step(float a, float b) {
    const float r = fma(-rint(a / b), b, a);
    return r < 0.0f ? r + b : r;
}
inline float shortened(float a, float b) { return fmod_step(a, ldexp(b, exponent_of(a) - exponent_of(b) - 18)); }
inline float far_fmod(float a, float b) {
    if (!(a < INFINITY && b > 0.0f)) return NAN;
    if (b == INFINITY) return a;
    // Each iteration removes 17 bits of the quotient, which has at most 277.
    for (uint turn = 0; turn < 18 && a > b * 524288.0f; ++turn) a = shortened(a, b);
    return fmod_step(a, b);
}
inline float fmod_of(float x, float y) {
    const float a = abs(x), b = abs(y);
    float r = fmod_step(a, b);
    if (!(a < b * 524288.0f && b < INFINITY)) r = far_fmod(a, b);
    return copysign(r, x);
}

// The remainder with y's sign, and below it the quotient: Python's, as in NumPy (0 keeps y's sign).
inline float remainder_of(float x, float y) {
    const float r = fmod_of(x, y);
    const float moved = (r < 0.0f) != (y < 0.0f) ? r + y : r;
    return r == 0.0f ? copysign(0.0f, y) : moved;
}

// The quotient rounded down, as in NumPy: NaN for an infinite x. Exact below 2^24, where the rounded quotient is at
// most one too large, which the remainder shows; beyond, to 1 ulp.
inline float floor_divide_of(float x, float y) {
    const float quotient = x / y, whole = floor(quotient);
    const float remainder = abs(y) == INFINITY ? x : fma(-whole, y, x);
    const bool over = remainder != 0.0f && (remainder < 0.0f) != (y < 0.0f) && abs(whole) < 16777216.0f;
    const float result = over ? whole - 1.0f : whole;
    return y == 0.0f ? quotient : abs(x) == INFINITY ? NAN : result;
}

// The next number after x towards y, in the stored type L: numbers of the same sign are ordered like their bits.
// Source: IEEE 754-2019, 5.3.1. (MSL has nextafter since 3.1, but not for every type here.)
inline uint bits_of(float x) { return as_type<uint>(x); }
inline ushort bits_of(half x) { return as_type<ushort>(x); }
inline ushort bits_of(ushort x) { return x; }
template <typename L>
inline value_of<L> next_after(value_of<L> x, value_of<L> y) {
    using Bits = decltype(bits_of(memory_of<L>(0)));
    const Bits bits = bits_of(storage<L>::store(x)), sign = Bits(Bits(1) << (8 * sizeof(Bits) - 1));
    const Bits least = Bits((y < 0.0f ? sign : Bits(0)) | Bits(1));
    const Bits step = Bits((y > x) == !(bits & sign) ? bits + 1 : bits - 1);
    const auto moved = storage<L>::load(as_type<memory_of<L>>(Bits(x == 0.0f ? least : step)));
    return x == y ? y : x != x || y != y ? x + y : moved;
}
