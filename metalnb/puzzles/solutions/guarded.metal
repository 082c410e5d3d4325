#include <metal_stdlib>
using namespace metal;

kernel void guarded(device const float* a, device float* out, constant uint& n, uint i [[thread_position_in_grid]]) {
    if (i < n) {
        out[i] = a[i] + 10;
    }
}
