// Heat on a torus by the 9-point Laplacian: a threadgroup keeps its tile, with a border of one cell, in threadgroup
// memory.
#include <metal_stdlib>
using namespace metal;

constant uint TILE_X [[function_constant(0)]];
constant uint TILE_Y [[function_constant(1)]];

kernel void laplacian(const device float *u          [[buffer(0)]],
                      device float       *result     [[buffer(1)]],
                      constant uint2     &size       [[buffer(2)]],
                      constant float     &rate       [[buffer(3)]],
                      threadgroup float  *tile       [[threadgroup(0)]],
                      uint2 gid   [[thread_position_in_grid]],
                      uint2 lid   [[thread_position_in_threadgroup]],
                      uint2 group [[threads_per_threadgroup]])
{
    const uint pitch = TILE_X + 2;
    auto cell = [=](uint2 at) { return at.y * pitch + at.x; };
    auto wrapped = [=](uint2 at) { return u[((at.y + size.y) % size.y) * size.x + (at.x + size.x) % size.x]; };

    const uint2 origin = gid - lid;
    for (uint y = lid.y; y < group.y + 2; y += group.y)
        for (uint x = lid.x; x < group.x + 2; x += group.x)
            tile[cell({x, y})] = wrapped(origin + size + uint2(x, y) - 1);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const uint at = cell(lid + 1);
    const float cross = tile[at - 1] + tile[at + 1] + tile[at - pitch] + tile[at + pitch];
    const float corners = tile[at - pitch - 1] + tile[at - pitch + 1] + tile[at + pitch - 1] + tile[at + pitch + 1];
    const float laplace = (4 * cross + corners - 20 * tile[at]) / 6;
    result[gid.y * size.x + gid.x] = tile[at] + rate * laplace;
}
