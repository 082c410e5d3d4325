#include <metal_stdlib>
using namespace metal;

kernel void in_order(device const float* a, device uint* out,
                     uint i [[thread_position_in_grid]],
                     uint lane [[thread_index_in_simdgroup]]) {
    float own = a[i];
    float next = simd_shuffle_down(own, 1);
    bool all = simd_all(own <= next);
    if (lane == 0) out[i / 32] = all;
}
