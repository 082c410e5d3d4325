// Parameters of the attention kernels. Scores are kept as exponents of two, so that each weight is one exp2.
#pragma once
#include <metal_stdlib>
#include <metalnb/storage.h>
using namespace metal;

struct Attention {
    ulong q, k, v, mask;  // the offset of each in its memory, in elements
    ulong mask_pitch;     // from one head's mask to the next; 0 if they share one
    uint queries;         // rows of q for each head
    uint keys;            // rows of k and v
    uint own, wide;       // the length of a query and of a key; the length of a value
    uint share;           // heads of q that share a head of k and v
    uint causal;          // whether a query attends to no key after its own position
    uint blocks;          // of queries in a head; in decoding, parts of the keys
    uint stretch;         // keys of a part
    float scale;          // of the scores
};

constant constexpr float LOG2_E = 1.44269504088896340736f;

/// The reference for scores: the largest so far, or 0 before there is one.
inline float base_of(float largest) { return largest == -INFINITY ? 0.0f : largest; }

/// The factor of a sum of weighted values; a query that attends to no key gets zeros.
inline float share_of(float total) { return total == 0.0f ? 0.0f : 1.0f / total; }
