#include <metal_stdlib>
using namespace metal;

kernel void dot(device const float* a, device const float* b, device float* out, constant uint& n,
                uint t [[thread_position_in_threadgroup]]) {
    threadgroup float partial[256];
    partial[t] = t < n ? a[t] * b[t] : 0;
    for (uint step = 128; step > 0; step /= 2) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (t < step) partial[t] += partial[t + step];
    }
    if (t == 0) out[0] = partial[0];
}
