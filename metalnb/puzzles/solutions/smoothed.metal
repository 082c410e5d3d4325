#include <metal_stdlib>
using namespace metal;

kernel void smoothed(device const float* a, device float* out,
                     constant uint& rows, constant uint& columns,
                     uint2 p [[thread_position_in_grid]],
                     uint2 t [[thread_position_in_threadgroup]],
                     uint2 group [[threadgroup_position_in_grid]]) {
    threadgroup float tile[10][10];
    for (uint i = t.y * 8 + t.x; i < 100; i += 64) {
        int x = int(group.x * 8 + i % 10) - 1;
        int y = int(group.y * 8 + i / 10) - 1;
        bool inside = x >= 0 && x < int(columns) && y >= 0 && y < int(rows);
        tile[i / 10][i % 10] = inside ? a[y * int(columns) + x] : 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    if (p.x < columns && p.y < rows) {
        float sum = 0;
        for (uint down = 0; down < 3; ++down)
            for (uint across = 0; across < 3; ++across)
                sum += tile[t.y + down][t.x + across];
        out[p.y * columns + p.x] = sum / 9;
    }
}
