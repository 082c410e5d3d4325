#include <metal_stdlib>
using namespace metal;

kernel void mirrored(device const float* a, device float* out,
                     uint i [[thread_position_in_grid]],
                     uint t [[thread_position_in_threadgroup]]) {
    threadgroup float tile[8];
    tile[t] = a[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = tile[7 - t];
}
