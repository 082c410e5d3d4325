#include <metal_stdlib>
using namespace metal;

kernel void first_largest(device const float* a, device uint* out, constant uint& n,
                          uint lane [[thread_index_in_simdgroup]]) {
    float best = -INFINITY;
    uint where = 0xFFFFFFFF;
    for (uint i = lane; i < n; i += 32) {
        if (a[i] > best) {
            best = a[i];
            where = i;
        }
    }
    float largest = simd_max(best);
    uint first = simd_min(best == largest ? where : 0xFFFFFFFF);
    if (lane == 0) out[0] = first;
}
