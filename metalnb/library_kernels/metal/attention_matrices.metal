// Attention of half and bfloat by SIMD-group matrices: softmax(q k^T) v, with the scores only in registers.
// Idea: a SIMD-group keeps its queries, and their running sums of values, in matrices; its threadgroup iterates over
// tiles of keys in threadgroup memory. A tile's scores become weights in place, by row: lanes that hold parts of a row
// share its largest score, and the sums are scaled down when a larger one is found. The weights have the same layout as
// left factors as they had as sums. Tiles of keys and of values alternate in a ring: while one is read, the next two
// are in flight, and one barrier for each is enough. Tiles to which no query of a threadgroup attends are skipped.
// Source: T. Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023; M. Milakov
// and N. Gimelshein, "Online normalizer calculation for softmax", 2018.
#include <metalnb/attention.h>
#include <metalnb/copies.h>
#include <metalnb/matrix_elements.h>

constant constexpr uint SIMDS = 4, THREADS = 32 * SIMDS;
constant constexpr uint RING = 3;  // tiles in threadgroup memory

/// A tile of keys or values in threadgroup memory: KEYS rows of N numbers, of which `width` exist; N is a multiple of
/// 16.
template <typename T, uint N, uint KEYS, bool WIDE> struct Tile {
    static constexpr constant uint PITCH = N + 8;  // a matrix's rows fall into different banks
    static constexpr constant uint SIZE = PITCH * KEYS;

    /// Start loading the rows that begin at `first`, with 0 beyond the ends. WIDE: rows begin at multiples of 16 bytes.
    static void bring(threadgroup T* tile, device const T* from, uint width, uint first, uint keys, uint t) {
        constexpr uint EACH = WIDE ? 16 / sizeof(T) : 1, ROW = N / EACH;
        if (WIDE) {
            UNROLL for (uint i = 0; i < (KEYS * ROW + THREADS - 1) / THREADS; ++i) {
                const uint at = t + i * THREADS, key = at / ROW, e = at % ROW * EACH;
                if (KEYS * ROW % THREADS != 0 && at >= KEYS * ROW) break;
                const bool there = first + key < keys && e < width;
                device const T* source = from + (there ? (first + key) * ulong(width) + e : 0);
                metalnb_copy(reinterpret_cast<threadgroup uint4*>(tile + key * PITCH + e),
                             reinterpret_cast<device const uint4*>(source), there);
            }
        } else {
            for (uint at = t; at < KEYS * ROW; at += THREADS) {
                const uint key = at / ROW, e = at % ROW;
                const bool there = first + key < keys && e < width;
                tile[key * PITCH + e] = there ? from[(first + key) * ulong(width) + e] : T(0);
            }
        }
        metalnb_close_copies();
    }
};

