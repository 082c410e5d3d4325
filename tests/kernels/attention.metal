// Attention for small heads without the matrix of scores: each SIMD-group keeps one query, goes through the keys in
// tiles that the threadgroup loads together, and keeps a running maximum and sum (online softmax).
#include <metal_stdlib>
using namespace metal;

constant int HEAD_DIM [[function_constant(0)]];
constant bool CAUSAL [[function_constant(1)]];

constant constexpr int MAX_HEAD_DIM = 128;
constant constexpr int TILE = 32;
constant constexpr int SIMDGROUPS = 4;

struct attention_args {
    uint  queries;
    uint  keys;
    float scale;
    uint  gqa_factor;   // query heads per key head
};

[[kernel, max_total_threads_per_threadgroup(SIMDGROUPS * 32)]]
void attention(
    const device float* q [[buffer(0)]],   // heads, queries, dim
    const device half* k [[buffer(1)]],    // kv heads, keys, dim
    const device half* v [[buffer(2)]],
    device float* out [[buffer(3)]],
    constant attention_args& args [[buffer(4)]],
    uint2 tgid [[threadgroup_position_in_grid]],
    ushort simd_gid [[simdgroup_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]],
    ushort tid [[thread_index_in_threadgroup]]) {
    threadgroup half k_tile[TILE][MAX_HEAD_DIM + 2];
    threadgroup half v_tile[TILE][MAX_HEAD_DIM];
    threadgroup float q_rows[SIMDGROUPS][MAX_HEAD_DIM];

    const uint head = tgid.y;
    const uint row = tgid.x * SIMDGROUPS + simd_gid;
    const bool live = row < args.queries;
    const uint kv = head / args.gqa_factor;
    k += size_t(kv) * args.keys * HEAD_DIM;
    v += size_t(kv) * args.keys * HEAD_DIM;

    if (live) {
        for (int d = lane; d < HEAD_DIM; d += 32) {
            q_rows[simd_gid][d] = args.scale * q[(size_t(head) * args.queries + row) * HEAD_DIM + d];
        }
    }

    float o[MAX_HEAD_DIM / 32] = {0};
    float m = -INFINITY;
    float l = 0;
    // The last query attends to every key.
    const int limit = CAUSAL ? int(args.keys - args.queries + row) : int(args.keys) - 1;

    for (uint start = 0; start < args.keys; start += TILE) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const uint count = min(uint(TILE), args.keys - start);
        for (uint i = tid; i < count * HEAD_DIM; i += SIMDGROUPS * 32) {
            k_tile[i / HEAD_DIM][i % HEAD_DIM] = k[start * HEAD_DIM + i];
            v_tile[i / HEAD_DIM][i % HEAD_DIM] = v[start * HEAD_DIM + i];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (!live || int(start) > limit) continue;

        float score = -INFINITY;
        if (lane < count && int(start + lane) <= limit) {
            score = 0;
            for (int d = 0; d < HEAD_DIM; ++d) score += q_rows[simd_gid][d] * k_tile[lane][d];
        }

        const float m_new = max(m, simd_max(score));
        const float factor = exp(m - m_new);
        const float p = exp(score - m_new);
        l = l * factor + simd_sum(p);
        m = m_new;
        for (int i = 0; i < (HEAD_DIM + 31) / 32; ++i) o[i] *= factor;
        for (uint j = 0; j < count; ++j) {
            const float pj = simd_shuffle(p, ushort(j));
            for (int i = 0, d = lane; d < HEAD_DIM; ++i, d += 32) o[i] += pj * float(v_tile[j][d]);
        }
    }

    if (live) {
        for (int i = 0, d = lane; d < HEAD_DIM; ++i, d += 32) {
            out[(size_t(head) * args.queries + row) * HEAD_DIM + d] = o[i] / l;
        }
    }
}
