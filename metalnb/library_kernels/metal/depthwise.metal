// Depthwise convolutions, on a GPU. An element contributes to few sums, so a matrix product would gain nothing:
// the loads take the time. Each thread computes a few outputs of a column, with all loads in flight at
// once: with 3 x 3 windows, four outputs share 18 elements; separately they would read 36.
//
// Source: P. Zhang, E. Lo, B. Lu, "High Performance Depthwise and Pointwise Convolutions on Mobile Devices", AAAI 2020.
#include <metal_stdlib>
#include <metalnb/storage.h>
#include <metalnb/unroll.h>
using namespace metal;

struct Depthwise {
    ulong x, weight, bias;  // where these begin
    uint2 image, places;    // columns and rows
    int2 padding;           // before the first column and row
    uint2 stride, dilation;
    uint outputs, each;     // outputs of an image, and of one of its channels
    uint blocks, unused;    // of R places, down a column
};

/// Windows of W columns and H rows, `dilated` apart, and R places, `down` apart. They are template parameters, so that
/// the compiler sees which elements the places share, and drops unused loads. Threads: the column and the block of
/// rows, then the output, then the image.
template <typename T, uint W, uint H, uint R, uint down, uint dilated>
kernel void depthwise(device const memory_of<T>* x      [[buffer(0)]],
                      device const float*        weight [[buffer(1)]],
                      device const float*        bias   [[buffer(2)]],
                      device memory_of<T>*       out    [[buffer(3)]],
                      constant Depthwise&        d      [[buffer(4)]],
                      uint at [[thread_position_in_grid]]) {
    constexpr uint reach = (R - 1) * down + (H - 1) * dilated + 1;  // rows of the image that R outputs read
    const uint threads = d.places.x * d.blocks, plane = at / threads, place = at % threads;
    const uint column = place % d.places.x, row = place / d.places.x * R, output = plane % d.outputs;
    const int left = int(column * d.stride.x) - d.padding.x, top = int(row * down) - d.padding.y;
    x += d.x + (plane / d.each) * (ulong(d.image.x) * d.image.y) + long(top) * d.image.x + left;
    weight += d.weight + output * (W * H);

    float value[reach][W];
    UNROLL for (uint i = 0; i < reach; ++i)
        UNROLL for (uint j = 0; j < W; ++j) {
            const int y = top + int(i), beside = int(j * d.dilation.x);
            const bool inside = y >= 0 && y < int(d.image.y) && left + beside >= 0 && left + beside < int(d.image.x);
            value[i][j] = inside ? storage<T>::load(x[long(i) * d.image.x + beside]) : 0.0f;
        }
    float sum[R];
    UNROLL for (uint r = 0; r < R; ++r) sum[r] = bias[d.bias + output];
    UNROLL for (uint i = 0; i < H; ++i)
        UNROLL for (uint j = 0; j < W; ++j) {
            const float by = weight[i * W + j];
            UNROLL for (uint r = 0; r < R; ++r) sum[r] = fma(by, value[r * down + i * dilated][j], sum[r]);
        }
    out += (plane * ulong(d.places.y) + row) * d.places.x + column;
    UNROLL for (uint r = 0; r < R; ++r)
        if (row + r < d.places.y) out[r * d.places.x] = storage<T>::store(sum[r]);
}
