// Radix sort for devices whose threads are cores: the passes of sort.metal, but one thread owns a tile, counts its
// digits and then moves each key to its digit's next free position. On a GPU, 31 of 32 lanes would be idle. Voting
// lanes take 1.1 to 1.3 times as long on a CPU for a row of up to 2^20 keys, 1.9 for keys of 16 bits, 2.5 for rows of
// 64. Source: Satish, Harris, Garland, "Designing Efficient Sorting Algorithms for Manycore GPUs", 2009, without its
// lanes.
#include <metalnb/radix.h>

template <typename U>
inline void count_digits(device const U* keys, threadgroup uint* counts, uint n, uint shift) {
    for (uint digit = 0; digit < DIGITS; ++digit) counts[digit] = 0;
    for (uint i = 0; i < n; ++i) counts[digit_of(keys[i], shift)] += 1;
}

// Move keys[begin … end) to their digits' next free positions, in order.
template <typename U>
inline void move_keys(device const U* keys, device U* sorted, device const uint* from, device uint* to,
                      threadgroup uint* next, uint begin, uint end, uint shift, bool first) {
    for (uint i = begin; i < end; ++i) {
        const U key = keys[i];
        const uint index = !INDEXED || first ? i : from[i];
        const uint digit = digit_of(key, shift), place = next[digit];
        next[digit] = place + 1;
        sorted[place] = key;
        if (INDEXED) to[place] = index;
    }
}

// First dispatch of a pass: counts[row][tile][digit].
template <typename U>
kernel void sort_count(device const U* keys [[buffer(0)]],
                       device uint* counts [[buffer(1)]],
                       constant Pass& pass [[buffer(2)]],
                       uint2 group [[threadgroup_position_in_grid]]) {
    threadgroup uint counted[DIGITS];
    constant Shape& shape = pass.shape;
    const uint begin = group.x * shape.tile, end = min(begin + shape.tile, shape.n);
    count_digits(keys + ulong(group.y) * shape.n + begin, counted, end - begin, pass.shift);
    counts += (ulong(group.y) * (shape.tiles + 1) + group.x) * DIGITS;
    for (uint digit = 0; digit < DIGITS; ++digit) counts[digit] = counted[digit];
}

// Second dispatch: for each digit the number of its keys in earlier tiles and, in one extra tile, the number of keys
// with a smaller digit.
kernel void sort_offsets(device uint* counts [[buffer(0)]],
                         constant Shape& shape [[buffer(1)]],
                         uint row [[threadgroup_position_in_grid]]) {
    counts += ulong(row) * (shape.tiles + 1) * DIGITS;
    uint smaller = 0;
    for (uint digit = 0; digit < DIGITS; ++digit) {
        uint running = 0;
        for (uint tile = 0; tile < shape.tiles; ++tile) {
            const uint count = counts[tile * DIGITS + digit];
            counts[tile * DIGITS + digit] = running;
            running += count;
        }
        counts[shape.tiles * DIGITS + digit] = smaller;
        smaller += running;
    }
}

// Third dispatch.
template <typename U>
kernel void sort_scatter(device const U* keys [[buffer(0)]],
                         device U* sorted [[buffer(1)]],
                         device const uint* counts [[buffer(2)]],
                         constant Pass& pass [[buffer(3)]],
                         device const uint* from [[buffer(4), function_constant(INDEXED)]],
                         device uint* to [[buffer(5), function_constant(INDEXED)]],
                         uint2 group [[threadgroup_position_in_grid]]) {
    threadgroup uint next[DIGITS];
    constant Shape& shape = pass.shape;
    const ulong row = ulong(group.y) * shape.n;
    counts += ulong(group.y) * (shape.tiles + 1) * DIGITS;
    for (uint digit = 0; digit < DIGITS; ++digit) {
        next[digit] = counts[group.x * DIGITS + digit] + counts[shape.tiles * DIGITS + digit];
    }
    const uint begin = group.x * shape.tile, end = min(begin + shape.tile, shape.n);
    move_keys(keys + row, sorted + row, INDEXED ? from + row : from, INDEXED ? to + row : to, next, begin, end,
              pass.shift, pass.first != 0);
}

// Many short rows: a thread sorts an entire row, with all passes in one dispatch.
template <typename U>
kernel void sort_rows(device const U* keys [[buffer(0)]],
                      device U* spare [[buffer(1)]],
                      device U* sorted [[buffer(2)]],
                      constant uint& n [[buffer(3)]],
                      device uint* spare_indices [[buffer(4), function_constant(INDEXED)]],
                      device uint* indices [[buffer(5), function_constant(INDEXED)]],
                      uint group [[threadgroup_position_in_grid]]) {
    threadgroup uint next[DIGITS];
    const ulong row = ulong(group) * n;
    device const U* source = keys + row;
    device const uint* from = spare_indices;
    for (uint pass = 0; pass < sizeof(U); ++pass) {
        const bool last = (sizeof(U) - pass) % 2 == 1;
        device U* target = (last ? sorted : spare) + row;
        device uint* to = INDEXED ? (last ? indices : spare_indices) + row : spare_indices;
        count_digits(source, next, n, 8 * pass);
        uint smaller = 0;
        for (uint digit = 0; digit < DIGITS; ++digit) {
            const uint count = next[digit];
            next[digit] = smaller;
            smaller += count;
        }
        move_keys(source, target, from, to, next, 0, n, 8 * pass, pass == 0);
        source = target;
        from = to;
    }
}

#define FOR_WIDTH(bits, U)                                                                              \
    template [[host_name("sort_count_" #bits)]] [[kernel]] decltype(sort_count<U>) sort_count<U>;       \
    template [[host_name("sort_scatter_" #bits)]] [[kernel]] decltype(sort_scatter<U>) sort_scatter<U>; \
    template [[host_name("sort_rows_" #bits)]] [[kernel]] decltype(sort_rows<U>) sort_rows<U>;

FOR_WIDTH(8, uchar)
FOR_WIDTH(16, ushort)
FOR_WIDTH(32, uint)
FOR_WIDTH(64, ulong)
#undef FOR_WIDTH
