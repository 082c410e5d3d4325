// The k largest of each row with their indices, one SIMD-group per row: each lane keeps a candidate, and butterfly
// shuffles find the winner of every round. Ties go to the lower index.
#include <metal_stdlib>
using namespace metal;

struct Candidate {
    float value;
    int index;

    bool beats(thread const Candidate &other) const {
        return value > other.value || (value == other.value && index < other.index);
    }
};

[[kernel]] void topk(device const float *rows [[buffer(0)]],
                     device float *values [[buffer(1)]],
                     device int *indices [[buffer(2)]],
                     constant int &columns [[buffer(3)]],
                     constant int &k [[buffer(4)]],
                     uint row [[threadgroup_position_in_grid]],
                     ushort lane [[thread_index_in_simdgroup]]) {
    device const float *x = rows + row * columns;

    // Skip elements already taken: those not below the last winner.
    Candidate last = {INFINITY, -1};
    for (int round = 0; round < k; ++round) {
        Candidate best = {-INFINITY, 0x7fffffff};
        for (int i = lane; i < columns; i += 32) {
            Candidate c{x[i], i};
            if (last.beats(c) && c.beats(best)) best = c;
        }
        #pragma unroll
        for (ushort mask = 16; mask > 0; mask >>= 1) {
            Candidate other;
            other.value = simd_shuffle_xor(best.value, mask);
            other.index = simd_shuffle_xor(best.index, mask);
            if (other.beats(best)) best = other;
        }
        if (simd_is_first()) {
            values[row * k + round] = best.value;
            indices[row * k + round] = best.index;
        }
        last = best;
    }
}
