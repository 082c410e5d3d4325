#include <metal_stdlib>
using namespace metal;

kernel void partitioned(device const float* a, device float* out,
                        uint i [[thread_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
    float own = a[i];
    uint votes = uint(simd_vote::vote_t(simd_ballot(own > 0)));
    uint before = popcount(votes & ((1u << lane) - 1));
    uint place = own > 0 ? before : popcount(votes) + lane - before;
    out[i - lane + place] = own;
}
