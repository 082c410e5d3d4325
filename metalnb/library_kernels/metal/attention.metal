// Attention: softmax(q k^T) v, without ever storing the matrix of scores. Idea: a SIMD-group takes 32 queries, one per
// lane, and makes one pass over the keys, eight at a time. A key and its value are the same for all lanes, so each is
// loaded once for 32 queries. The sum of values is kept relative to the largest score so far, and scaled down when a
// larger one is found. Source: T. Dao et al., "FlashAttention", 2022; M. Milakov and N. Gimelshein, "Online normalizer
// calculation for softmax", 2018.
#include <metalnb/attention.h>

constant constexpr uint LANES = 32;
constant constexpr uint KEYS = 8;  // keys that are processed together

// A query and a key have E numbers each, and a value has V. MASKED: mask[query, key] is added to the score.
template <typename T, uint E, uint V, bool MASKED>
kernel void attend(device const memory_of<T>* q, device const memory_of<T>* k, device const memory_of<T>* v,
                   device const float* mask, device memory_of<T>* out, constant Attention& a,
                   uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float queries[E * LANES];  // each lane accesses only its own column of both
    threadgroup float sums[V * LANES];
    const uint head = group / a.query_blocks, first = group % a.query_blocks * LANES, row = first + lane;
    const uint known = min(row, a.queries - 1);  // lanes beyond the last query repeat the work of the last query
    q += a.q + (head * ulong(a.queries) + known) * E;
    k += a.k + head / a.query_heads_per_key_head * ulong(a.keys) * E;
    v += a.v + head / a.query_heads_per_key_head * ulong(a.keys) * V;
    if (MASKED) mask += a.mask + head * a.mask_pitch + known * ulong(a.keys);
    for (uint e = 0; e < E; ++e) queries[e * LANES + lane] = storage<T>::load(q[e]) * a.scale;
    for (uint e = 0; e < V; ++e) sums[e * LANES + lane] = 0;

    float largest = -INFINITY, total = 0;
    const uint end = a.causal ? min(a.keys, first + LANES) : a.keys;
    for (uint key = 0; key < end; key += KEYS) {
        float s[KEYS];
        uint at[KEYS];
        for (uint j = 0; j < KEYS; ++j) {
            s[j] = 0;
            at[j] = min(key + j, a.keys - 1);
        }
        for (uint e = 0; e < E; ++e) {
            const float x = queries[e * LANES + lane];
            for (uint j = 0; j < KEYS; ++j) s[j] = fma(x, storage<T>::load(k[at[j] * ulong(E) + e]), s[j]);
        }
        float top = largest;
        for (uint j = 0; j < KEYS; ++j) {
            if (MASKED) s[j] += mask[at[j]];
            s[j] = key + j < end && !(a.causal && key + j > row) ? s[j] : -INFINITY;
            top = max(top, s[j]);
        }
        const float base = base_of(top), kept = exp(largest - base);
        total *= kept;
        for (uint j = 0; j < KEYS; ++j) {
            s[j] = exp(s[j] - base);
            total += s[j];
        }
        for (uint e = 0; e < V; ++e) {
            float sum = sums[e * LANES + lane] * kept;
            for (uint j = 0; j < KEYS; ++j) sum = fma(s[j], storage<T>::load(v[at[j] * ulong(V) + e]), sum);
            sums[e * LANES + lane] = sum;
        }
        largest = top;
    }
    out += (head * ulong(a.queries) + known) * V;
    const float share = share_of(total);
    if (row < a.queries)
        for (uint e = 0; e < V; ++e) out[e] = storage<T>::store(sums[e * LANES + lane] * share);
}
