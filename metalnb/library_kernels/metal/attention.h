// Parameters of the attention kernels. Scores are kept as exponents of two, so that each weight is one exp2.
#pragma once
#include <metal_stdlib>
#include <metalnb/storage.h>
using namespace metal;

struct Attention {
    ulong q, k, v, mask;  // the offset of each array in its memory, in elements
    ulong mask_pitch;     // from one head's mask to the next; 0 if they share one
    uint queries;         // rows of q for each head
    uint keys;            // rows of k and v
    uint head_size;       // numbers in a query, and in a key
    uint value_size;      // numbers in a value
    uint query_heads_per_key_head;
    uint causal;          // whether a query attends only to keys up to its own position
    uint query_blocks;    // blocks of queries in a head; 0 in attention_parts.metal
    uint key_parts;       // parts of the keys, in attention_parts.metal; otherwise 0
    uint part_length;     // keys in a part; otherwise 0
    float scale;          // of the scores
};

constant constexpr float LOG2_E = 1.44269504088896340736f;

/// The reference for scores: the largest so far, or 0 before there is one.
inline float base_of(float largest) { return largest == -INFINITY ? 0.0f : largest; }

/// The factor that normalizes a sum of weighted values; it is 0 for a query that attends to no key.
inline float share_of(float total) { return total == 0.0f ? 0.0f : 1.0f / total; }
