#include <metal_stdlib>
using namespace metal;

kernel void simd_dot(device const float* a, device const float* b, device float* out, constant uint& n,
                     uint lane [[thread_index_in_simdgroup]]) {
    float sum = 0;
    for (uint i = lane; i < n; i += 32) {
        sum += a[i] * b[i];
    }
    sum = simd_sum(sum);
    if (lane == 0) out[0] = sum;
}
