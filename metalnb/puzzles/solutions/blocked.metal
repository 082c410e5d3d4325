#include <metal_stdlib>
using namespace metal;

kernel void blocked(device const float* a, device const float* b, device float* out,
                    constant uint& n,
                    uint2 t [[thread_position_in_threadgroup]],
                    uint2 group [[threadgroup_position_in_grid]]) {
    threadgroup float tile_a[16][16];
    threadgroup float tile_b[16][16];
    uint row = group.y * 16, column = group.x * 16;
    float s00 = 0, s01 = 0, s10 = 0, s11 = 0;
    for (uint first = 0; first < n; first += 16) {
        for (uint e = t.y * 8 + t.x; e < 256; e += 64) {
            uint r = e / 16, c = e % 16;
            tile_a[r][c] = row + r < n && first + c < n ? a[(row + r) * n + first + c] : 0;
            tile_b[r][c] = first + r < n && column + c < n ? b[(first + r) * n + column + c] : 0;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = 0; k < 16; ++k) {
            float a0 = tile_a[t.y][k], a1 = tile_a[t.y + 8][k];
            float b0 = tile_b[k][t.x], b1 = tile_b[k][t.x + 8];
            s00 += a0 * b0;
            s01 += a0 * b1;
            s10 += a1 * b0;
            s11 += a1 * b1;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    uint y = row + t.y, x = column + t.x;
    if (y < n && x < n) out[y * n + x] = s00;
    if (y < n && x + 8 < n) out[y * n + x + 8] = s01;
    if (y + 8 < n && x < n) out[(y + 8) * n + x] = s10;
    if (y + 8 < n && x + 8 < n) out[(y + 8) * n + x + 8] = s11;
}
