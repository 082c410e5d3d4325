#include <metal_stdlib>
using namespace metal;

kernel void running_sum(device const float* a, device float* out, constant uint& n,
                        uint t [[thread_position_in_threadgroup]]) {
    threadgroup float sums[256];
    sums[t] = t < n ? a[t] : 0;
    for (uint step = 1; step < 256; step *= 2) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        float before = t >= step ? sums[t - step] : 0;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        sums[t] += before;
    }
    if (t < n) out[t] = sums[t];
}
