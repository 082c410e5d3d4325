// The reciprocal of a square root: approximate, and correctly rounded by way of a wider type.
#pragma once

inline float $h_rsqrt(float x) { return 1 / __builtin_elementwise_sqrt(x); }
inline float $h_rsqrt_rounded(float x) { return float(1 / __builtin_elementwise_sqrt(double(x))); }
