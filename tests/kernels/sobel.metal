// Edges of an RGBA picture: luminance into a tile with a border of one pixel, the two Sobel filters, and their length.
#include <metal_stdlib>
using namespace metal;

#define TILE_W 16
#define TILE_H 8

constant float3 luminance = float3(0.2126, 0.7152, 0.0722);

static half luma(uchar4 c) {
    return half(dot(float3(c.rgb) / 255.0, luminance));
}

kernel void sobel(device const uchar4 *source [[buffer(0)]],
                  device uchar4 *target [[buffer(1)]],
                  constant int2 &size [[buffer(2)]],
                  uint2 gid [[thread_position_in_grid]],
                  ushort2 lid [[thread_position_in_threadgroup]],
                  uint2 group [[threadgroup_position_in_grid]],
                  ushort index [[thread_index_in_threadgroup]])
{
    threadgroup half tile[TILE_H + 2][TILE_W + 2];
    const int2 corner = int2(group) * int2(TILE_W, TILE_H) - 1;
    for (ushort i = index; i < (TILE_W + 2) * (TILE_H + 2); i += TILE_W * TILE_H) {
        const int2 local_at = int2(i % (TILE_W + 2), i / (TILE_W + 2));
        const int2 at = clamp(corner + local_at, 0, size - 1);
        tile[local_at.y][local_at.x] = luma(source[at.y * size.x + at.x]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (any(int2(gid) >= size)) return;

    auto p = [&](int dx, int dy) { return float(tile[lid.y + 1 + dy][lid.x + 1 + dx]); };
    const float gx = p(1, -1) + 2 * p(1, 0) + p(1, 1) - p(-1, -1) - 2 * p(-1, 0) - p(-1, 1);
    const float gy = p(-1, 1) + 2 * p(0, 1) + p(1, 1) - p(-1, -1) - 2 * p(0, -1) - p(1, -1);
    const float edge = saturate(length(float2(gx, gy)));

    uchar4 result = source[gid.y * size.x + gid.x];
    result.rgb = uchar3(round(255 * edge));
    target[gid.y * size.x + gid.x] = result;
}
