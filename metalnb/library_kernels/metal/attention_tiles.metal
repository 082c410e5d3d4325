// Attention for devices with slow loads and no hardware for float matrices: softmax(q k^T) v, with the scores in
// registers. Idea: a threadgroup computes the scores of 64 queries and 64 keys, each thread 8 by 4 of them, from strips
// of both in threadgroup memory. The weights are stored there too, since a thread needs the weights of all keys for
// its 8 rows of sums. A thread has the same rows of scores and of sums, so it can scale its sums down when it finds a
// larger score. Source: T. Dao, "FlashAttention-2", 2023; V. Volkov, J. Demmel, "Benchmarking GPUs to Tune Dense Linear
// Algebra", SC 2008 (blocks in registers).
#include <metalnb/attention.h>
#include <metalnb/unroll.h>

constant constexpr uint SIDE = 64;     // the number of queries, and of keys, in a tile
constant constexpr uint THREADS = 128;  // 8 rows of 16: a thread has 8 queries and 4 keys
constant constexpr uint DEPTH = 32;    // the depth of a strip of queries or keys
constant constexpr uint PITCH = SIDE + 4;

/// The position of line i in row k of a strip: rotated by fours, so that a SIMD-group writes to different banks.
inline uint place(uint k, uint i) { return k * PITCH + (i + k / 4 * 4) % SIDE; }

/// Read four numbers of a row, beginning at e; the row has `width` numbers.
template <typename T, bool WIDE>
inline float4 four(device const memory_of<T>* row, uint e, uint width, bool there) {
    float4 x = 0;
    if (WIDE) {
        if (there && e < width) {
            const vec<memory_of<T>, 4> found = *reinterpret_cast<device const vec<memory_of<T>, 4>*>(row + e);
            UNROLL for (uint i = 0; i < 4; ++i) x[i] = storage<T>::load(found[i]);
        }
    } else {
        UNROLL for (uint i = 0; i < 4; ++i)
            if (there && e + i < width) x[i] = storage<T>::load(row[e + i]);
    }
    return x;
}

/// Load DEPTH numbers, beginning at e, of SIDE rows, beginning at `first`. Rows beyond the end repeat the last row.
template <typename T, bool WIDE>
inline void bring(threadgroup float* strip, device const memory_of<T>* from, uint width, uint first, uint rows, uint e,
                  uint t) {
    UNROLL for (uint i = t; i < SIDE * DEPTH / 4; i += THREADS) {
        const uint row = i / (DEPTH / 4), k = i % (DEPTH / 4) * 4;
        const float4 x = four<T, WIDE>(from + min(first + row, rows - 1) * ulong(width), e + k, width, true);
        UNROLL for (uint j = 0; j < 4; ++j) strip[place(k + j, row)] = x[j];
    }
}

inline float largest_of_16(float x) {
    UNROLL for (uint d = 1; d < 16; d *= 2) x = max(x, simd_shuffle_xor(x, ushort(d)));
    return x;
}

