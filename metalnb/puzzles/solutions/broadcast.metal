#include <metal_stdlib>
using namespace metal;

kernel void broadcast(device const float* a, device const float* b, device float* out, constant uint& n,
                      uint2 p [[thread_position_in_grid]]) {
    out[p.y * n + p.x] = a[p.x] + b[p.y];
}
