#include <metal_stdlib>
using namespace metal;

kernel void in_groups(device const float* a, device float* out,
                      uint group [[threadgroup_position_in_grid]],
                      uint t [[thread_position_in_threadgroup]],
                      uint size [[dispatch_threads_per_threadgroup]]) {
    uint i = group * size + t;
    out[i] = a[i] + 10;
}
