// Convolutions without a matrix of windows. The images are laid out once, with their padding, so that for any element
// of the window 32 adjacent positions read 32 adjacent elements: for a stride of s, as s phases of the image,
// each with every s-th column. Then a SIMD-group sums some outputs of a panel of 32 positions (or several panels) in
// registers, as in matmul.metal: an element is read once and multiplied by a weight of each output.
//
// Positions are counted along a plane's rows, padding included. Sums at positions in the padding between two rows are
// not written.
//
// Source: E. Georganas et al., "Anatomy of High-Performance Deep Learning Convolutions on SIMD Architectures", SC18.
#include <metal_stdlib>
#include <metalnb/storage.h>
#include <metalnb/unroll.h>
using namespace metal;

constant uint panel = 32;  // adjacent positions: one for each lane of a SIMD-group

/// How images are laid out, in elements.
struct Layout {
    long offset;                 // the start of the first image
    uint height, width;          // of an image
    uint columns, plane;         // the lengths of a row as laid out, and of all rows of a phase
    uint top, left;              // the padding before an image
    uint down, across;           // the strides
    uint phases;                 // of each channel
    uint rows, all;              // the rows that a SIMD-group lays out, and all rows of a plane
    uint unused;
};

/// Lay out images as float. Each threadgroup is a SIMD-group: x is a block of rows, y the phase and the channel.
template <typename T, uint stride>  // the step between columns; 0 means that the layout has it
kernel void lay(device const memory_of<T>* x      [[buffer(0)]],
                device float*              laid   [[buffer(1)]],
                constant Layout&           l      [[buffer(2)]],
                device const int*          phases [[buffer(3)]],  // the first row and the first column of each
                uint2 group [[threadgroup_position_in_grid]],
                uint  lane  [[thread_index_in_simdgroup]]) {
    const uint channel = group.y / l.phases, phase = group.y - channel * l.phases;
    const uint step = stride == 0 ? l.across : stride;
    const int left = phases[2 * phase + 1] - int(l.left), width = int(l.width);
    x += l.offset + long(channel) * l.height * l.width + left;
    laid += long(group.y) * l.plane;
    const uint first = group.x * l.rows;
    uint last = first + l.rows;
    if (last > l.all) last = l.all;
    for (uint row = first; row < last; ++row) {
        const int i = int(row * l.down) + phases[2 * phase] - int(l.top);
        const bool there = i >= 0 && i < int(l.height);
        device const memory_of<T>* from = x + long(i) * width;
        device float* to = laid + row * l.columns;
        uint columns = l.plane - row * l.columns;  // the last row may be cut off
        if (columns > l.columns) columns = l.columns;
        for (uint c = 0; c < columns; c += panel) {
            const int j = left + int((c + lane) * step);
            float value = 0.0f;
            if (there && j >= 0 && j < width) value = float(storage<T>::load((from + c * step)[lane * step]));
            if (c + lane < columns) (to + c)[lane] = value;
        }
    }
}

/// The parameters of a convolution: lengths of a group of channels, in elements.
struct Convolution {
    long x, image;                // the start of the first image, and the step between groups of channels
    long weight, bias, out;       // where these begin
    long size;                    // the size of an output: height * width
    uint terms;                   // products of each sum
    uint rows, groups;            // outputs of a group, and the number of groups
    uint height, width, columns;  // positions down and across, and the step between rows of positions
    uint last;                    // all positions: at least W panels
    uint large;                   // how many of a panel's SIMD-groups sum R outputs
};

/// Sum R outputs of W panels. The last panels of an image overlap the ones before, so that all panels are full: `own`
/// is the first position that this call writes, and `own_row` the first output.
template <typename C, ushort R, ushort W>
inline void sums(device const float* x, device const float* weight, device const float* bias,
                 device memory_of<C>* out, constant Convolution& c, device const long* terms,
                 uint own, uint own_row, uint which_image, uint lane) {
    const uint first = min(own, c.last - W * panel), row = min(own_row, c.rows - R);
    const long which = long(which_image % c.groups) * c.rows + row, K = c.terms;
    x += c.x + which_image * c.image + first;
    weight += c.weight + which * K;
    bias += c.bias + which;
    out += c.out + (long(which_image) * c.rows + row) * c.size;

    float sum[R][W];
    UNROLL for (ushort r = 0; r < R; ++r)
        UNROLL for (ushort w = 0; w < W; ++w) sum[r][w] = bias[r];
    uint k = 0;
    for (; k + 4 <= c.terms; k += 4, terms += 4, weight += 4)
        UNROLL for (ushort i = 0; i < 4; ++i) {
            device const float* from = x + terms[i];
            UNROLL for (ushort w = 0; w < W; ++w) {
                const float y = (from + w * panel)[lane];
                UNROLL for (ushort r = 0; r < R; ++r)
                    sum[r][w] = fma(weight[i + r * K], y, sum[r][w]);
            }
        }
    for (; k < c.terms; ++k, ++terms, ++weight) {
        device const float* from = x + *terms;
        UNROLL for (ushort w = 0; w < W; ++w) {
            const float y = (from + w * panel)[lane];
            UNROLL for (ushort r = 0; r < R; ++r)
                sum[r][w] = fma(weight[r * K], y, sum[r][w]);
        }
    }

    // A panel has parts of a few rows of positions, each of which is one stretch of the result.
    UNROLL for (ushort w = 0; w < W; ++w) {
        const uint from = first + w * panel;
        uint end = (from + panel - 1) / c.columns + 1;
        if (end > c.height) end = c.height;
        for (uint i = from / c.columns; i < end; ++i) {
            const int start = int(i * c.columns - from);  // the lane at which the row begins
            device memory_of<C>* to = out + long(i) * c.width - start;
            const int j = int(lane) - start;
            const bool inside = j >= 0 && j < int(c.width) && from + lane >= own;
            UNROLL for (ushort r = 0; r < R; ++r)
                if (inside && row + r >= own_row) (to + r * c.size)[lane] = storage<C>::store(sum[r][w]);
        }
    }
}

