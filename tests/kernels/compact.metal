// Keep the elements above a threshold in order: a ballot determines each lane's position in the SIMD-group, a scan of
// the counts the SIMD-groups' positions, and a scan over the threadgroups theirs.
#include <metal_stdlib>
#include <metal_atomic>
using namespace metal;

// First dispatch: count how many elements each threadgroup keeps.
kernel void compact_count(device const float* x,
                          device uint* counts,
                          constant float& threshold,
                          uint i [[thread_position_in_grid]],
                          uint lid [[thread_index_in_threadgroup]],
                          uint group [[threadgroup_position_in_grid]]) {
    threadgroup atomic_uint count;
    if (lid == 0) atomic_store_explicit(&count, 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint votes = popcount(uint(simd_vote::vote_t(simd_ballot(x[i] > threshold))));
    if (simd_is_first()) atomic_fetch_add_explicit(&count, votes, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lid == 0) counts[group] = atomic_load_explicit(&count, memory_order_relaxed);
}

// Second dispatch, one SIMD-group: the counts' exclusive sum, in place.
kernel void compact_offsets(device uint* counts, constant uint& groups, device uint& total,
                            uint lane [[thread_index_in_simdgroup]]) {
    uint running = 0;
    for (uint start = 0; start < groups; start += 32) {
        const uint count = start + lane < groups ? counts[start + lane] : 0;
        const uint before = running + simd_prefix_exclusive_sum(count);
        if (start + lane < groups) counts[start + lane] = before;
        running = simd_broadcast(before + count, 31);
    }
    if (lane == 0) total = running;
}

// Third dispatch: write.
kernel void compact_write(device const float* x,
                          device const uint* offsets,
                          device float2* kept,   // value, index
                          constant float& threshold,
                          uint i [[thread_position_in_grid]],
                          uint group [[threadgroup_position_in_grid]],
                          uint lane [[thread_index_in_simdgroup]],
                          uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup uint before[32];
    const float value = x[i];
    const bool keep = value > threshold;
    const uint votes = uint(static_cast<simd_vote::vote_t>(simd_ballot(keep)));
    if (lane == 0) before[simdgroup] = popcount(votes);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint place = offsets[group] + popcount(votes & ((1u << lane) - 1));
    for (uint s = 0; s < simdgroup; ++s) place += before[s];
    if (keep) kept[place] = float2(value, float(i));
}
