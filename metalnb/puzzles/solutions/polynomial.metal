#include <metal_stdlib>
using namespace metal;

kernel void polynomial(device const float* x, device const float* c, device float* out,
                       constant uint& n,
                       uint i [[thread_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]]) {
    float mine = c[lane];
    float own = i < n ? x[i] : 0;
    float sum = 0;
    for (ushort k = 32; k-- > 0;) {
        sum = sum * own + simd_broadcast(mine, k);
    }
    if (i < n) out[i] = sum;
}
