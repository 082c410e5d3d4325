// Functions of ballots: which lanes vote, and which lanes hold the same number.
// Source: Adinets, Merrill, "Onesweep: A Faster Least Significant Digit Radix Sort for GPUs", 2022, 4.2.
#pragma once
#include <metal_stdlib>
using namespace metal;

constant constexpr uint SIMD = 32;

// Return the lanes for which x is true, as one bit per lane.
inline uint votes_for(bool x) {
    return uint(simd_vote::vote_t(simd_ballot(x)));
}

// Return the number of lanes in `lanes` that come before this lane.
inline uint before(uint lanes, uint lane) {
    return popcount(lanes & ((1u << lane) - 1));
}

// Return the lanes whose number has the same lower bits as this lane's: the lanes that agree on each bit.
inline uint peers_of(uint number, bool valid, uint bits) {
    uint peers = votes_for(valid);
    for (uint bit = 0; bit < bits; ++bit) {
        const bool is_set = number >> bit & 1;
        const uint votes = votes_for(is_set);
        peers &= is_set ? votes : ~votes;
    }
    return peers;
}
