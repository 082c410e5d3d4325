#include <metal_stdlib>
using namespace metal;

kernel void double_buffered(device const float* a, device const float* b,
                            device float* out,
                            constant uint& n,
                            uint2 p [[thread_position_in_grid]],
                            uint2 t [[thread_position_in_threadgroup]]) {
    threadgroup float tile_a[2][8][8];
    threadgroup float tile_b[2][8][8];
    float sum = 0;
    uint now = 0;
    for (uint first = 0; first < n; first += 8) {
        tile_a[now][t.y][t.x] = p.y < n && first + t.x < n ? a[p.y * n + first + t.x] : 0;
        tile_b[now][t.y][t.x] = p.x < n && first + t.y < n ? b[(first + t.y) * n + p.x] : 0;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = 0; k < 8; ++k) {
            sum += tile_a[now][t.y][k] * tile_b[now][k][t.x];
        }
        now = 1 - now;
    }
    if (p.x < n && p.y < n) out[p.y * n + p.x] = sum;
}
