// The first k keys of a row's sorted order, and their positions, without sorting the row: a radix select.
// Idea: the counts of each digit determine the k-th key's digits, most significant first; only keys that agree so far
// are counted for the next digit. Then all keys before the k-th are selected, and the first keys equal to it, up to k
// in all; a key's position is the number of selected keys before it. A long row is split into parts that yield candidates.
// Equal candidates keep their order, so the candidates' order is the row's. Source: T. Alabi, J. Blanchard, B. Gordon,
// R. Steinbach, "Fast k-Selection Algorithms for Graphics Processing Units", 2012.
#include <metalnb/selection.h>

constant constexpr uint MOST = 1024;  // the most keys that can be selected
constant constexpr uint DIGITS = 256;
constant constexpr uint SIMDS = 32;   // SIMD-groups in a threadgroup, at most

/// Return the digit of the `rank`-th counted key; `rank` becomes the key's rank among the keys with that digit.
inline uint digit_of_rank(threadgroup const atomic_uint* counts, thread uint& rank, uint lane) {
    constexpr uint EACH = DIGITS / SIMD;
    uint own[EACH], total = 0;
    for (uint i = 0; i < EACH; ++i) {
        own[i] = atomic_load_explicit(counts + lane * EACH + i, memory_order_relaxed);
        total += own[i];
    }
    uint before = simd_prefix_exclusive_sum(total), digit = 0;
    const bool holds_key = before < rank && rank <= before + total;
    for (uint i = 0; holds_key && i < EACH; ++i) {
        digit = lane * EACH + i;
        if (rank <= before + own[i]) break;
        before += own[i];
    }
    rank -= simd_sum(holds_key ? before : 0);
    return simd_sum(holds_key ? digit : 0);
}

/// INDEX: uint for candidates, long for a result.
template <typename U, typename INDEX>
kernel void select_keys(device const U* keys [[buffer(0)]],
                        device const uint* candidate_positions [[buffer(1)]],  // the candidates' positions
                        device U* out_keys [[buffer(2)]],
                        device INDEX* out_positions [[buffer(3)]],
                        constant Selection& s [[buffer(4)]],
                        uint group [[threadgroup_position_in_grid]],
                        uint t [[thread_index_in_threadgroup]],
                        uint threads [[threads_per_threadgroup]]) {
    threadgroup atomic_uint counts[DIGITS];
    threadgroup U selected[MOST];
    threadgroup uint selected_positions[MOST];
    threadgroup uint2 sums[SIMDS];
    const uint lane = t % SIMD, simd = t / SIMD, simds = threads / SIMD;
    const uint row = group / s.parts, part = group % s.parts;
    const uint begin = uint(part * ulong(s.n) / s.parts), end = uint((part + 1) * ulong(s.n) / s.parts);
    keys += s.start + row * ulong(s.n);

    U kth = 0, known = 0;  // the k-th key's digits so far, and the mask of their bits
    uint rank = s.k;
    for (uint shift = 8 * sizeof(U); shift > 0;) {
        shift -= 8;
        for (uint digit = t; digit < DIGITS; digit += threads) atomic_store_explicit(counts + digit, 0u, memory_order_relaxed);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = begin + t; i < end; i += threads) {
            const U key = ordered(keys[i]);
            if ((key & known) == kth)
                atomic_fetch_add_explicit(counts + (uint(key >> shift) & (DIGITS - 1)), 1u, memory_order_relaxed);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        kth |= U(digit_of_rank(counts, rank, lane)) << shift;  // each SIMD-group finds it
        known |= U(DIGITS - 1) << shift;
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    // A SIMD-group's keys are adjacent. It counts the keys before the k-th and the keys equal to it, which determines
    // their positions.
    const uint stretch = (end - begin + threads - 1) / threads * SIMD, first = begin + simd * stretch;
    const uint last = min(end, first + stretch);
    uint2 own = 0;
    for (uint base = first; base < last; base += SIMD) {
        const bool valid = base + lane < last;
        const U key = valid ? ordered(keys[base + lane]) : U(0);
        own += uint2(popcount(votes_for(valid && key < kth)), popcount(votes_for(valid && key == kth)));
    }
    if (lane == 0) sums[simd] = own;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint2 so_far = 0;
    for (uint i = 0; i < simd; ++i) so_far += sums[i];
    for (uint base = first; base < last; base += SIMD) {
        const uint i = base + lane;
        const bool valid = i < last;
        const U bits = valid ? keys[i] : U(0), key = ordered(bits);
        const uint less = votes_for(valid && key < kth), equal = votes_for(valid && key == kth);
        const uint2 position = so_far + uint2(before(less, lane), before(equal, lane));
        if (valid && (key < kth || (key == kth && position.y < rank))) {
            selected[position.x + min(position.y, rank)] = bits;
            selected_positions[position.x + min(position.y, rank)] = i;
        }
        so_far += uint2(popcount(less), popcount(equal));
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    out_keys += group * ulong(s.k);
    out_positions += group * ulong(s.k);
    for (uint i = t; i < s.k; i += threads) {
        const U bits = selected[i], key = ordered(bits);
        uint position = 0;
        for (uint j = 0; j < s.k; ++j) {
            const U other = ordered(selected[j]);
            position += other < key || (other == key && j < i);
        }
        out_keys[position] = bits;
        const uint at = selected_positions[i];
        out_positions[position] = s.are_candidates ? candidate_positions[row * ulong(s.n) + at] : at;
    }
}

#define FOR_WIDTH(bits, U)                                                                                            \
    template [[host_name("select_" #bits)]] [[kernel]] decltype(select_keys<U, long>) select_keys<U, long>;                     \
    template [[host_name("candidates_" #bits)]] [[kernel]] decltype(select_keys<U, uint>) select_keys<U, uint>;

FOR_WIDTH(8, uchar)
FOR_WIDTH(16, ushort)
FOR_WIDTH(32, uint)
FOR_WIDTH(64, ulong)
#undef FOR_WIDTH
