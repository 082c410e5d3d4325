// Layer norm and RMS norm over the last axis, with a weight and a bias for each position in a row.
// Idea: one fused kernel. A SIMD-group takes a row and reads it three times, for the mean, for the variance, and for
// the result: once from memory, then from its cache. The variance sums the squared distances from the mean, since a
// difference of squares would cancel. Source: J. L. Ba, J. R. Kiros and G. E. Hinton, "Layer Normalization", 2016;
// B. Zhang and R. Sennrich, "Root Mean Square Layer Normalization", 2019.
#pragma once
#include <metalnb/reduce.metal>

struct Norm {
    long offset;   // of the first element, in elements
    long pitch;    // from one row to the next
    uint count;    // elements of a row
    uint scaled;   // whether there is a weight
    uint shifted;  // whether there is a bias
    float epsilon;
};

// out = (x - mean) · scale · weight + bias, at one position of a row.
template <typename T>
inline void write_one(device const memory_of<T>* x, device const memory_of<T>* weight, device const memory_of<T>* bias,
                      device memory_of<T>* out, constant Norm& n, uint at, float mean, float scale) {
    float value = (storage<T>::load(x[at]) - mean) * scale;
    if (n.scaled) value *= storage<T>::load(weight[at]);
    if (n.shifted) value += storage<T>::load(bias[at]);
    out[at] = storage<T>::store(value);
}

// Apply this along one row. Full runs of 32 need no mask; with a mask, rows of 64 took 8 % longer on a CPU.
template <typename T>
inline void write_normal(device const memory_of<T>* x, device const memory_of<T>* weight, device const memory_of<T>* bias,
                         device memory_of<T>* out, constant Norm& n, uint count, uint lane, float mean, float scale) {
    const uint full = count / LANES * LANES;
    x += lane, weight += lane, bias += lane, out += lane;
    for (uint at = 0; at < full; at += LANES) write_one<T>(x, weight, bias, out, n, at, mean, scale);
    if (lane < count - full) write_one<T>(x, weight, bias, out, n, full, mean, scale);
}

template <typename T>
kernel void layer_norm(device const memory_of<T>* x, device const memory_of<T>* weight,
                       device const memory_of<T>* bias, device memory_of<T>* out, constant Norm& n,
                       uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                       uint simd [[simdgroup_index_in_threadgroup]], uint simds [[dispatch_simdgroups_per_threadgroup]]) {
    using Add = Sum<T, float, float, float>;
    using Spread = Variance<T, float, float, float>;
    const uint row = group * simds + simd;
    x += n.offset + row * n.pitch;
    const float mean = across_lanes<Add>(along_row<Add>(x, n.count, lane, 0)) / n.count;
    const float variance = across_lanes<Spread>(along_row<Spread>(x, n.count, lane, mean)) / n.count;
    write_normal<T>(x, weight, bias, out + row * ulong(n.count), n, n.count, lane, mean, 1.0f / sqrt(variance + n.epsilon));
}

template <typename T>
kernel void rms_norm(device const memory_of<T>* x, device const memory_of<T>* weight, device const memory_of<T>* bias,
                     device memory_of<T>* out, constant Norm& n, uint group [[threadgroup_position_in_grid]],
                     uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                     uint simds [[dispatch_simdgroups_per_threadgroup]]) {
    using Squares = NormTwo<T, float, float, float>;
    const uint row = group * simds + simd;
    x += n.offset + row * n.pitch;
    const float square = across_lanes<Squares>(along_row<Squares>(x, n.count, lane, 0)) / n.count;
    write_normal<T>(x, weight, bias, out + row * ulong(n.count), n, n.count, lane, 0, 1.0f / sqrt(square + n.epsilon));
}

