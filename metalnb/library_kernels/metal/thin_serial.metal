// Drop recently seen elements before unique sorts: the distinct values stay the same. Idea: a thread goes through a
// tile with a small table of the elements seen so far, each in the slot that its hash names. An element already in its
// slot is dropped; any other takes the slot and is kept. An element that is evicted and occurs again is kept twice,
// which does no harm. So few duplicates remain after one pass: of 2^18 to 2^24 numbers with 1,000 values,
// unique_values takes 7 to 16 times as long without it. Every thread should be a core. Source: a direct-mapped
// cache; the hash is multiplicative, Knuth, "The Art of Computer Programming", vol. 3, 6.4.
#include <metalnb/order.h>

struct Thinning {
    uint n;
    uint tile;  // elements of a tile, the last of which may have fewer
    uint step;  // from one tile's start to the next one's; more than `tile` if only a sample is wanted
};

// The table takes at most 16 KiB.
template <typename U> struct Table {
    enum { BITS = sizeof(U) == 8 ? 11 : sizeof(U) == 4 ? 12 : 13, SLOTS = 1 << BITS };
};

template <typename U>
inline uint slot_of(U bits) {
    return uint((ulong(bits) * 0x9E3779B97F4A7C15ul) >> (64 - Table<U>::BITS));
}

// out[tile × thinning.tile …] = a tile's kept elements; counts[tile] = their number. A NaN differs from every other
// NaN, so all are kept.
template <typename U>
kernel void thin(device const U* x [[buffer(0)]],
                 device U* out [[buffer(1)]],
                 device uint* counts [[buffer(2)]],
                 constant Thinning& thinning [[buffer(3)]],
                 uint tile [[threadgroup_position_in_grid]]) {
    constexpr uint SLOTS = Table<U>::SLOTS;
    threadgroup U slots[SLOTS];
    const uint begin = tile * thinning.step, end = min(begin + thinning.tile, thinning.n);
    const U first = x[begin];  // kept, and in every slot, so that no slot need be marked as free
    for (uint slot = 0; slot < SLOTS; ++slot) slots[slot] = first;
    out += tile * thinning.tile;
    out[0] = first;
    uint next = 1;
    for (uint i = begin + 1; i < end; ++i) {
        const U bits = x[i];
        const uint slot = slot_of(bits);
        if (is_nan(bits) || slots[slot] != bits) {
            slots[slot] = bits;
            out[next] = bits;
            next += 1;
        }
    }
    counts[tile] = next;
}

// Concatenate the kept elements. offsets[tile] is the number kept by earlier tiles.
template <typename U>
kernel void thinned(device const U* x [[buffer(0)]],
                    device U* out [[buffer(1)]],
                    device const uint* offsets [[buffer(2)]],
                    constant Thinning& thinning [[buffer(3)]],
                    uint tile [[threadgroup_position_in_grid]]) {
    const uint count = offsets[tile + 1] - offsets[tile];
    x += tile * thinning.tile;
    out += offsets[tile];
    for (uint i = 0; i < count; ++i) out[i] = x[i];
}

#define FOR_WIDTH(bits, U)                                                          \
    template [[host_name("thin_" #bits)]] [[kernel]] decltype(thin<U>) thin<U>;     \
    template [[host_name("thinned_" #bits)]] [[kernel]] decltype(thinned<U>) thinned<U>;
FOR_WIDTH(8, uchar)
FOR_WIDTH(16, ushort)
FOR_WIDTH(32, uint)
FOR_WIDTH(64, ulong)
#undef FOR_WIDTH