/// E and V are the lengths of a query and of a value, padded with zeros. A tile has KEYS keys. A SIMD-group has HIGH
/// matrices of 8 queries. MASKED: mask[query, key] is added to the score.
template <typename T, uint E, uint V, uint KEYS, uint HIGH, bool MASKED, bool WIDE>
[[max_total_threads_per_threadgroup(THREADS)]]
kernel void attend_matrices(device const T* q, device const T* k, device const T* v, device const float* mask,
                            device T* out, constant Attention& a, uint group [[threadgroup_position_in_grid]],
                            uint t [[thread_index_in_threadgroup]]) {
    using Keys = Tile<T, E, KEYS, WIDE>;
    using Values = Tile<T, V, KEYS, WIDE>;
    constexpr uint SIZE = Keys::SIZE > Values::SIZE ? Keys::SIZE : Values::SIZE;
    threadgroup uint4 room[RING * SIZE * sizeof(T) / 16];
    threadgroup T* const ring = reinterpret_cast<threadgroup T*>(room);
    const uint lane = t % 32, head = group / a.query_blocks;
    // The last queries, which attend to most keys, go first.
    const uint start = (a.query_blocks - 1 - group % a.query_blocks) * (8 * HIGH * SIMDS);
    const uint first = start + t / 32 * 8 * HIGH, row = first + metalnb_matrix_row(lane);
    const uint column = metalnb_matrix_column(lane);
    q += a.q + head * ulong(a.queries) * a.head_size;
    k += a.k + head / a.query_heads_per_key_head * ulong(a.keys) * a.head_size;
    v += a.v + head / a.query_heads_per_key_head * ulong(a.keys) * a.value_size;
    if (MASKED) mask += a.mask + head * a.mask_pitch;
    // Without a mask, scores are scaled where they become exponents. The factor must be positive, so that the largest
    // score stays the largest; its sign is applied to q.
    const float scale = a.scale * LOG2_E, factor = MASKED ? 1.0f : max(abs(scale), FLT_MIN);
    const float sign = !MASKED && scale < 0 ? -1.0f : 1.0f;

    const uint end = a.causal ? min(a.keys, start + 8 * HIGH * SIMDS) : a.keys;
    Keys::bring(ring, k, a.head_size, 0, end, t);
    Values::bring(ring + SIZE, v, a.value_size, 0, end, t);
    uint now = 0, free = RING - 1;  // places in the ring
    auto advance = [&](bool of_keys, uint from) {  // start loading the tile after the next; return the current one
        metalnb_wait_for_copies<RING - 2>();
        threadgroup_barrier(mem_flags::mem_threadgroup);  // the current tile has arrived, and all have read the last
        if (from >= end) metalnb_close_copies();
        else if (of_keys) Keys::bring(ring + free * SIZE, k, a.head_size, from, end, t);
        else Values::bring(ring + free * SIZE, v, a.value_size, from, end, t);
        threadgroup T* const current = ring + now * SIZE;
        now = now + 1 == RING ? 0 : now + 1;
        free = free + 1 == RING ? 0 : free + 1;
        return current;
    };
    simdgroup_matrix<T, 8, 8> x[HIGH][E / 8];
    simdgroup_float8x8 sum[HIGH][V / 8];
    float largest[HIGH], total[HIGH];
    EACH_MATRIX for (uint r = 0; r < HIGH; ++r) {
        largest[r] = -INFINITY;
        total[r] = 0;
        device const T* own = q + min(row + 8 * r, a.queries - 1) * ulong(a.head_size);
        EACH_MATRIX for (uint c = 0; c < E / 8; ++c) {
            const uint e = 8 * c + column;
            x[r][c] = metalnb_matrix_of<T>(e < a.head_size ? sign * float(own[e]) : 0.0f,
                                           e + 1 < a.head_size ? sign * float(own[e + 1]) : 0.0f);
        }
        EACH_MATRIX for (uint c = 0; c < V / 8; ++c) sum[r][c] = make_filled_simdgroup_matrix<float, 8, 8>(0);
    }

    for (uint key = 0; key < end; key += KEYS) {
        threadgroup T* const keys = advance(true, key + KEYS);
        simdgroup_float8x8 s[HIGH][KEYS / 8];
        EACH_MATRIX for (uint c = 0; c < KEYS / 8; ++c)
            EACH_MATRIX for (uint r = 0; r < HIGH; ++r) s[r][c] = make_filled_simdgroup_matrix<float, 8, 8>(0);
        EACH_MATRIX for (uint e = 0; e < E / 8; e += 2)
            EACH_MATRIX for (uint c = 0; c < KEYS / 8; c += 2) {
                simdgroup_matrix<T, 8, 8> y[2][2];
                metalnb_load_block<true, true>(y, keys + 8 * c * Keys::PITCH + 8 * e, 8 * Keys::PITCH, 8, Keys::PITCH);
                EACH_MATRIX for (uint i = 0; i < 2; ++i)
                    EACH_MATRIX for (uint r = 0; r < HIGH; r += 2)
                        metalnb_multiply_block(s[r][c + i], s[r + 1][c + i], x[r][e], x[r][e + 1], x[r + 1][e],
                                               x[r + 1][e + 1], y[i][0], y[i][1]);
            }

        simdgroup_matrix<T, 8, 8> weight[HIGH][KEYS / 8];
        // Whether the tile has a key that some query does not attend to.
        const bool edge = key + KEYS > end || (a.causal && key + KEYS > first + 1);
        EACH_MATRIX for (uint r = 0; r < HIGH; ++r) {
            const uint own = row + 8 * r;
            float top = largest[r];
            EACH_MATRIX for (uint c = 0; c < KEYS / 8; ++c) {
                float2 score = metalnb_matrix_elements(s[r][c]);
                const uint at = key + 8 * c + column;
                if (MASKED) {
                    device const float* added = mask + min(own, a.queries - 1) * ulong(a.keys);
                    score = score * scale + float2(added[min(at, a.keys - 1)], added[min(at + 1, a.keys - 1)]) * LOG2_E;
                }
                if (edge) {
                    const uint visible = a.causal ? min(end, own + 1) : end;
                    score = float2(at < visible ? score.x : -INFINITY, at + 1 < visible ? score.y : -INFINITY);
                }
                s[r][c] = metalnb_matrix_of<float>(score.x, score.y);
                top = max(top, max(score.x, score.y));
            }
            top = largest_of_row(top);
            const float base = base_of(top) * factor, kept = metalnb_exp2(fma(largest[r], factor, -base));
            largest[r] = top;
            total[r] *= kept;
            EACH_MATRIX for (uint c = 0; c < KEYS / 8; ++c) {
                const float2 score = fma(metalnb_matrix_elements(s[r][c]), factor, -base);
                const float2 part = float2(metalnb_exp2(score.x), metalnb_exp2(score.y));
                total[r] += part.x + part.y;
                weight[r][c] = metalnb_matrix_of<T>(part.x, part.y);
            }
            EACH_MATRIX for (uint c = 0; c < V / 8; ++c) {
                const float2 old = metalnb_matrix_elements(sum[r][c]) * kept;
                sum[r][c] = metalnb_matrix_of<float>(old.x, old.y);
            }
        }

        threadgroup T* const values = advance(false, key + KEYS);
        EACH_MATRIX for (uint e = 0; e < KEYS / 8; e += 2)
            EACH_MATRIX for (uint c = 0; c < V / 8; c += 2) {
                simdgroup_matrix<T, 8, 8> y[2][2];
                metalnb_load_block<true, false>(y, values + 8 * e * Values::PITCH + 8 * c, 8, 8 * Values::PITCH,
                                                Values::PITCH);
                EACH_MATRIX for (uint i = 0; i < 2; ++i)
                    EACH_MATRIX for (uint r = 0; r < HIGH; r += 2)
                        metalnb_multiply_block(sum[r][c + i], sum[r + 1][c + i], weight[r][e], weight[r][e + 1],
                                               weight[r + 1][e], weight[r + 1][e + 1], y[i][0], y[i][1]);
            }
    }

    out += head * ulong(a.queries) * a.value_size;
    EACH_MATRIX for (uint r = 0; r < HIGH; ++r) {
        const float share = share_of(sum_of_row(total[r]));
        if (row + 8 * r >= a.queries) continue;
        device T* own = out + (row + 8 * r) * ulong(a.value_size);
        EACH_MATRIX for (uint c = 0; c < V / 8; ++c) {
            const float2 mean = metalnb_matrix_elements(sum[r][c]) * share;
            const uint e = 8 * c + column;
            if (e < a.value_size) own[e] = T(mean.x);
            if (e + 1 < a.value_size) own[e + 1] = T(mean.y);
        }
    }
}
