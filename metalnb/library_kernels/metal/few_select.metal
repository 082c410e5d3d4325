// The first few keys of a row's sorted order, and their positions, in one pass. Idea: a SIMD-group keeps the first keys
// seen so far, sorted, one in each lane, and compares 32 keys at a time with the k-th. Most keys come after the k-th,
// so few are inserted: about k ln(n / k) of n keys in random order. Equal keys keep their order.
// Source: J. Johnson, M. Douze, H. Jegou, "Billion-scale similarity search with GPUs", 2017, 4.2 (WarpSelect).
#include <metalnb/selection.h>

// SIMD functions take at most 32 bits, so 64 bits are shuffled in two parts.
template <typename U>
inline U value_of_lane(U x, ushort lane) { return simd_broadcast(x, lane); }
inline ulong value_of_lane(ulong x, ushort lane) { return as_type<ulong>(simd_broadcast(as_type<uint2>(x), lane)); }
template <typename U>
inline U value_of_previous_lane(U x) { return simd_shuffle_up(x, 1); }
inline ulong value_of_previous_lane(ulong x) { return as_type<ulong>(simd_shuffle_up(as_type<uint2>(x), 1)); }

/// INDEX: uint for candidates, long for a result. At most 32 keys are selected.
template <typename U, typename INDEX>
kernel void select_few(device const U* keys [[buffer(0)]],
                       device const uint* candidate_positions [[buffer(1)]],  // the candidates' positions
                       device U* out_keys [[buffer(2)]],
                       device INDEX* out_positions [[buffer(3)]],
                       constant Selection& s [[buffer(4)]],
                       uint group [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]]) {
    const uint row = group / s.parts, part = group % s.parts;
    const uint begin = uint(part * ulong(s.n) / s.parts), end = uint((part + 1) * ulong(s.n) / s.parts);
    keys += s.start + row * ulong(s.n);

    U selected = 0, kth = 0;  // this lane's key, and the k-th
    uint at = 0, kth_at = 0, filled = 0;  // their positions, and the number of selected keys
    for (uint base = begin; base < end; base += SIMD) {
        const uint i = base + lane;
        const U key = i < end ? ordered(keys[i]) : U(0);
        uint votes = votes_for(i < end && (filled < s.k || key < kth));
        while (votes != 0) {  // begin with the last: in ascending rows this leaves the fewest keys to insert
            const ushort source = ushort(SIMD - 1 - clz(votes));
            const U inserted = value_of_lane(key, source);
            const bool is_before = selected < inserted || (selected == inserted && at < base + source);
            const uint position = popcount(votes_for(lane < filled && is_before));
            const U previous = value_of_previous_lane(selected);
            const uint previous_at = value_of_previous_lane(at);
            selected = lane > position ? previous : lane == position ? inserted : selected;
            at = lane > position ? previous_at : lane == position ? base + source : at;
            filled = min(filled + 1, s.k);
            kth = value_of_lane(selected, ushort(s.k - 1));
            kth_at = value_of_lane(at, ushort(s.k - 1));
            votes &= (1u << source) - 1;
            votes &= votes_for(filled < s.k || key < kth || (key == kth && i < kth_at));
        }
    }

    if (lane >= s.k) return;
    out_keys[group * ulong(s.k) + lane] = keys[at];
    out_positions[group * ulong(s.k) + lane] = s.are_candidates ? candidate_positions[row * ulong(s.n) + at] : at;
}

#define FOR_WIDTH(bits, U)                                                                                             \
    template [[host_name("select_" #bits)]] [[kernel]] decltype(select_few<U, long>) select_few<U, long>;              \
    template [[host_name("candidates_" #bits)]] [[kernel]] decltype(select_few<U, uint>) select_few<U, uint>;

FOR_WIDTH(8, uchar)
FOR_WIDTH(16, ushort)
FOR_WIDTH(32, uint)
FOR_WIDTH(64, ulong)
#undef FOR_WIDTH
