// Radix sort, least significant digit first: each pass moves the keys, stably, into the order of 8 more of their bits.
// A pass counts the digits of every tile and adds up the counts; the sums are the positions to which each tile then
// writes its keys. Source: Satish, Harris, Garland, "Designing Efficient Sorting Algorithms for Manycore GPUs", 2009;
// the positions within a SIMD-group by ballots: Adinets, Merrill, "Onesweep", 2022. No threadgroup waits for another,
// so they may run in any order. If each thread is a core, sort_serial.metal sorts all rows of more than 32 keys.
#include <metalnb/lanes.h>
#include <metalnb/radix.h>

// Count the digits of keys[begin … end). A threadgroup is one SIMD-group, and has one tile.
template <typename U>
inline void count_digits(device const U* keys, threadgroup atomic_uint* counts, uint begin, uint end, uint shift,
                         uint lane) {
    for (uint digit = lane; digit < DIGITS; digit += SIMD) {
        atomic_store_explicit(counts + digit, 0u, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = begin + lane; i < end; i += SIMD) {
        atomic_fetch_add_explicit(counts + digit_of(keys[i], shift), 1u, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

// Move keys[begin … end) to their digits' next free positions, in order.
template <typename U>
inline void move_keys(device const U* keys, device U* sorted, device const uint* from, device uint* to,
                      threadgroup uint* next, uint begin, uint end, uint shift, bool first, uint lane) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint base = begin; base < end; base += SIMD) {
        const uint i = base + lane;
        const bool valid = i < end;
        const U key = valid ? keys[i] : U(0);
        const uint digit = digit_of(key, shift);
        const uint peers = peers_of(digit, valid, 8);
        const uint rank = next[digit] + before(peers, lane);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (valid && peers >> lane == 1) next[digit] = rank + 1;  // the last of the peers
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (valid) {
            sorted[rank] = key;
            if (INDEXED) to[rank] = first ? i : from[i];
        }
    }
}

// First dispatch of a pass: counts[row][tile][digit].
template <typename U>
kernel void sort_count(device const U* keys [[buffer(0)]],
                       device uint* counts [[buffer(1)]],
                       constant Pass& pass [[buffer(2)]],
                       uint2 group [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]]) {
    threadgroup atomic_uint counted[DIGITS];
    constant Shape& shape = pass.shape;
    const uint begin = group.x * shape.tile;
    count_digits(keys + ulong(group.y) * shape.n, counted, begin, min(begin + shape.tile, shape.n), pass.shift, lane);
    counts += (ulong(group.y) * (shape.tiles + 1) + group.x) * DIGITS;
    for (uint digit = lane; digit < DIGITS; digit += SIMD) {
        counts[digit] = atomic_load_explicit(counted + digit, memory_order_relaxed);
    }
}

// Second dispatch, one thread per digit: for each tile, the number of keys with that digit in earlier tiles; and, as an
// extra tile, the number of keys with smaller digits.
kernel void sort_offsets(device uint* counts [[buffer(0)]],
                         constant Shape& shape [[buffer(1)]],
                         uint row [[threadgroup_position_in_grid]],
                         uint digit [[thread_index_in_threadgroup]]) {
    threadgroup uint totals[DIGITS];
    counts += ulong(row) * (shape.tiles + 1) * DIGITS + digit;
    uint running = 0;
    for (uint tile = 0; tile < shape.tiles; ++tile) {
        const uint count = counts[tile * DIGITS];
        counts[tile * DIGITS] = running;
        running += count;
    }
    totals[digit] = running;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint smaller = 0;
    for (uint d = 0; d < digit; ++d) smaller += totals[d];
    counts[shape.tiles * DIGITS] = smaller;
}

// Third dispatch.
template <typename U>
kernel void sort_scatter(device const U* keys [[buffer(0)]],
                         device U* sorted [[buffer(1)]],
                         device const uint* counts [[buffer(2)]],
                         constant Pass& pass [[buffer(3)]],
                         device const uint* from [[buffer(4), function_constant(INDEXED)]],
                         device uint* to [[buffer(5), function_constant(INDEXED)]],
                         uint2 group [[threadgroup_position_in_grid]],
                         uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uint next[DIGITS];
    constant Shape& shape = pass.shape;
    const ulong row = ulong(group.y) * shape.n;
    counts += ulong(group.y) * (shape.tiles + 1) * DIGITS;
    for (uint digit = lane; digit < DIGITS; digit += SIMD) {
        next[digit] = counts[group.x * DIGITS + digit] + counts[shape.tiles * DIGITS + digit];
    }
    const uint begin = group.x * shape.tile;
    const uint end = min(begin + shape.tile, shape.n);
    move_keys(keys + row, sorted + row, INDEXED ? from + row : from, INDEXED ? to + row : to, next, begin, end,
              pass.shift, pass.first != 0, lane);
}

// Many short rows: a SIMD-group sorts an entire row, with all passes in one dispatch. The keys alternate between
// `spare` and `sorted`, so that the last pass writes to the latter.
template <typename U>
kernel void sort_rows(device const U* keys [[buffer(0)]],
                      device U* spare [[buffer(1)]],
                      device U* sorted [[buffer(2)]],
                      constant uint& n [[buffer(3)]],
                      device uint* spare_indices [[buffer(4), function_constant(INDEXED)]],
                      device uint* indices [[buffer(5), function_constant(INDEXED)]],
                      uint group [[threadgroup_position_in_grid]],
                      uint lane [[thread_index_in_simdgroup]]) {
    threadgroup atomic_uint counts[DIGITS];
    threadgroup uint next[DIGITS];
    const ulong row = ulong(group) * n;
    device const U* source = keys + row;
    device const uint* from = spare_indices;
    for (uint pass = 0; pass < sizeof(U); ++pass) {
        const bool last = (sizeof(U) - pass) % 2 == 1;
        device U* target = (last ? sorted : spare) + row;
        device uint* to = INDEXED ? (last ? indices : spare_indices) + row : spare_indices;
        count_digits(source, counts, 0, n, 8 * pass, lane);
        uint smaller = 0;
        for (uint start = 0; start < DIGITS; start += SIMD) {
            const uint count = atomic_load_explicit(counts + start + lane, memory_order_relaxed);
            next[start + lane] = smaller + simd_prefix_exclusive_sum(count);
            smaller += simd_sum(count);
        }
        move_keys(source, target, from, to, next, 0, n, 8 * pass, pass == 0, lane);
        threadgroup_barrier(mem_flags::mem_device);
        source = target;
        from = to;
    }
}

// Return lane i's key in all lanes. (MSL 6.9.2: a SIMD-group moves 32 bits at a time.)
template <typename U>
inline U key_of_lane(U key, ushort i) {
    return simd_broadcast(key, i);
}
template <>
inline ulong key_of_lane(ulong key, ushort i) {
    const uint2 halves = as_type<uint2>(key);
    return as_type<ulong>(uint2(simd_broadcast(halves.x, i), simd_broadcast(halves.y, i)));
}

// Rows of at most 32 keys: a SIMD-group takes as many rows as fit, with a lane for each key. A key's position is the
// number of keys in its row that come before it.
template <typename U>
kernel void sort_short(device const U* keys [[buffer(0)]],
                       device U* sorted [[buffer(1)]],
                       constant uint& n [[buffer(2)]],
                       constant uint& rows [[buffer(3)]],
                       device uint* indices [[buffer(4), function_constant(INDEXED)]],
                       uint group [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]]) {
    const uint rows_per_simdgroup = SIMD / n;
    const uint start = lane / n * n;  // the lane that has the row's first key
    const ulong row = ulong(group) * rows_per_simdgroup + lane / n;
    const bool valid = lane < rows_per_simdgroup * n && row < rows;
    const U key = valid ? keys[row * n + (lane - start)] : U(0);
    const U ordered_key = ordered(key);
    uint rank = 0;
    for (ushort i = 0; i < SIMD; ++i) {
        const U other = key_of_lane(ordered_key, i);
        const bool first = other < ordered_key || (other == ordered_key && i < lane);
        rank += first && i - start < n;  // i < start wraps around, and is also outside the row
    }
    if (valid) {
        sorted[row * n + rank] = key;
        if (INDEXED) indices[row * n + rank] = lane - start;
    }
}

#define FOR_WIDTH(bits, U)                                                                      \
    template [[host_name("sort_count_" #bits)]] [[kernel]] decltype(sort_count<U>) sort_count<U>;       \
    template [[host_name("sort_scatter_" #bits)]] [[kernel]] decltype(sort_scatter<U>) sort_scatter<U>; \
    template [[host_name("sort_rows_" #bits)]] [[kernel]] decltype(sort_rows<U>) sort_rows<U>;          \
    template [[host_name("sort_short_" #bits)]] [[kernel]] decltype(sort_short<U>) sort_short<U>;

FOR_WIDTH(8, uchar)
FOR_WIDTH(16, ushort)
FOR_WIDTH(32, uint)
FOR_WIDTH(64, ulong)
#undef FOR_WIDTH
