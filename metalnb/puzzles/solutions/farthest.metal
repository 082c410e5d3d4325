#include <metal_stdlib>
using namespace metal;

kernel void farthest(device const float* a, device float* out,
                     uint i [[thread_position_in_grid]],
                     uint lane [[thread_index_in_simdgroup]]) {
    float best = a[i];
    for (ushort gap = 16; gap > 0; gap /= 2) {
        float other = simd_shuffle_down(best, gap);
        if (abs(other) > abs(best)) best = other;
    }
    if (lane == 0) out[i / 32] = best;
}
