// <simd/simd.h>, which headers that Metal and C share include: the vectors under the names of both.
#pragma once
#include "metal_stdlib"

namespace simd { using namespace metal; }

#define $SIMD_NAMES(T, name) \
    typedef metal::vec<T, 2> vector_##name##2, simd_##name##2; \
    typedef metal::vec<T, 3> vector_##name##3, simd_##name##3; \
    typedef metal::vec<T, 4> vector_##name##4, simd_##name##4;
$SIMD_NAMES(char, char) $SIMD_NAMES(metal::uchar, uchar) $SIMD_NAMES(short, short) $SIMD_NAMES(metal::ushort, ushort)
$SIMD_NAMES(int, int) $SIMD_NAMES(metal::uint, uint) $SIMD_NAMES(long, long) $SIMD_NAMES(metal::ulong, ulong)
$SIMD_NAMES(half, half) $SIMD_NAMES(float, float)
#undef $SIMD_NAMES
