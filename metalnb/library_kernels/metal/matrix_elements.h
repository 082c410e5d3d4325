// SIMD-group matrices between products: access to the two elements of a lane, reductions over the lanes of
// a row, and products of blocks of two by two matrices. If the engine has its own layout (METALNB_MATRIX_BLOCKS),
// elements are accessed in that layout, so that nothing moves between lanes; otherwise in Apple's layout, which
// `thread_elements` exposes.
#pragma once
#include <metal_stdlib>
#include <metalnb/unroll.h>
using namespace metal;

#ifdef METALNB_MATRIX_BLOCKS
#define EACH_MATRIX UNROLL
#else
#define EACH_MATRIX _Pragma("clang loop unroll(disable)")  // unrolling a joint product only adds code

inline uint metalnb_matrix_row(uint lane) { return (lane >> 2 & 4) + (lane >> 1 & 3); }
inline uint metalnb_matrix_column(uint lane) { return (lane >> 1 & 4) + (lane & 1) * 2; }
constant constexpr uint metalnb_matrix_mates[2] = {1, 8};

template <typename T> inline float2 metalnb_matrix_elements(simdgroup_matrix<T, 8, 8> m) {
    return float2(float(m.thread_elements()[0]), float(m.thread_elements()[1]));
}
template <typename T> inline simdgroup_matrix<T, 8, 8> metalnb_matrix_of(float first, float second) {
    simdgroup_matrix<T, 8, 8> m;
    m.thread_elements()[0] = T(first);
    m.thread_elements()[1] = T(second);
    return m;
}
template <typename T> inline simdgroup_matrix<T, 8, 8> metalnb_matrix_of_bits(uint pair) {
    simdgroup_matrix<T, 8, 8> m;
    m.thread_elements()[0] = as_type<T>(ushort(pair));
    m.thread_elements()[1] = as_type<T>(ushort(pair >> 16));
    return m;
}
template <typename T> inline simdgroup_matrix<T, 8, 8> metalnb_right_factor_of_bits(uint pair, uint lane) {
    const uint row = metalnb_matrix_row(lane), column = metalnb_matrix_column(lane);
    // The lane that holds element `row` of the given rows `column` and the next.
    const uint from = (column & 4) << 2 | (column & 2) << 1 | (row & 4) << 1 | (row >> 1 & 1);
    const uint first = simd_shuffle(pair, ushort(from)), second = simd_shuffle(pair, ushort(from + 2));
    const uint shift = (row & 1) * 16;
    return metalnb_matrix_of_bits<T>((first >> shift & 0xffff) | second >> shift << 16);
}
template <bool right, bool transposed, typename T>
inline void metalnb_load_block(thread simdgroup_matrix<T, 8, 8> (&m)[2][2], threadgroup const T* from, uint down,
                               uint across, uint pitch) {
    for (uint i = 0; i < 2; ++i)
        for (uint j = 0; j < 2; ++j) simdgroup_load(m[i][j], from + i * down + j * across, pitch, ulong2(0), transposed);
}
inline uint metalnb_of_lane(uint x, uint lane) { return simd_shuffle(x, ushort(lane)); }
inline float metalnb_exp2(float x) { return exp2(x); }
template <typename D, typename T>
inline void metalnb_multiply_block(
    thread simdgroup_matrix<D, 8, 8>& above, thread simdgroup_matrix<D, 8, 8>& below, simdgroup_matrix<T, 8, 8> a00,
    simdgroup_matrix<T, 8, 8> a01, simdgroup_matrix<T, 8, 8> a10, simdgroup_matrix<T, 8, 8> a11,
    simdgroup_matrix<T, 8, 8> b0, simdgroup_matrix<T, 8, 8> b1) {
    simdgroup_multiply_accumulate(above, a00, b0, above);
    simdgroup_multiply_accumulate(above, a01, b1, above);
    simdgroup_multiply_accumulate(below, a10, b0, below);
    simdgroup_multiply_accumulate(below, a11, b1, below);
}
#endif

/// The maximum and the sum over the lanes of a row.
inline float largest_of_row(float x) {
    for (uint i = 0; i < 2; ++i) x = max(x, simd_shuffle_xor(x, ushort(metalnb_matrix_mates[i])));
    return x;
}
inline float sum_of_row(float x) {
    for (uint i = 0; i < 2; ++i) x += simd_shuffle_xor(x, ushort(metalnb_matrix_mates[i]));
    return x;
}
