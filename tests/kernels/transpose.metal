// Transpose through a threadgroup tile whose rows have one padding element, so that neither side strides through a
// single bank. A template over the element type: any type of two, four or sixteen bytes.
#include <metal_stdlib>
using namespace metal;

constant constexpr uint TILE = 32;
constant constexpr uint ROWS = 8;

template <typename T>
kernel void transpose_tiled(device const T *in [[buffer(0)]], device T *out [[buffer(1)]], constant uint2 &shape [[buffer(2)]],
                            uint2 group [[threadgroup_position_in_grid]], ushort2 lid [[thread_position_in_threadgroup]]) {
    threadgroup T tile[TILE][TILE + 1];
    const uint height = shape.x, width = shape.y;

    uint x = group.x * TILE + lid.x;
    uint y = group.y * TILE + lid.y;
    for (uint j = 0; j < TILE; j += ROWS)
        if (x < width && y + j < height) tile[lid.y + j][lid.x] = in[(y + j) * width + x];
    threadgroup_barrier(mem_flags::mem_threadgroup);

    x = group.y * TILE + lid.x;
    y = group.x * TILE + lid.y;
    for (uint j = 0; j < TILE; j += ROWS)
        if (x < height && y + j < width) out[(y + j) * height + x] = tile[lid.x][lid.y + j];
}

template [[host_name("transpose_half")]] kernel decltype(transpose_tiled<half>) transpose_tiled<half>;
template [[host_name("transpose_uint")]] kernel decltype(transpose_tiled<uint>) transpose_tiled<uint>;
template [[host_name("transpose_float4")]] kernel decltype(transpose_tiled<float4>) transpose_tiled<float4>;
