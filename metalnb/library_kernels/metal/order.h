// The order of sort, searchsorted and unique: each value's bits become an unsigned number with the same order. Negative
// floats are reversed and placed below the positive ones; -0.0 equals 0.0; NaN is the largest, as in NumPy. Source: T.
// Herf, "Radix tricks", 2001 (the flip of floats).
#pragma once
#include <metal_stdlib>
using namespace metal;

constant int KIND [[function_constant(0)]];  // 0 unsigned and bool, 1 signed, 2 float32 or float16, 3 bfloat16
constant bool DESCENDING [[function_constant(1)]];

template <typename U>
inline bool is_nan(U bits) {
    if (KIND < 2) return false;
    const U infinity = sizeof(U) == 4 ? U(0x7F800000u) : KIND == 3 ? U(0x7F80) : U(0x7C00);
    return U(bits & U(~(U(1) << (8 * sizeof(U) - 1)))) > infinity;
}

template <typename U>
inline U ordered(U bits) {
    const U sign = U(1) << (8 * sizeof(U) - 1);
    U key = bits;
    if (KIND == 1) key = bits ^ sign;
    if (KIND >= 2) {  // no branch, since half of all signs would be mispredicted
        const U negative = U(0) - U(bits >> (8 * sizeof(U) - 1));
        key = bits ^ U(negative | sign);
        key = U(key + U(bits == sign)) | U(U(0) - U(is_nan(bits)));
    }
    return DESCENDING ? U(~key) : key;
}
