#include <metal_stdlib>
using namespace metal;

kernel void convolved(device const float* a, device const float* b, device float* out,
                      constant uint& n, constant uint& k, uint i [[thread_position_in_grid]]) {
    float sum = 0;
    for (uint j = 0; j < k && i + j < n; ++j) {
        sum += a[i + j] * b[j];
    }
    out[i] = sum;
}
