#include <metal_stdlib>
using namespace metal;

kernel void pooled(device const float* a, device float* out, uint i [[thread_position_in_grid]]) {
    float sum = a[i];
    if (i >= 1) sum += a[i - 1];
    if (i >= 2) sum += a[i - 2];
    out[i] = sum;
}
