#include <metal_stdlib>
using namespace metal;

kernel void segmented(device const float* a, device const uint* heads,
                      device float* out,
                      uint i [[thread_position_in_grid]],
                      uint lane [[thread_index_in_simdgroup]]) {
    uint votes = uint(simd_vote::vote_t(simd_ballot(heads[i] != 0))) | 1;
    uint start = 31 - clz(votes & (0xFFFFFFFF >> (31 - lane)));
    float sum = a[i];
    for (ushort gap = 1; gap < 32; gap *= 2) {
        float before = simd_shuffle_up(sum, gap);
        if (lane >= start + gap) sum += before;
    }
    out[i] = sum;
}
