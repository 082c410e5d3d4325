#include <metal_stdlib>
using namespace metal;

kernel void block_sums(device const float* a, device float* out, constant uint& n,
                       uint i [[thread_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]]) {
    float sum = simd_sum(i < n ? a[i] : 0);
    if (lane == 0 && i < n) out[i / 32] = sum;
}
