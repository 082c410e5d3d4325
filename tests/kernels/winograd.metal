// A 3x3 convolution by Winograd's F(2x2, 3x3): a thread transforms the 4x4 tile of each channel, multiplies element by
// element with the transformed filters, and transforms the sum back to 2x2 results. Small matrices use Metal's matrix
// types.
#include <metal_stdlib>
using namespace metal;

constant constexpr int OUT_CHANNELS = 4;

// Columns of the matrices of the method, as Metal stores them.
constant float4x4 B = float4x4(float4(1, 0, -1, 0), float4(0, 1, 1, 0), float4(0, -1, 1, 0), float4(0, 1, 0, -1));
constant float3x4 G = float3x4(float4(1, 0.5, 0.5, 0), float4(0, 0.5, -0.5, 0), float4(0, 0.5, 0.5, 1));
constant float4x2 At = float4x2(float2(1, 0), float2(1, 1), float2(1, -1), float2(0, -1));

// Element by element: Metal's * on matrices is the matrix product.
static float4x4 hadamard(float4x4 a, float4x4 b) {
    return float4x4(a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]);
}

kernel void winograd_filters(device const float *weights [[buffer(0)]],   // out, in, 3, 3
                             device float4x4 *transformed [[buffer(1)]],
                             uint i [[thread_position_in_grid]]) {
    float3x3 g;
    for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c) g[c][r] = weights[9 * i + 3 * r + c];
    transformed[i] = G * g * transpose(G);
}

kernel void winograd(device const float *image [[buffer(0)]],             // in, H, W
                     device const float4x4 *transformed [[buffer(1)]],
                     device float *out [[buffer(2)]],                     // out, H - 2, W - 2
                     constant int3 &shape [[buffer(3)]],                  // in, H, W
                     uint2 tile [[thread_position_in_grid]]) {
    const int in_channels = shape.x, height = shape.y, width = shape.z;
    const int2 corner = 2 * int2(tile);
    float4x4 sum[OUT_CHANNELS];
    for (int k = 0; k < OUT_CHANNELS; ++k) sum[k] = float4x4(0);

    for (int c = 0; c < in_channels; ++c) {
        float4x4 d;
        for (int y = 0; y < 4; ++y)
            for (int x = 0; x < 4; ++x) {
                const int2 at = min(corner + int2(x, y), int2(width, height) - 1);
                d[x][y] = image[(c * height + at.y) * width + at.x];
            }
        const float4x4 transformed_tile = transpose(B) * d * B;
        for (int k = 0; k < OUT_CHANNELS; ++k)
            sum[k] = sum[k] + hadamard(transformed_tile, transformed[k * in_channels + c]);
    }

    for (int k = 0; k < OUT_CHANNELS; ++k) {
        const float2x2 y = At * sum[k] * transpose(At);
        for (int dy = 0; dy < 2; ++dy)
            for (int dx = 0; dx < 2; ++dx) {
                const int2 at = corner + int2(dx, dy);
                if (at.x < width - 2 && at.y < height - 2) out[(k * (height - 2) + at.y) * (width - 2) + at.x] = y[dx][dy];
            }
    }
}
