#include <metal_stdlib>
using namespace metal;

kernel void turned_round(device const float* a, device float* out,
                         uint i [[thread_position_in_grid]],
                         uint lane [[thread_index_in_simdgroup]]) {
    out[i] = simd_shuffle(a[i], 31 - lane);
}
