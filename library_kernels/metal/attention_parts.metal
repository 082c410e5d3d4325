// Attention of few queries over many keys, as in decoding: softmax(q k^T) v by parts of the keys, which are combined
// afterwards. Idea: the keys and values must each be read once, so a SIMD-group takes a part of them for all queries
// that share them. SIDE lanes share a key, with eight numbers each, so that neighbouring lanes read neighbours; 32 /
// SIDE keys are processed at once, by lanes with their own largest score and sums until the end of the part. Source: T.
// Dao et al., "Flash-Decoding for long-context inference", 2023.
#include <metalnb/attention.h>
#include <metalnb/unroll.h>

constant constexpr uint LANES = 32;
constant constexpr uint TURNS = 4;  // keys per lane that are in flight at once

/// Eight numbers of a row from e, of which `width` exist. WIDE: `width` is a multiple of eight, rows begin at 16 bytes.
template <typename T, bool WIDE>
inline void eight(thread float (&x)[8], device const memory_of<T>* row, uint e, uint width) {
    using M = memory_of<T>;
    if (WIDE) {
        uint4 found[sizeof(M) / 2] = {};
        UNROLL for (uint w = 0; w < sizeof(M) / 2; ++w)
            if (e < width) found[w] = reinterpret_cast<device const uint4*>(row + e)[w];
        thread const M* numbers = reinterpret_cast<thread const M*>(found);
        UNROLL for (uint i = 0; i < 8; ++i) x[i] = storage<T>::load(numbers[i]);
    } else {
        UNROLL for (uint i = 0; i < 8; ++i) x[i] = e + i < width ? float(storage<T>::load(row[e + i])) : 0.0f;
    }
}

/// A part of the keys of a head, for ROWS of the queries that share them. MASKED: mask[query, key] is added to the score.
template <typename T, uint SIDE, uint ROWS, bool MASKED, bool WIDE>
kernel void attend_part(device const memory_of<T>* q, device const memory_of<T>* k, device const memory_of<T>* v,
                        device const float* mask, device float* parts, constant Attention& a,
                        uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    const uint part = group % a.blocks, all = a.share * a.queries, chunks = (all + ROWS - 1) / ROWS;
    const uint head = group / a.blocks / chunks, first = group / a.blocks % chunks * ROWS;
    const uint slot = lane / SIDE, e = lane % SIDE * 8;
    k += a.k + head * ulong(a.keys) * a.own;
    v += a.v + head * ulong(a.keys) * a.wide;
    mask += a.mask;

    float x[ROWS][8], sum[ROWS][8], most[ROWS], total[ROWS];
    uint seen[ROWS];
    ulong own_mask[ROWS];
    UNROLL for (uint r = 0; r < ROWS; ++r) {
        const uint row = min(first + r, all - 1), own = head * a.share + row / a.queries, query = row % a.queries;
        eight<T, false>(x[r], q + a.q + (own * ulong(a.queries) + query) * a.own, e, a.own);
        UNROLL for (uint i = 0; i < 8; ++i) {
            x[r][i] *= a.scale * LOG2_E;
            sum[r][i] = 0;
        }
        most[r] = -INFINITY;
        total[r] = 0;
        seen[r] = a.causal ? min(a.keys, query + 1) : a.keys;
        own_mask[r] = own * a.mask_pitch + query * ulong(a.keys);
    }
    const uint begin = part * a.stretch, end = min(a.keys, begin + a.stretch);
    for (uint key = begin; key < end; key += TURNS * LANES / SIDE) {
        float s[ROWS][TURNS], y[TURNS][8];
        uint at[TURNS];
        UNROLL for (uint u = 0; u < TURNS; ++u) {
            at[u] = key + u * (LANES / SIDE) + slot;
            eight<T, WIDE>(y[u], k + min(at[u], end - 1) * ulong(a.own), e, a.own);
        }
        UNROLL for (uint r = 0; r < ROWS; ++r)
            UNROLL for (uint u = 0; u < TURNS; ++u) {
                s[r][u] = 0;
                UNROLL for (uint i = 0; i < 8; ++i) s[r][u] = fma(x[r][i], y[u][i], s[r][u]);
                UNROLL for (uint d = 1; d < SIDE; d *= 2) s[r][u] += simd_shuffle_xor(s[r][u], ushort(d));
            }
        UNROLL for (uint u = 0; u < TURNS; ++u) eight<T, WIDE>(y[u], v + min(at[u], end - 1) * ulong(a.wide), e, a.wide);
        UNROLL for (uint r = 0; r < ROWS; ++r) {
            float top = most[r];
            UNROLL for (uint u = 0; u < TURNS; ++u) {
                if (MASKED) s[r][u] += LOG2_E * mask[own_mask[r] + min(at[u], end - 1)];
                s[r][u] = at[u] < min(end, seen[r]) ? s[r][u] : -INFINITY;
                top = max(top, s[r][u]);
            }
            const float base = base_of(top), kept = exp2(most[r] - base);
            most[r] = top;
            total[r] *= kept;
            UNROLL for (uint i = 0; i < 8; ++i) sum[r][i] *= kept;
            UNROLL for (uint u = 0; u < TURNS; ++u) {
                const float weight = exp2(s[r][u] - base);
                total[r] += weight;
                UNROLL for (uint i = 0; i < 8; ++i) sum[r][i] = fma(weight, y[u][i], sum[r][i]);
            }
        }
    }
    UNROLL for (uint r = 0; r < ROWS; ++r) {
        UNROLL for (uint d = SIDE; d < LANES; d *= 2) {
            const float other = simd_shuffle_xor(most[r], ushort(d)), top = max(most[r], other), base = base_of(top);
            const float kept = exp2(most[r] - base), gained = exp2(other - base);
            total[r] = total[r] * kept + simd_shuffle_xor(total[r], ushort(d)) * gained;
            UNROLL for (uint i = 0; i < 8; ++i) sum[r][i] = sum[r][i] * kept + simd_shuffle_xor(sum[r][i], ushort(d)) * gained;
            most[r] = top;
        }
        if (first + r >= all || slot != 0) continue;
        const uint row = first + r, own = head * a.share + row / a.queries;
        device float* to = parts + ((own * ulong(a.queries) + row % a.queries) * a.blocks + part) * (a.wide + 2);
        UNROLL for (uint i = 0; i < 8; ++i)
            if (e + i < a.wide) to[2 + e + i] = sum[r][i];
        if (e == 0) {
            to[0] = most[r];
            to[1] = total[r];
        }
    }
}

/// Combine the parts of a query in a SIMD-group.
template <typename T>
kernel void attend_together(device const float* parts, device memory_of<T>* out, constant Attention& a,
                            uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    const uint pitch = a.wide + 2;
    parts += row * ulong(a.blocks) * pitch;
    float most = -INFINITY, total = 0;
    for (uint p = lane; p < a.blocks; p += LANES) most = max(most, parts[p * pitch]);
    const float base = base_of(simd_max(most));
    for (uint p = lane; p < a.blocks; p += LANES) total += parts[p * pitch + 1] * exp2(parts[p * pitch] - base);
    const float share = share_of(simd_sum(total));
    for (uint e = lane; e < a.wide; e += LANES) {
        float sum = 0;
        for (uint p = 0; p < a.blocks; ++p) sum = fma(exp2(parts[p * pitch] - base), parts[p * pitch + 2 + e], sum);
        out[row * ulong(a.wide) + e] = storage<T>::store(sum * share);
    }
}
