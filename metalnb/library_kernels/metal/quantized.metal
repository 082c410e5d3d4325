// Weights in blocks of 32 along K, each with a scale and, unless they are symmetric, a minimum: 4 or 8 bits for an
// element instead of 16 or 32. Products with few vectors read little besides weights, so they are faster in proportion.
//
// Idea: w = scale q + minimum within a block, so a block's part of a dot product is scale (q · x) + minimum (sum of x).
// A GPU's lane takes 8 bytes of R rows at a time. It unpacks q without conversions, which GPUs do at a quarter of the
// rate of additions, or less: 2^23 + n, as a float, has n in its lowest bits.
//
// Source: the blocks are those of G. Gerganov's ggml, Q4_1 and Q8_1; E. Frantar et al., "GPTQ", ICLR 2023, has the
// kernel.
#include <metal_stdlib>
#include <metalnb/quantized.h>
#include <metalnb/storage.h>
#include <metalnb/unroll.h>
using namespace metal;

/// One of the elements in half a word, unshifted: q · 2^(bits · e).
template <ushort bits>
inline float element(uint half_word, ushort e) {
    const uint mask = ((1u << bits) - 1) << (bits * e);
    return as_type<float>(0x4B000000u | (half_word & mask)) - 8388608.0f;
}

/// Quantize blocks of w; a SIMD-group takes each block. A block with a NaN, an infinity, or a range that overflows
/// float becomes NaN.
template <typename T, ushort bits, bool symmetric>
kernel void quantize(device const memory_of<T>* w       [[buffer(0)]],
                     device uint*               words   [[buffer(1)]],
                     device memory_of<T>*       scales  [[buffer(2)]],
                     device memory_of<T>*       minima  [[buffer(3)]],
                     constant ulong&            offset  [[buffer(4)]],
                     uint group [[threadgroup_position_in_grid]],
                     uint lane  [[thread_index_in_simdgroup]],
                     uint simd  [[simdgroup_index_in_threadgroup]],
                     uint simds [[dispatch_simdgroups_per_threadgroup]]) {
    constexpr uint largest = (1u << bits) - 1, middle = 1u << (bits - 1), per_word = 32 / bits;  // elements of a word
    const ulong block = ulong(group) * simds + simd;
    const float x = storage<T>::load(w[offset + block * BLOCK + lane]);
    const float low = simd_min(x), high = simd_max(x);
    const float range = symmetric ? 2 * max(-low, high) : high - low;
    const bool whole = simd_all(isfinite(x)) && isfinite(range);
    const auto stored = storage<T>::store(whole ? range / (symmetric ? largest - 1 : largest) : NAN);
    const float scale = storage<T>::load(stored);
    const float q = scale > 0 ? rint((symmetric ? x : x - low) / scale) + (symmetric ? middle : 0) : symmetric ? middle : 0;
    // Each lane has its element in place; a butterfly of shuffles puts the lanes of a word together.
    uint word = uint(clamp(q, symmetric ? 1.0f : 0.0f, float(largest))) << (lane % per_word * bits);
    UNROLL for (ushort apart = 1; apart < per_word; apart *= 2) word |= simd_shuffle_xor(word, apart);
    if (lane % per_word == 0) words[block * bits + lane / per_word] = word;
    if (lane == 0) {
        scales[block] = stored;
        if (!symmetric) minima[block] = storage<T>::store(low);
    }
}

