#include <metal_stdlib>
using namespace metal;

kernel void scanned(device const float* a, device float* out, constant uint& n,
                    uint t [[thread_position_in_threadgroup]],
                    uint lane [[thread_index_in_simdgroup]],
                    uint simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup float totals[8];
    float own = simd_prefix_inclusive_sum(t < n ? a[t] : 0);
    if (lane == 31) totals[simd] = own;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float before = simd_sum(lane < simd ? totals[lane] : 0);
    if (t < n) out[t] = before + own;
}
