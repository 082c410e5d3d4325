#include <metal_stdlib>
using namespace metal;

kernel void differences(device const float* a, device float* out, constant uint& n,
                        uint i [[thread_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
    float own = i < n ? a[i] : 0;
    float next = simd_shuffle_down(own, 1);
    if (lane == 31 && i + 1 < n) next = a[i + 1];
    if (i < n) out[i] = i + 1 < n ? next - own : 0;
}
