#include <metal_stdlib>
using namespace metal;

kernel void softmaxed(device const float* a, device float* out, constant uint& n,
                      uint row [[threadgroup_position_in_grid]],
                      uint lane [[thread_index_in_simdgroup]]) {
    uint first = row * n;
    float largest = -INFINITY;
    for (uint i = lane; i < n; i += 32) largest = max(largest, float(a[first + i]));
    largest = simd_max(largest);
    float sum = 0;
    for (uint i = lane; i < n; i += 32) sum += exp(a[first + i] - largest);
    sum = simd_sum(sum);
    for (uint i = lane; i < n; i += 32) out[first + i] = exp(a[first + i] - largest) / sum;
}
