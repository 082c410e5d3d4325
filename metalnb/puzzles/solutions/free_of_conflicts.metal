#include <metal_stdlib>
using namespace metal;

kernel void free_of_conflicts(device const float* a, device float* out,
                              constant uint& n,
                              uint2 t [[thread_position_in_threadgroup]],
                              uint2 group [[threadgroup_position_in_grid]]) {
    threadgroup float tile[32][33];
    for (uint r = t.y; r < 32; r += 8) {
        tile[r][t.x] = a[(group.y * 32 + r) * n + group.x * 32 + t.x];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint r = t.y; r < 32; r += 8) {
        out[(group.x * 32 + r) * n + group.y * 32 + t.x] = tile[t.x][r];
    }
}