/// Unpack a word in each thread.
template <typename T, typename S, ushort bits, bool symmetric>
kernel void dequantize(device const uint*         words  [[buffer(0)]],
                       device const memory_of<S>* scales [[buffer(1)]],
                       device const memory_of<S>* minima [[buffer(2)]],
                       device memory_of<T>*       out    [[buffer(3)]],
                       constant Quantized&        p      [[buffer(4)]],
                       uint i [[thread_position_in_grid]]) {
    constexpr uint per_word = 32 / bits, middle = 1u << (bits - 1);
    const uint word = (words + p.words)[i], block = i / bits;
    const float scale = storage<S>::load((scales + p.scales)[block]);
    const float minimum = symmetric ? 0.0f : storage<S>::load((minima + p.minima)[block]);
    device vec<memory_of<T>, 4>* to = reinterpret_cast<device vec<memory_of<T>, 4>*>(out) + ulong(i) * (per_word / 4);
    UNROLL for (ushort first = 0; first < per_word; first += 4) {
        vec<memory_of<T>, 4> result;
        UNROLL for (ushort e = 0; e < 4; ++e) {
            const int q = int(extract_bits(word, (first + e) * bits, bits)) - (symmetric ? int(middle) : 0);
            result[e] = storage<T>::store(symmetric ? q * scale : fma(float(q), scale, minimum));
        }
        to[first / 4] = result;
    }
}

/// Adds the contribution of 8 bytes of R rows to the dot products with X vectors.
template <typename T, typename S, ushort bits, bool symmetric, ushort R, ushort X>
inline void add_chunk(thread float (&sum)[R][X], device const memory_of<T>* x, device const uint2* words,
                      device const memory_of<S>* scales, device const memory_of<S>* minima, uint K, uint chunk) {
    constexpr ushort count = 64 / bits, fields = 16 / bits, middle = 1u << (bits - 1);
    const uint chunks = K / count, blocks = K / BLOCK, block = chunk * count / BLOCK;
    uint2 packed[R];
    float scale[R], minimum[R];
    UNROLL for (ushort r = 0; r < R; ++r) {  // the loads with the longest latency first
        packed[r] = words[r * chunks + chunk];
        scale[r] = storage<S>::load(scales[r * blocks + block]);
        minimum[r] = symmetric ? 0.0f : storage<S>::load(minima[r * blocks + block]);
    }
    float at[X][count], total[X];
    UNROLL for (ushort v = 0; v < X; ++v) {
        device const auto* from = reinterpret_cast<device const vec<memory_of<T>, 4>*>(x + v * ulong(K)) + chunk * (count / 4);
        total[v] = 0;
        UNROLL for (ushort four = 0; four < count / 4; ++four) {
            const vec<memory_of<T>, 4> read = from[four];
            UNROLL for (ushort e = 0; e < 4; ++e) {
                const ushort n = four * 4 + e;
                const float value = storage<T>::load(read[e]);
                total[v] += value;
                at[v][n] = value * (1.0f / (1u << bits * (n % fields)));  // the scaling that element() leaves out
            }
        }
    }
    UNROLL for (ushort r = 0; r < R; ++r) {
        float q[count];
        UNROLL for (ushort part = 0; part < 4; ++part) {
            const uint half_word = (part < 2 ? packed[r].x : packed[r].y) >> (part % 2 * 16);
            UNROLL for (ushort e = 0; e < fields; ++e) q[part * fields + e] = element<bits>(half_word, e);
        }
        UNROLL for (ushort v = 0; v < X; ++v) {
            float dot = symmetric ? -float(middle) * total[v] : 0.0f;
            UNROLL for (ushort n = 0; n < count; ++n) dot = fma(q[n], at[v][n], dot);
            sum[r][v] = fma(scale[r], dot, symmetric ? sum[r][v] : fma(minimum[r], total[v], sum[r][v]));
        }
    }
}

/// Adds the contribution of a block of R rows to the dot products with X vectors: one element per lane.
template <typename T, typename S, ushort bits, bool symmetric, ushort R, ushort X>
inline void add_block(thread float (&sum)[R][X], device const memory_of<T>* x, device const uint* words,
                      device const memory_of<S>* scales, device const memory_of<S>* minima, uint K, uint block, uint lane) {
    constexpr uint per_word = 32 / bits, largest = (1u << bits) - 1, middle = 1u << (bits - 1);
    const uint blocks = K / BLOCK;
    float at[X];
    UNROLL for (ushort v = 0; v < X; ++v) at[v] = storage<T>::load((x + v * ulong(K) + block * BLOCK)[lane]);
    UNROLL for (ushort r = 0; r < R; ++r) {
        const uint word = (words + (r * blocks + block) * bits)[lane / per_word];
        const float q = int(word >> lane % per_word * bits & largest) - (symmetric ? int(middle) : 0);
        const float scale = storage<S>::load(scales[r * blocks + block]);
        const float w = symmetric ? q * scale : fma(q, scale, storage<S>::load(minima[r * blocks + block]));
        UNROLL for (ushort v = 0; v < X; ++v) sum[r][v] = fma(w, at[v], sum[r][v]);
    }
}