// Each threadgroup takes a row, which its SIMD-groups share.
template <typename T>
kernel void layer_norm_shared(device const memory_of<T>* x, device const memory_of<T>* weight,
                              device const memory_of<T>* bias, device memory_of<T>* out, constant Norm& n,
                              uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                              uint simd [[simdgroup_index_in_threadgroup]], uint simds [[simdgroups_per_threadgroup]]) {
    using Add = Sum<T, float, float, float>;
    using Spread = Variance<T, float, float, float>;
    threadgroup float shared[LANES];
    const Part part(n.count, simd, simds);
    x += n.offset + row * n.pitch + part.first;
    const float sum = across_lanes<Add>(along_row<Add>(x, part.count, lane, 0));
    const float mean = across_group<Add>(sum, shared, lane, simd, simds) / n.count;
    const float squares = across_lanes<Spread>(along_row<Spread>(x, part.count, lane, mean));
    const float variance = across_group<Spread>(squares, shared, lane, simd, simds) / n.count;
    write_normal<T>(x, weight + part.first, bias + part.first, out + row * ulong(n.count) + part.first, n, part.count, lane,
                    mean, 1.0f / sqrt(variance + n.epsilon));
}

template <typename T>
kernel void rms_norm_shared(device const memory_of<T>* x, device const memory_of<T>* weight,
                            device const memory_of<T>* bias, device memory_of<T>* out, constant Norm& n,
                            uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                            uint simd [[simdgroup_index_in_threadgroup]], uint simds [[simdgroups_per_threadgroup]]) {
    using Squares = NormTwo<T, float, float, float>;
    threadgroup float shared[LANES];
    const Part part(n.count, simd, simds);
    x += n.offset + row * n.pitch + part.first;
    const float sum = across_lanes<Squares>(along_row<Squares>(x, part.count, lane, 0));
    const float square = across_group<Squares>(sum, shared, lane, simd, simds) / n.count;
    write_normal<T>(x, weight + part.first, bias + part.first, out + row * ulong(n.count) + part.first, n, part.count, lane,
                    0, 1.0f / sqrt(square + n.epsilon));
}

// A row's channels: the channels of a group, the length of one, and the number of groups, which share the weights.
struct Channels {
    uint per_group, width, groups;
};

// out = (x - mean) · steep + shift, at one position of a channel.
template <typename T>
inline void write_line(device const memory_of<T>* x, device memory_of<T>* out, uint at, float mean, float steep, float shift) {
    out[at] = storage<T>::store(fma(storage<T>::load(x[at]) - mean, steep, shift));
}

// Each SIMD-group takes a group of channels; each channel has a weight and a bias.
template <typename T>
kernel void group_norm(device const memory_of<T>* x, device const float* weight, device const float* bias,
                       device memory_of<T>* out, constant Norm& n, constant Channels& channels,
                       uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                       uint simd [[simdgroup_index_in_threadgroup]], uint simds [[dispatch_simdgroups_per_threadgroup]]) {
    using Add = Sum<T, float, float, float>;
    using Spread = Variance<T, float, float, float>;
    const uint row = group * simds + simd;
    x += n.offset + row * n.pitch;
    out += row * ulong(n.count);
    const float mean = across_lanes<Add>(along_row<Add>(x, n.count, lane, 0)) / n.count;
    const float variance = across_lanes<Spread>(along_row<Spread>(x, n.count, lane, mean)) / n.count;
    const float scale = 1.0f / sqrt(variance + n.epsilon);
    const uint first = row % channels.groups * channels.per_group, full = channels.width / LANES * LANES;
    x += lane;
    out += lane;
    for (uint c = 0; c < channels.per_group; ++c, x += channels.width, out += channels.width) {
        const float steep = n.scaled ? scale * weight[first + c] : scale, shift = n.shifted ? bias[first + c] : 0.0f;
        for (uint at = 0; at < full; at += LANES) write_line<T>(x, out, at, mean, steep, shift);
        if (lane < channels.width - full) write_line<T>(x, out, full, mean, steep, shift);
    }
}