/// V: the length of a value, padded to a multiple of 64. MASKED: mask[query, key] is added to the score.
template <typename T, uint V, bool MASKED, bool WIDE>
[[max_total_threads_per_threadgroup(THREADS)]]
kernel void attend_tiles(device const memory_of<T>* q, device const memory_of<T>* k, device const memory_of<T>* v,
                         device const float* mask, device memory_of<T>* out, constant Attention& a,
                         uint group [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
    constexpr uint STRIP = 2048 / V, WEIGHTS = SIDE * PITCH, ROOM = WEIGHTS + STRIP * V;  // STRIP: values at once
    constexpr uint FOURS = V / 64;
    threadgroup float4 room[(ROOM > 2 * DEPTH * PITCH ? ROOM : 2 * DEPTH * PITCH) / 4];
    threadgroup float* const queries = reinterpret_cast<threadgroup float*>(room);
    threadgroup float* const keys = queries + DEPTH * PITCH;
    threadgroup float* const weights = queries;
    threadgroup float* const values = weights + WEIGHTS;
    const uint head = group / a.query_blocks;
    // The last queries, which attend to most keys, go first.
    const uint start = (a.query_blocks - 1 - group % a.query_blocks) * SIDE;
    const uint down = t / 16 * 8, across = t % 16 * 4, row = start + down;
    q += a.q + head * ulong(a.queries) * a.head_size;
    k += a.k + head / a.query_heads_per_key_head * ulong(a.keys) * a.head_size;
    v += a.v + head / a.query_heads_per_key_head * ulong(a.keys) * a.value_size;
    if (MASKED) mask += a.mask + head * a.mask_pitch;
    const float scale = a.scale * LOG2_E;

    float largest[8], total[8];
    float4 sum[8][FOURS];
    UNROLL for (uint r = 0; r < 8; ++r) {
        largest[r] = -INFINITY;
        total[r] = 0;
        UNROLL for (uint c = 0; c < FOURS; ++c) sum[r][c] = 0;
    }
    const uint end = a.causal ? min(a.keys, start + SIDE) : a.keys;
    for (uint key = 0; key < end; key += SIDE) {
        float4 s[8];
        UNROLL for (uint r = 0; r < 8; ++r) s[r] = 0;
        for (uint e = 0; e < a.head_size; e += DEPTH) {
            threadgroup_barrier(mem_flags::mem_threadgroup);
            bring<T, WIDE>(queries, q, a.head_size, start, a.queries, e, t);
            bring<T, WIDE>(keys, k, a.head_size, key, a.keys, e, t);
            threadgroup_barrier(mem_flags::mem_threadgroup);
            _Pragma("clang loop unroll_count(8)") for (uint d = 0; d < DEPTH; ++d) {
                const float4 y = *reinterpret_cast<threadgroup const float4*>(keys + place(d, across));
                UNROLL for (uint h = 0; h < 2; ++h) {
                    const float4 x = *reinterpret_cast<threadgroup const float4*>(queries + place(d, down + 4 * h));
                    UNROLL for (uint r = 0; r < 4; ++r) s[4 * h + r] = fma(x[r], y, s[4 * h + r]);
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const bool edge = key + SIDE > end || (a.causal && key + SIDE > row + 1);
        UNROLL for (uint r = 0; r < 8; ++r) {
            const uint visible = a.causal ? min(end, row + r + 1) : end;
            s[r] *= scale;
            UNROLL for (uint j = 0; j < 4; ++j) {
                const uint at = key + across + j;
                if (MASKED) s[r][j] += LOG2_E * mask[min(row + r, a.queries - 1) * ulong(a.keys) + min(at, a.keys - 1)];
                if (edge && at >= visible) s[r][j] = -INFINITY;
            }
            const float top = max(largest[r], largest_of_16(max(max(s[r][0], s[r][1]), max(s[r][2], s[r][3]))));
            const float base = base_of(top), kept = exp2(largest[r] - base);
            largest[r] = top;
            UNROLL for (uint j = 0; j < 4; ++j) s[r][j] = exp2(s[r][j] - base);
            total[r] = total[r] * kept + ((s[r][0] + s[r][1]) + (s[r][2] + s[r][3]));
            UNROLL for (uint c = 0; c < FOURS; ++c) sum[r][c] *= kept;
        }
        UNROLL for (uint j = 0; j < 4; ++j)
            UNROLL for (uint h = 0; h < 2; ++h)
                *reinterpret_cast<threadgroup float4*>(weights + place(across + j, down + 4 * h)) =
                    float4(s[4 * h][j], s[4 * h + 1][j], s[4 * h + 2][j], s[4 * h + 3][j]);
        for (uint first = 0; first < SIDE && key + first < end; first += STRIP) {
            UNROLL for (uint i = t; i < STRIP * V / 4; i += THREADS) {
                const uint at = key + first + i / (V / 4), e = i % (V / 4) * 4;
                device const memory_of<T>* row_of_v = v + min(at, a.keys - 1) * ulong(a.value_size);
                const float4 x = four<T, WIDE>(row_of_v, e, a.value_size, at < end);
                *reinterpret_cast<threadgroup float4*>(values + i * 4) = x;
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
            _Pragma("clang loop unroll_count(8)") for (uint d = 0; d < STRIP; ++d) {
                float4 x[2];
                UNROLL for (uint h = 0; h < 2; ++h)
                    x[h] = *reinterpret_cast<threadgroup const float4*>(weights + place(first + d, down + 4 * h));
                UNROLL for (uint c = 0; c < FOURS; ++c) {
                    const float4 y = *reinterpret_cast<threadgroup const float4*>(values + d * V + 64 * c + across);
                    UNROLL for (uint r = 0; r < 8; ++r) sum[r][c] = fma(x[r / 4][r % 4], y, sum[r][c]);
                }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
    }

    out += (head * ulong(a.queries) + row) * a.value_size;
    UNROLL for (uint r = 0; r < 8; ++r) {
        float all = total[r];
        UNROLL for (uint d = 1; d < 16; d *= 2) all += simd_shuffle_xor(all, ushort(d));
        const float share = share_of(all);
        if (row + r >= a.queries) continue;
        UNROLL for (uint c = 0; c < FOURS; ++c)
            UNROLL for (uint j = 0; j < 4; ++j) {
                const uint e = 64 * c + across + j;
                if (e < a.value_size) out[r * ulong(a.value_size) + e] = storage<T>::store(sum[r][c][j] * share);
            }
    }
}
