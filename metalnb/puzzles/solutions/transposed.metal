#include <metal_stdlib>
using namespace metal;

kernel void transposed(device const float* a, device float* out, constant uint& rows, constant uint& columns,
                       uint2 p [[thread_position_in_grid]],
                       uint2 t [[thread_position_in_threadgroup]],
                       uint2 group [[threadgroup_position_in_grid]]) {
    threadgroup float tile[8][9];
    if (p.x < columns && p.y < rows) tile[t.y][t.x] = a[p.y * columns + p.x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint x = group.y * 8 + t.x;
    uint y = group.x * 8 + t.y;
    if (x < rows && y < columns) out[y * rows + x] = tile[t.x][t.y];
}
