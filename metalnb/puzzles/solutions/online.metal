#include <metal_stdlib>
using namespace metal;

kernel void online(device const float* a, device float* out, constant uint& n,
                   uint row [[threadgroup_position_in_grid]],
                   uint lane [[thread_index_in_simdgroup]]) {
    uint first = row * n;
    float m = -1e30, s = 0;
    for (uint i = lane; i < n; i += 32) {
        float v = a[first + i];
        float larger = max(m, v);
        s = s * exp(m - larger) + exp(v - larger);
        m = larger;
    }
    float largest = simd_max(m);
    float sum = simd_sum(s * exp(m - largest));
    for (uint i = lane; i < n; i += 32) out[first + i] = exp(a[first + i] - largest) / sum;
}