/// Compute R outputs of X vectors. On a GPU, where loads of 8 bytes pay off, lanes take chunks; on a CPU, whose lanes
/// are parts of a vector, they take the elements of a block.
template <typename T, typename S, ushort bits, bool symmetric, ushort R, ushort X, bool chunked>
inline void dot_rows(device const memory_of<T>* x, device const uint* words, device const memory_of<S>* scales,
                     device const memory_of<S>* minima, device memory_of<T>* out, constant Quantized& p, uint lane) {
    float sum[R][X];
    UNROLL for (ushort r = 0; r < R; ++r)
        UNROLL for (ushort v = 0; v < X; ++v) sum[r][v] = 0;
    if (chunked) {
        device const auto* pairs = reinterpret_cast<device const uint2*>(words);
        const uint chunks = p.K / (64 / bits), whole = chunks / BLOCK * BLOCK;
        _Pragma("clang loop unroll_count(R * X > 2 ? 1 : 4)")  // few rows have too few loads to hide latency
        for (uint chunk = 0; chunk < whole; chunk += BLOCK)
            add_chunk<T, S, bits, symmetric>(sum, x, pairs, scales, minima, p.K, chunk + lane);
        if (whole + lane < chunks) add_chunk<T, S, bits, symmetric>(sum, x, pairs, scales, minima, p.K, whole + lane);
    } else {
        for (uint block = 0; block < p.K / BLOCK; ++block)
            add_block<T, S, bits, symmetric>(sum, x, words, scales, minima, p.K, block, lane);
    }
    UNROLL for (ushort r = 0; r < R; ++r)
        UNROLL for (ushort v = 0; v < X; ++v) {
            const float result = simd_sum(sum[r][v]);
            if (lane == 0) out[v * ulong(p.N) + r] = storage<T>::store(result);
        }
}

/// out = x w^T for few vectors x: a SIMD-group computes R outputs of X vectors. Consecutive ones share the rows.
template <typename T, typename S, ushort bits, bool symmetric, ushort R, ushort X, bool chunked>
kernel void quantized_dots(device const memory_of<T>* x      [[buffer(0)]],
                           device const uint*         words  [[buffer(1)]],
                           device const memory_of<S>* scales [[buffer(2)]],
                           device const memory_of<S>* minima [[buffer(3)]],
                           device memory_of<T>*       out    [[buffer(4)]],
                           constant Quantized&        p      [[buffer(5)]],
                           uint group [[threadgroup_position_in_grid]],
                           uint lane  [[thread_index_in_simdgroup]],
                           uint simd  [[simdgroup_index_in_threadgroup]],
                           uint simds [[dispatch_simdgroups_per_threadgroup]]) {
    const uint number = group * simds + simd, vectors = p.M / X;
    uint row = number / vectors * R, end = row + R;
    const uint vector = number % vectors * X, blocks = p.K / BLOCK;
    x += p.x + ulong(vector) * p.K;
    words += p.words + ulong(row) * blocks * bits;
    scales += p.scales + ulong(row) * blocks;
    minima += p.minima + ulong(row) * blocks;
    out += ulong(vector) * p.N + row;
    if (end <= p.N) {
        dot_rows<T, S, bits, symmetric, R, X, chunked>(x, words, scales, minima, out, p, lane);
        return;
    }
    for (; row < p.N; ++row, words += blocks * bits, scales += blocks, minima += blocks, ++out)
        dot_rows<T, S, bits, symmetric, 1, X, chunked>(x, words, scales, minima, out, p, lane);
}
