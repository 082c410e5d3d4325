// Attention of few queries over many keys, as in decoding: softmax(q k^T) v by parts of the keys, which are combined
// afterwards. Idea: the keys and values must each be read once, so a SIMD-group takes a part of them for all queries
// that share them. SIDE lanes share a key, with COUNT numbers each; 32 / SIDE keys are processed at once. Each of these
// groups of lanes keeps a largest score and sums, and they are combined at the end of the part. Source: T. Dao et al., "Flash-Decoding for long-context inference", 2023.
#include <metalnb/attention.h>
#include <metalnb/unroll.h>

constant constexpr uint LANES = 32;
constant constexpr uint ABREAST = 4;  // keys per lane whose loads are in flight at once

/// The position in a row of a lane's i-th number. WIDE: a lane has eight adjacent numbers; otherwise adjacent numbers
/// belong to adjacent lanes.
template <uint SIDE, bool WIDE>
inline uint column(uint lane, uint i) { return WIDE ? lane % SIDE * 8 + i : lane % SIDE + i * SIDE; }

/// Read a lane's numbers of a row of `width` numbers, with zeros beyond the end. WIDE: `width` is a multiple of eight,
/// and rows begin at multiples of 16 bytes.
template <typename T, uint SIDE, uint COUNT, bool WIDE>
inline void read_row(thread float (&x)[COUNT], device const memory_of<T>* row, uint lane, uint width) {
    using M = memory_of<T>;
    if (WIDE) {
        const uint e = column<SIDE, true>(lane, 0);
        uint4 found[sizeof(M) / 2] = {};
        UNROLL for (uint w = 0; w < sizeof(M) / 2; ++w)
            if (e < width) found[w] = reinterpret_cast<device const uint4*>(row + e)[w];
        thread const M* numbers = reinterpret_cast<thread const M*>(found);
        UNROLL for (uint i = 0; i < COUNT; ++i) x[i] = storage<T>::load(numbers[i]);
    } else {
        UNROLL for (uint i = 0; i < COUNT; ++i) {
            const uint e = column<SIDE, false>(lane, i);
            x[i] = e < width ? float(storage<T>::load(row[e])) : 0.0f;
        }
    }
}

/// The sum over the SIDE lanes that share a key.
template <uint SIDE>
inline float sum_of_sharers(float x) {
    if (SIDE == LANES) return simd_sum(x);
    UNROLL for (uint d = 1; d < SIDE; d *= 2) x += simd_shuffle_xor(x, ushort(d));
    return x;
}

