#include <metal_stdlib>
using namespace metal;

kernel void zip_add(device const float* a, device const float* b, device float* out,
                    uint i [[thread_position_in_grid]]) {
    out[i] = a[i] + b[i];
}
