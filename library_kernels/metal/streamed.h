// Results that are written past the caches, for CPUs: a line of memory that is written whole need not be read first, which
// is a fourth of what a long sum of two arrays moves. What a core's cache may keep for the next kernel is not worth that:
// the host decides.
// Idea: a thread takes 16 neighbours as one vector, a line, as only a whole vector, aligned, is such a store. Such a kernel
// runs a thread at a time (docs/vectoriser.md).
#pragma once
#include <metal_stdlib>
using namespace metal;

constant constexpr uint WIDE = 16;
typedef float wide __attribute__((ext_vector_type(WIDE)));               // in a register, or a line of memory
typedef float anywhere __attribute__((ext_vector_type(WIDE), aligned(4)));  // in memory, from any element on

// A thread's vector of an operand; One is the same element everywhere.
template <typename Step> struct Wide {
    static wide load(device const float* x, uint first) { return *(device const anywhere*)(x + first); }
    static float one(device const float* x, uint at) { return x[at]; }
};
template <> struct Wide<One> {
    static wide load(device const float* x, uint) { return *x; }
    static float one(device const float* x, uint) { return *x; }
};

// How many elements stand before the first whole line of a result, and such a line's store.
inline uint before_line(device const float* out) { return uint(-(long)out) / sizeof(float) % WIDE; }
inline void stream(device float* line, wide value) { __builtin_nontemporal_store(value, (device wide*)line); }

// What special.h and Metal have of floats.
inline wide maximum_of(wide a, wide b) { return (a > b) | (a != a) ? a : b; }
inline wide minimum_of(wide a, wide b) { return (a < b) | (a != a) ? a : b; }
inline wide clip_of(wide x, wide low, wide high) { return minimum_of(maximum_of(x, low), high); }
inline wide abs(wide x) { return __builtin_elementwise_abs(x); }
inline wide fma(wide x, wide y, wide z) { return __builtin_elementwise_fma(x, y, z); }