/// A part of the keys of a head, for ROWS of the queries that share them. MASKED: mask[query, key] is added to the
/// score.
template <typename T, uint SIDE, uint COUNT, uint ROWS, bool MASKED, bool WIDE>
kernel void attend_part(device const memory_of<T>* q, device const memory_of<T>* k, device const memory_of<T>* v,
                        device const float* mask, device float* parts, constant Attention& a,
                        uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    const uint rows = a.query_heads_per_key_head * a.queries;  // queries that share the keys
    const uint row_blocks = (rows + ROWS - 1) / ROWS;
    const uint part = group % a.key_parts, head = group / a.key_parts / row_blocks;
    const uint first_row = group / a.key_parts % row_blocks * ROWS;
    const uint slot = lane / SIDE;  // the index of this lane's key among those processed at once
    k += a.k + head * ulong(a.keys) * a.head_size;
    v += a.v + head * ulong(a.keys) * a.value_size;
    mask += a.mask;

    float query[ROWS][COUNT], sum[ROWS][COUNT], largest[ROWS], total[ROWS];
    uint visible[ROWS];  // the most keys that the query attends to
    ulong mask_row[ROWS];
    UNROLL for (uint r = 0; r < ROWS; ++r) {
        const uint row = min(first_row + r, rows - 1);
        const uint query_head = head * a.query_heads_per_key_head + row / a.queries, position = row % a.queries;
        device const memory_of<T>* from = q + a.q + (query_head * ulong(a.queries) + position) * a.head_size;
        UNROLL for (uint i = 0; i < COUNT; ++i) {
            const uint e = column<SIDE, WIDE>(lane, i);
            query[r][i] = e < a.head_size ? storage<T>::load(from[e]) * (a.scale * LOG2_E) : 0.0f;
            sum[r][i] = 0;
        }
        largest[r] = -INFINITY;
        total[r] = 0;
        visible[r] = a.causal ? min(a.keys, position + 1) : a.keys;
        mask_row[r] = query_head * a.mask_pitch + position * ulong(a.keys);
    }
    const uint begin = part * a.part_length, end = min(a.keys, begin + a.part_length);
    for (uint first = begin; first < end; first += ABREAST * LANES / SIDE) {
        float score[ROWS][ABREAST], numbers[ABREAST][COUNT];  // `numbers` has keys first, then values
        uint key[ABREAST];
        UNROLL for (uint u = 0; u < ABREAST; ++u) {
            key[u] = first + u * (LANES / SIDE) + slot;
            read_row<T, SIDE, COUNT, WIDE>(numbers[u], k + min(key[u], end - 1) * ulong(a.head_size), lane, a.head_size);
        }
        UNROLL for (uint r = 0; r < ROWS; ++r)
            UNROLL for (uint u = 0; u < ABREAST; ++u) {
                score[r][u] = 0;
                UNROLL for (uint i = 0; i < COUNT; ++i) score[r][u] = fma(query[r][i], numbers[u][i], score[r][u]);
                score[r][u] = sum_of_sharers<SIDE>(score[r][u]);
            }
        UNROLL for (uint u = 0; u < ABREAST; ++u)
            read_row<T, SIDE, COUNT, WIDE>(numbers[u], v + min(key[u], end - 1) * ulong(a.value_size), lane, a.value_size);
        UNROLL for (uint r = 0; r < ROWS; ++r) {
            float top = largest[r];
            UNROLL for (uint u = 0; u < ABREAST; ++u) {
                if (MASKED) score[r][u] += LOG2_E * mask[mask_row[r] + min(key[u], end - 1)];
                score[r][u] = key[u] < min(end, visible[r]) ? score[r][u] : -INFINITY;
                top = max(top, score[r][u]);
            }
            const float base = base_of(top), kept = exp2(largest[r] - base);
            largest[r] = top;
            total[r] *= kept;
            UNROLL for (uint i = 0; i < COUNT; ++i) sum[r][i] *= kept;
            UNROLL for (uint u = 0; u < ABREAST; ++u) {
                const float weight = exp2(score[r][u] - base);
                total[r] += weight;
                UNROLL for (uint i = 0; i < COUNT; ++i) sum[r][i] = fma(weight, numbers[u][i], sum[r][i]);
            }
        }
    }
    UNROLL for (uint r = 0; r < ROWS; ++r) {
        UNROLL for (uint d = SIDE; d < LANES; d *= 2) {
            const float other = simd_shuffle_xor(largest[r], ushort(d)), top = max(largest[r], other), base = base_of(top);
            const float kept = exp2(largest[r] - base), gained = exp2(other - base);
            total[r] = total[r] * kept + simd_shuffle_xor(total[r], ushort(d)) * gained;
            UNROLL for (uint i = 0; i < COUNT; ++i)
                sum[r][i] = sum[r][i] * kept + simd_shuffle_xor(sum[r][i], ushort(d)) * gained;
            largest[r] = top;
        }
        if (first_row + r >= rows || slot != 0) continue;
        const uint row = first_row + r, position = row % a.queries;
        const uint query_head = head * a.query_heads_per_key_head + row / a.queries;
        const ulong query_row = query_head * ulong(a.queries) + position;
        device float* to = parts + (query_row * a.key_parts + part) * (a.value_size + 2);
        UNROLL for (uint i = 0; i < COUNT; ++i)
            if (column<SIDE, WIDE>(lane, i) < a.value_size) to[2 + column<SIDE, WIDE>(lane, i)] = sum[r][i];
        if (lane == 0) {
            to[0] = largest[r];
            to[1] = total[r];
        }
    }
}

/// Combine the parts of a query; a SIMD-group takes each query.
template <typename T>
kernel void attend_together(device const float* parts, device memory_of<T>* out, constant Attention& a,
                            uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    const uint pitch = a.value_size + 2;
    parts += row * ulong(a.key_parts) * pitch;
    float largest = -INFINITY, total = 0;
    for (uint p = lane; p < a.key_parts; p += LANES) largest = max(largest, parts[p * pitch]);
    const float base = base_of(simd_max(largest));
    for (uint p = lane; p < a.key_parts; p += LANES) total += parts[p * pitch + 1] * exp2(parts[p * pitch] - base);
    const float share = share_of(simd_sum(total));
    for (uint e = lane; e < a.value_size; e += LANES) {
        float sum = 0;
        for (uint p = 0; p < a.key_parts; ++p) sum = fma(exp2(parts[p * pitch] - base), parts[p * pitch + 2 + e], sum);
        out[row * ulong(a.value_size) + e] = storage<T>::store(sum * share);
    }
}
