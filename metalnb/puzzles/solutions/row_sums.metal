#include <metal_stdlib>
using namespace metal;

kernel void row_sums(device const float* a, device float* out, constant uint& n,
                     uint row [[threadgroup_position_in_grid]],
                     uint t [[thread_position_in_threadgroup]]) {
    threadgroup float partial[32];
    float sum = 0;
    for (uint i = t; i < n; i += 32) {
        sum += a[row * n + i];
    }
    partial[t] = sum;
    for (uint step = 16; step > 0; step /= 2) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (t < step) partial[t] += partial[t + step];
    }
    if (t == 0) out[row] = partial[0];
}
