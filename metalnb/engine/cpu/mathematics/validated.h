// The mathematics of the validated build, in which a function that may return NaN or infinity must stay a call by name
// (validated/validating_code.py): the C library's functions, and our own where it has none.
#pragma once
#include "exp_log_pow.h"

extern "C" {
#define $MATH1(name) __attribute__((const)) float name##f(float);
#define $MATH2(name) __attribute__((const)) float name##f(float, float);
#define $EACH_OF_C \
    $MATH1(acos) $MATH1(acosh) $MATH1(asin) $MATH1(asinh) $MATH1(atan) $MATH1(atanh) $MATH1(cos) $MATH1(cosh) \
    $MATH1(exp) $MATH1(exp2) $MATH1(log) $MATH1(log10) $MATH1(log2) $MATH1(sin) $MATH1(sinh) $MATH1(tan) $MATH1(tanh) \
    $MATH2(atan2) $MATH2(fmod) $MATH2(nextafter) $MATH2(pow)
$EACH_OF_C
#undef $MATH1
#undef $MATH2
__attribute__((const)) float ldexpf(float, int);
}
#define $MATH1(name) inline float $c_##name(float x) { return name##f(x); }
#define $MATH2(name) inline float $c_##name(float x, float y) { return name##f(x, y); }
$EACH_OF_C
#undef $MATH1
#undef $MATH2
#undef $EACH_OF_C
#define $MATH1(name) inline float $c_##name(float x) { return $h_##name(x); }
$MATH1(cospi) $MATH1(exp10) $MATH1(rsqrt) $MATH1(sinpi) $MATH1(tanpi)
#undef $MATH1
inline float $c_ldexp(float x, int k) { return ldexpf(x, k); }
inline float $c_powr(float x, float y) { return $powr_of(x, y, powf(__builtin_elementwise_abs(x), y)); }
