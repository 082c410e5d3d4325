#include <metal_stdlib>
using namespace metal;

kernel void add_ten(device const float* a, device float* out, uint i [[thread_position_in_grid]]) {
    out[i] = a[i] + 10;
}
