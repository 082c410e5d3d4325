// Softmax: exp(x - m) / Σ exp(x - m) along an axis, with m the largest element, so that no exp overflows; and its log.
// Idea: a SIMD-group takes a row and reads it three times (for m, for the sum, and to write), after the first time from
// its cache, so memory is read once and written once. Longer rows, and columns, are reduced first and then written.
// Source: M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax", 2018 (and why three reads are
// safe).
#pragma once
#include <metalnb/reduce.metal>

struct Softmax {
    long offset;        // of the first element, in elements
    long outer_pitch;   // from one outer index to the next
    long pitch;         // from one element of a softmax to the next (columns)
    uint count;         // elements of one softmax
    uint stretch;       // … that one SIMD-group writes
    uint rest;          // … that the last one writes
    uint parts;         // SIMD-groups to a softmax
    uint width;         // adjacent softmaxes: 1 for rows
};

// The value that all elements share: the reciprocal of the sum, or its logarithm.
template <bool LOG> inline float share(float total) { return LOG ? log(total) : 1.0f / total; }
template <bool LOG> inline float normal(float x, float largest, float share) {
    return LOG ? (x - largest) - share : exp(x - largest) * share;
}
template <typename T, typename R, typename Part, typename Acc> struct Share : SumExp<T, R, Part, Acc> {
    static float finish(Acc total, float, float) { return share<false>(total); }
};
template <typename T, typename R, typename Part, typename Acc> struct LogShare : SumExp<T, R, Part, Acc> {
    static float finish(Acc total, float, float) { return share<true>(total); }
};

template <typename T> using Most = Maximum<T, float, float, float>;
template <typename T> using Kept = Sum<T, float, float, float>;
template <typename T> using Total = SumExp<T, float, float, float>;

// Write `count` elements from x to out. Full runs of 32 need no mask; with a mask, a CPU took 5 to 21 % longer.
template <typename T, bool LOG>
inline void write_row(device const memory_of<T>* x, device memory_of<T>* out, uint count, uint lane, float largest,
                      float by) {
    const uint full = count / LANES;
    x += lane;
    out += lane;
    for (uint step = 0; step < full; ++step)
        out[step * LANES] = storage<T>::store(normal<LOG>(storage<T>::load(x[step * LANES]), largest, by));
    if (lane < count - full * LANES)
        out[full * LANES] = storage<T>::store(normal<LOG>(storage<T>::load(x[full * LANES]), largest, by));
}

template <typename T> inline void scale_row(device memory_of<T>* out, uint count, uint lane, float by) {
    const uint full = count / LANES;
    out += lane;
    for (uint step = 0; step < full; ++step)
        out[step * LANES] = storage<T>::store(storage<T>::load(out[step * LANES]) * by);
    if (lane < count - full * LANES)
        out[full * LANES] = storage<T>::store(storage<T>::load(out[full * LANES]) * by);
}

// Each SIMD-group takes a row.
template <typename T, bool LOG>
kernel void softmax_rows(device const memory_of<T>* x, device memory_of<T>* out, constant Softmax& s,
                         uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                         uint simd [[simdgroup_index_in_threadgroup]], uint simds [[dispatch_simdgroups_per_threadgroup]]) {
    const uint row = group * simds + simd;
    x += s.offset + row * s.outer_pitch;
    out += row * ulong(s.count);
    const float largest = across_lanes<Most<T>>(along_row<Most<T>>(x, s.count, lane, 0));
    const float total = across_lanes<Total<T>>(along_row<Total<T>>(x, s.count, lane, largest));
    write_row<T, LOG>(x, out, s.count, lane, largest, share<LOG>(total));
}

// Each SIMD-group takes a row of floats and keeps its exponentials in out. A CPU takes a third to a half longer if each
// exponential is computed twice.
template <typename T>
kernel void softmax_kept(device const memory_of<T>* x, device memory_of<T>* out, constant Softmax& s,
                         uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                         uint simd [[simdgroup_index_in_threadgroup]], uint simds [[dispatch_simdgroups_per_threadgroup]]) {
    const uint row = group * simds + simd;
    x += s.offset + row * s.outer_pitch;
    out += row * ulong(s.count);
    const float largest = across_lanes<Most<T>>(along_row<Most<T>>(x, s.count, lane, 0));
    write_row<T, false>(x, out, s.count, lane, largest, 1);
    const float total = across_lanes<Kept<T>>(along_row<Kept<T>>(out, s.count, lane, 0));
    scale_row<T>(out, s.count, lane, share<false>(total));
}

// Each threadgroup takes a row.
template <typename T, bool LOG>
kernel void softmax_shared(device const memory_of<T>* x, device memory_of<T>* out, constant Softmax& s,
                           uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                           uint simd [[simdgroup_index_in_threadgroup]], uint simds [[simdgroups_per_threadgroup]]) {
    threadgroup float shared[LANES];
    const Part part(s.count, simd, simds);
    x += s.offset + row * s.outer_pitch + part.first;
    const float simd_largest = across_lanes<Most<T>>(along_row<Most<T>>(x, part.count, lane, 0));
    const float largest = across_group<Most<T>>(simd_largest, shared, lane, simd, simds);
    const float sum = across_lanes<Total<T>>(along_row<Total<T>>(x, part.count, lane, largest));
    const float total = across_group<Total<T>>(sum, shared, lane, simd, simds);
    write_row<T, LOG>(x, out + row * ulong(s.count) + part.first, part.count, lane, largest, share<LOG>(total));
}

// Write a stretch of a long row, whose largest element and share are known.
template <typename T, bool LOG>
kernel void softmax_stretch(device const memory_of<T>* x, device const float* largest, device const float* shares,
                            device memory_of<T>* out, constant Softmax& s,
                            uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                            uint simd [[simdgroup_index_in_threadgroup]], uint simds [[dispatch_simdgroups_per_threadgroup]]) {
    const uint index = group * simds + simd, row = index / s.parts, part = index % s.parts;
    const ulong start = part * ulong(s.stretch);
    const uint count = part + 1 == s.parts ? s.rest : s.stretch;
    write_row<T, LOG>(x + s.offset + row * s.outer_pitch + start, out + row * ulong(s.count) + start, count, lane,
                      largest[row], shares[row]);
}

// Columns: a SIMD-group writes some rows of 32 columns.
template <typename T, bool LOG>
kernel void softmax_columns(device const memory_of<T>* x, device const float* largest, device const float* shares,
                            device memory_of<T>* out, constant Softmax& s,
                            uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    const uint part = group % s.parts, outer = group / s.parts;
    const uint count = part + 1 == s.parts ? s.rest : s.stretch, full = s.width / LANES * LANES;
    const ulong start = part * ulong(s.stretch);
    x += s.offset + outer * s.outer_pitch + start * s.pitch;
    out += (outer * ulong(s.count) + start) * s.width;
    largest += outer * ulong(s.width);
    shares += outer * ulong(s.width);
    x += lane;  // the lane is added last, so that the compiler sees that a SIMD-group accesses adjacent elements
    out += lane;
    largest += lane;
    shares += lane;
    for (uint i = 0; i < count; ++i, x += s.pitch, out += s.width) {
        for (uint at = 0; at < full; at += LANES)
            out[at] = storage<T>::store(normal<LOG>(storage<T>::load(x[at]), largest[at], shares[at]));
        if (lane < s.width - full)
            out[full] = storage<T>::store(normal<LOG>(storage<T>::load(x[full]), largest[full], shares[full]));
    }
}
