// Convolution by im2col: unfold an image's patches into the columns of a matrix, one thread per element, so that the
// convolution is a matrix product. A second kernel folds columns back; each pixel gathers its contributions.
#include <metal_stdlib>
using namespace metal;

struct ConvParams {
    int channels;
    int2 size;      // height, width
    int2 kernel_size;
    int2 padding;
    int2 stride;
    int2 dilation;
    int2 out_size;
};

kernel void im2col(
    constant float        * input  [[buffer(0)]],   // N, C, H, W
    device float          * output [[buffer(1)]],   // N, C * KH * KW, OH * OW
    constant ConvParams   & p      [[buffer(2)]],
    uint3 index [[thread_position_in_grid]])        // place, row, image
{
    const auto place = int2(index.x / p.out_size.y, index.x % p.out_size.y);
    const auto n = static_cast<int>(index.z);
    const int taps = p.kernel_size.x * p.kernel_size.y;
    const int channel = index.y / taps;
    const int tap = index.y % taps;
    const int2 at = place * p.stride - p.padding + p.dilation * int2(tap / p.kernel_size.y, tap % p.kernel_size.y);
    const bool inside = all(at >= 0) && all(at < p.size);
    const long from = ((long(n) * p.channels + channel) * p.size.x + at.x) * p.size.y + at.y;
    const ulong rows = ulong(p.channels) * taps, places = ulong(p.out_size.x) * p.out_size.y;
    output[(n * rows + index.y) * places + index.x] = inside ? input[from] : 0.0;
}

kernel void col2im(
    constant float        * columns [[buffer(0)]],
    device float          * image   [[buffer(1)]],
    constant ConvParams   & p       [[buffer(2)]],
    uint3 index [[thread_position_in_grid]])        // x, y, channel of one image
{
    const int2 at = int2(index.y, index.x);
    const int places = p.out_size.x * p.out_size.y;
    float sum = 0;
    for (int ky = 0; ky < p.kernel_size.x; ++ky) {
        for (int kx = 0; kx < p.kernel_size.y; ++kx) {
            const int2 from = at + p.padding - p.dilation * int2(ky, kx);
            const int2 place = from / p.stride;
            if (any(from < 0) || any(from % p.stride != 0) || any(place >= p.out_size)) continue;
            const int row = (index.z * p.kernel_size.x + ky) * p.kernel_size.y + kx;
            sum += columns[row * places + place.x * p.out_size.y + place.y];
        }
    }
    image[(index.z * p.size.x + at.x) * p.size.y + at.y] = sum;
}
