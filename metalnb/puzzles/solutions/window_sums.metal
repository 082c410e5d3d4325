#include <metal_stdlib>
using namespace metal;

kernel void window_sums(device const float* a, device float* out, constant uint& n,
                        uint i [[thread_position_in_grid]],
                        uint t [[thread_position_in_threadgroup]],
                        uint group [[threadgroup_position_in_grid]]) {
    threadgroup float tile[80];
    int first = int(group * 64) - 8;
    for (uint k = t; k < 80; k += 64) {
        int at = first + int(k);
        tile[k] = at >= 0 && at < int(n) ? a[at] : 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float sum = 0;
    for (uint k = 0; k < 17; ++k) {
        sum += tile[t + k];
    }
    if (i < n) out[i] = sum;
}
