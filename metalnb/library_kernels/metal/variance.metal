// Variances and standard deviations that read each element once, for devices with slow loads. A threadgroup keeps a
// chunk of a row in registers and goes through it twice: for its mean, and for the distances from it. The chunks of a
// longer row are combined afterwards. No two large sums are subtracted, so a mean far from 0 does no harm.
//
// Source: T. Chan, G. Golub, R. LeVeque, "Algorithms for Computing the Sample Variance", Am. Stat. 37 (1983): the
// distances' own sum corrects the rounded mean (1.7), and parts are combined by (2.1).
#include <metalnb/reduce.metal>

constant constexpr uint THREADS = 256;  // threads per threadgroup

/// Rows, and how they are split into chunks of `chunk` elements, the last of `rest`.
struct ChunkedRows {
    ulong offset;   // of the first row; rows follow each other
    uint count, chunk, rest, chunks;
    float divisor;  // of the sum of squares
    uint unused;
};

/// The statistics of a chunk: its rounded mean, that mean's error, and the sum of the squared distances.
struct Chunk {
    float mean, mean_error, squares;
};

using Total = Sum<float, float, float, float>;

template <bool ROOT>
inline float finished(float squares, constant ChunkedRows& s) {
    const float variance = (squares < 0.0f ? 0.0f : squares) / s.divisor;
    return ROOT ? sqrt(variance) : variance;
}

/// Threadgroups: the chunk, then the row. A thread has N elements. With one chunk to a row, `out` is written, else
/// `chunks`.
template <typename T, bool ROOT, uint N>
kernel void variance_chunks(device const memory_of<T>* x [[buffer(0)]],
                            device Chunk* chunks         [[buffer(1)]],
                            device memory_of<T>* out     [[buffer(2)]],
                            constant ChunkedRows& s      [[buffer(3)]],
                            uint group  [[threadgroup_position_in_grid]],
                            uint t    [[thread_position_in_threadgroup]],
                            uint lane   [[thread_index_in_simdgroup]],
                            uint simd   [[simdgroup_index_in_threadgroup]],
                            uint simds  [[simdgroups_per_threadgroup]]) {
    threadgroup float shared[LANES];
    const uint row = group / s.chunks, chunk = group % s.chunks, count = chunk + 1 == s.chunks ? s.rest : s.chunk;
    x += s.offset + row * ulong(s.count) + chunk * ulong(s.chunk);
    float value[N], sum = 0.0f;
    _Pragma("clang loop unroll(full)") for (uint i = 0; i < N; ++i) {
        const uint at = i * THREADS + t;
        value[i] = at < count ? storage<T>::load(x[at]) : 0.0f;
    }
    _Pragma("clang loop unroll(full)") for (uint i = 0; i < N; ++i) sum += value[i];
    const float mean = across_group<Total>(across_lanes<Total>(sum), shared, lane, simd, simds) / count;
    float mean_error = 0.0f, squares = 0.0f;
    _Pragma("clang loop unroll(full)") for (uint i = 0; i < N; ++i) {
        const float distance = i * THREADS + t < count ? value[i] - mean : 0.0f;
        mean_error += distance;
        squares = fma(distance, distance, squares);
    }
    mean_error = across_group<Total>(across_lanes<Total>(mean_error), shared, lane, simd, simds) / count;
    squares = across_group<Total>(across_lanes<Total>(squares), shared, lane, simd, simds);
    squares -= mean_error * mean_error * count;
    if (t != 0) return;
    if (s.chunks == 1) out[row] = storage<T>::store(finished<ROOT>(squares, s));
    else chunks[group] = Chunk{mean, mean_error, squares};
}

/// Combines a row's chunks. Threadgroups: the row.
template <typename T, bool ROOT>
kernel void variance_rows(device const Chunk* chunks [[buffer(0)]],
                          device memory_of<T>* out   [[buffer(1)]],
                          constant ChunkedRows& s    [[buffer(2)]],
                          uint row    [[threadgroup_position_in_grid]],
                          uint t    [[thread_position_in_threadgroup]],
                          uint lane   [[thread_index_in_simdgroup]],
                          uint simd   [[simdgroup_index_in_threadgroup]],
                          uint simds  [[simdgroups_per_threadgroup]]) {
    threadgroup float shared[LANES];
    chunks += row * ulong(s.chunks);
    const float base = chunks[0].mean;  // the means are close together, so their differences are almost exact
    float sum = 0.0f;
    for (uint i = t; i < s.chunks; i += THREADS) {
        const float share = float(i + 1 == s.chunks ? s.rest : s.chunk) / s.count;
        sum = fma(share, chunks[i].mean - base + chunks[i].mean_error, sum);
    }
    const float mean = across_group<Total>(across_lanes<Total>(sum), shared, lane, simd, simds);
    float squares = 0.0f;
    for (uint i = t; i < s.chunks; i += THREADS) {
        const float distance = chunks[i].mean - base + chunks[i].mean_error - mean;
        const uint count = i + 1 == s.chunks ? s.rest : s.chunk;
        squares += fma(distance * distance, float(count), chunks[i].squares);
    }
    squares = across_group<Total>(across_lanes<Total>(squares), shared, lane, simd, simds);
    if (t == 0) out[row] = storage<T>::store(finished<ROOT>(squares, s));
}
