// The types of elements in memory, and those they are computed in. half and bfloat16 are computed as float; bfloat16 is
// read and written as the upper 16 bits of a float, so that it needs no MSL 3.1. Source: MSL 2.1; bfloat16: Intel,
// "BFLOAT16 Hardware Numerics Definition", 2018 (rounding to nearest, ties to even; NaN stays NaN).
#pragma once
#include <metal_stdlib>
using namespace metal;

struct bfloat16 {};

template <typename T>
struct storage {
    using memory = T;
    using value = T;
    static T load(T m) { return m; }
    template <typename V>
    static T store(V v) { return T(v); }
};

template <>
struct storage<half> {
    using memory = half;
    using value = float;
    static float load(half m) { return float(m); }
    template <typename V>
    static half store(V v) { return half(v); }
};

template <>
struct storage<bfloat16> {
    using memory = ushort;
    using value = float;
    static float load(ushort m) { return as_type<float>(uint(m) << 16); }
    template <typename V>
    static ushort store(V v) {
        uint bits = as_type<uint>(float(v));
        uint rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
        return ushort((bits & 0x7FFFFFFFu) > 0x7F800000u ? ((bits >> 16) | 0x40u) : rounded);
    }
};

template <typename T>
using memory_of = typename storage<T>::memory;
template <typename T>
using value_of = typename storage<T>::value;