/// Sum R outputs of W panels; if R is 12, the SIMD-groups from `large` on sum 8 outputs.
///
/// Each threadgroup is a SIMD-group: x is the W panels, y the outputs, z the image and the group of channels.
template <typename C, ushort R, ushort W>
kernel void convolve(device const float*  x      [[buffer(0)]],
                     device const float*  weight [[buffer(1)]],  // a row of terms for each output
                     device const float*  bias   [[buffer(2)]],
                     device memory_of<C>* out    [[buffer(3)]],
                     constant Convolution& c     [[buffer(4)]],
                     device const long*   terms  [[buffer(5)]],  // the start of each term's elements
                     uint3 group [[threadgroup_position_in_grid]],
                     uint  lane  [[thread_index_in_simdgroup]]) {
    const uint own = group.x * (W * panel);
    if (R < 12 || group.y < c.large) sums<C, R, W>(x, weight, bias, out, c, terms, own, group.y * R, group.z, lane);
    else sums<C, 8, W>(x, weight, bias, out, c, terms, own, c.large * R + (group.y - c.large) * 8, group.z, lane);
}

/// The parameters for groups of one channel. Elements contribute to few sums, so a layout would be half the work.
struct Channels {
    long x, weight, bias, out;    // where these begin
    uint height, width;           // of an image
    uint columns, rows;           // positions across and down
    uint across, down;            // of a window
    uint step_across, step_down, apart_across, apart_down;
    uint left, top;               // the padding before an image
    uint outputs, each;           // in all, and of a channel
    uint lines, unused;           // rows of positions that a SIMD-group takes
};

/// Each threadgroup is a SIMD-group: x is the rows of positions, y the output of an image.
template <typename T, uint stride>  // the step between columns; 0 means that the parameters have it
kernel void convolve_channels(device const memory_of<T>* x [[buffer(0)]], device const float* weight [[buffer(1)]],
                              device const float* bias     [[buffer(2)]], device memory_of<T>* out   [[buffer(3)]],
                              constant Channels& c [[buffer(4)]],
                              uint2 group [[threadgroup_position_in_grid]],
                              uint  lane  [[thread_index_in_simdgroup]]) {
    const uint output = group.y % c.outputs, step = stride == 0 ? c.step_across : stride;
    const int height = int(c.height), width = int(c.width);
    x += c.x + long(group.y / c.each) * height * width;
    out += c.out + long(group.y) * c.rows * c.columns;
    weight += c.weight + long(output) * c.down * c.across;
    uint last = (group.x + 1) * c.lines;
    if (last > c.rows) last = c.rows;
    for (uint y = group.x * c.lines; y < last; ++y)
        for (uint first = 0; first < c.columns; first += panel) {
            const int left = int((first + lane) * step) - int(c.left);
            float sum = bias[c.bias + output];
            for (uint i = 0; i < c.down; ++i) {
                const int row = int(y * c.step_down + i * c.apart_down) - int(c.top);
                if (row < 0 || row >= height) continue;
                device const memory_of<T>* from = x + long(row) * width + first * step - int(c.left);
                for (uint j = 0; j < c.across; ++j) {
                    const int column = left + int(j * c.apart_across);
                    float value = 0.0f;
                    if (column >= 0 && column < width)
                        value = float(storage<T>::load((from + j * c.apart_across)[lane * step]));
                    sum = fma(weight[i * c.across + j], value, sum);
                }
            }
            if (first + lane < c.columns) (out + y * c.columns + first)[lane] = storage<T>::store(sum);
        }
}
