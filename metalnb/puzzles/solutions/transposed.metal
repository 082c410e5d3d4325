#include <metal_stdlib>
using namespace metal;

kernel void transposed(device const float* a, device float* out, constant uint& rows, constant uint& columns,
                       uint2 t [[thread_position_in_threadgroup]],
                       uint2 group [[threadgroup_position_in_grid]]) {
    threadgroup float tile[32][33];
    for (uint r = t.y; r < 32; r += 8) {
        uint x = group.x * 32 + t.x, y = group.y * 32 + r;
        if (x < columns && y < rows) tile[r][t.x] = a[y * columns + x];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint r = t.y; r < 32; r += 8) {
        uint x = group.y * 32 + t.x, y = group.x * 32 + r;
        if (x < rows && y < columns) out[y * rows + x] = tile[t.x][r];
    }
}
