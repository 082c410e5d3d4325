// Search and compaction. searchsorted: each thread finds its value in the sorted array by binary search. nonzero and
// unique keep some elements in order: each SIMD-group counts the kept elements of its stretch, the counts are added up,
// and the SIMD-group writes the elements; a lane's position is the number of votes below it in a ballot.
// Source: Billeter, Olsson, Assarsson, "Efficient Stream Compaction on Wide SIMD Many-Core Architectures", 2009.
#include <metalnb/lanes.h>
#include <metalnb/order.h>

struct Search {
    uint n;      // length of the sorted array
    uint right;  // after equal elements, not before them
};

// out[i] = the number of elements less than values[i] (or not greater).
template <typename U>
kernel void searchsorted(device const U* sorted [[buffer(0)]],
                         device const U* values [[buffer(1)]],
                         device long* out [[buffer(2)]],
                         constant Search& search [[buffer(3)]],
                         uint i [[thread_position_in_grid]]) {
    const U value = ordered(values[i]);
    uint low = 0;
    for (uint length = search.n; length > 0;) {
        const uint half_length = length / 2;
        const uint middle = low + half_length;
        const U there = ordered(sorted[middle]);
        const bool after = search.right ? there <= value : there < value;
        low = after ? middle + 1 : low;
        length = after ? length - half_length - 1 : half_length;
    }
    out[i] = low;
}

// ---- The elements to keep: of the 32 from `base` on, the lane's element … (the lane is added to the pointer, and the
// uniform part to the index, so that the compiler sees a SIMD-group read adjacent elements)
// … if it is not zero (-0.0 is zero, NaN is not);
template <typename U>
struct Nonzero {
    static bool keep(device const U* x, uint base, uint lane) {
        const U bits = (x + lane)[base];
        return KIND < 2 ? bits != 0 : U(bits << 1) != 0;
    }
};
// … if in a sorted array it differs from the previous one: the start of a run;
template <typename U>
struct Starts {
    static bool keep(device const U* x, uint base, uint lane) {
        return base + lane == 0 || ordered((x + lane)[base]) != ordered((x + lane - 1)[base]);
    }
};
// … the same, and every NaN.
template <typename U>
struct DistinctStarts {
    static bool keep(device const U* x, uint base, uint lane) {
        return Starts<U>::keep(x, base, lane) || is_nan((x + lane)[base]);
    }
};

struct Stretch {
    uint n;
    uint tile;  // elements per SIMD-group, a multiple of 32
};

template <typename U, template <typename> class Kept>
kernel void keep_count(device const U* x [[buffer(0)]],
                       device uint* counts [[buffer(1)]],
                       constant Stretch& stretch [[buffer(2)]],
                       uint tile [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]]) {
    const uint begin = tile * stretch.tile;
    const uint end = min(begin + stretch.tile, stretch.n);
    uint count = 0, base = begin;
    for (; base + SIMD <= end; base += SIMD) count += Kept<U>::keep(x, base, lane);
    if (lane < end - base) count += Kept<U>::keep(x, base, lane);
    count = simd_sum(count);
    if (lane == 0) counts[tile] = count;
}

// One SIMD-group: counts become the number of elements before each tile, followed by the sum.
kernel void keep_offsets(device uint* counts [[buffer(0)]],
                         constant uint& tiles [[buffer(1)]],
                         uint lane [[thread_index_in_simdgroup]]) {
    uint running = 0;
    for (uint start = 0; start < tiles; start += SIMD) {
        const uint count = start + lane < tiles ? counts[start + lane] : 0;
        const uint sum = running + simd_prefix_exclusive_sum(count);
        if (start + lane < tiles) counts[start + lane] = sum;
        running = simd_broadcast(sum + count, SIMD - 1);
    }
    if (lane == 0) counts[tiles] = running;
}

template <typename U, template <typename> class Kept>
kernel void keep_write(device const U* x [[buffer(0)]],
                       device const uint* offsets [[buffer(1)]],
                       device long* positions [[buffer(2)]],
                       constant Stretch& stretch [[buffer(3)]],
                       uint tile [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]]) {
    const uint begin = tile * stretch.tile;
    const uint end = min(begin + stretch.tile, stretch.n);
    uint next = offsets[tile];
    for (uint base = begin; base < end; base += SIMD) {
        const bool keep = lane < end - base && Kept<U>::keep(x, base, lane);
        const uint votes = votes_for(keep);
        if (keep) positions[next + before(votes, lane)] = base + lane;
        next += popcount(votes);
    }
}

// The same, but this writes the elements themselves.
template <typename U, template <typename> class Kept>
kernel void keep_values(device const U* x [[buffer(0)]],
                        device const uint* offsets [[buffer(1)]],
                        device U* out [[buffer(2)]],
                        constant Stretch& stretch [[buffer(3)]],
                        uint tile [[threadgroup_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
    const uint begin = tile * stretch.tile;
    const uint end = min(begin + stretch.tile, stretch.n);
    uint next = offsets[tile];
    for (uint base = begin; base < end; base += SIMD) {
        const bool keep = lane < end - base && Kept<U>::keep(x, base, lane);
        const uint votes = votes_for(keep);
        if (keep) out[next + before(votes, lane)] = x[base + lane];
        next += popcount(votes);
    }
}

// For each element of the unsorted array, the index of its run: inverse[order[i]] = runs begun up to i.
template <typename U, template <typename> class Kept>
kernel void keep_inverse(device const U* x [[buffer(0)]],
                         device const uint* offsets [[buffer(1)]],
                         device const uint* order [[buffer(2)]],
                         device long* inverse [[buffer(3)]],
                         constant Stretch& stretch [[buffer(4)]],
                         uint tile [[threadgroup_position_in_grid]],
                         uint lane [[thread_index_in_simdgroup]]) {
    const uint begin = tile * stretch.tile;
    const uint end = min(begin + stretch.tile, stretch.n);
    uint next = offsets[tile];
    for (uint base = begin; base < end; base += SIMD) {
        const uint i = base + lane;
        const uint votes = votes_for(i < end && Kept<U>::keep(x, base, lane));
        if (i < end) inverse[order[i]] = next + popcount(votes & ((2u << lane) - 1)) - 1;
        next += popcount(votes);
    }
}

struct Runs {
    uint n;  // elements
    uint count;
};

// The length of each run; `starts` are the positions of their first elements.
kernel void run_lengths(device const long* starts [[buffer(0)]],
                        device long* lengths [[buffer(1)]],
                        constant Runs& runs [[buffer(2)]],
                        uint i [[thread_position_in_grid]]) {
    lengths[i] = (i + 1 < runs.count ? starts[i + 1] : long(runs.n)) - starts[i];
}

// Boolean selection: the elements whose mask is set, moved as bits.
template <typename T>
kernel void select_write(device const uchar* mask [[buffer(0)]],
                         device const uint* offsets [[buffer(1)]],
                         device const T* x [[buffer(2)]],
                         device T* out [[buffer(3)]],
                         constant Stretch& stretch [[buffer(4)]],
                         uint tile [[threadgroup_position_in_grid]],
                         uint lane [[thread_index_in_simdgroup]]) {
    const uint begin = tile * stretch.tile;
    const uint end = min(begin + stretch.tile, stretch.n);
    uint next = offsets[tile];
    for (uint base = begin; base < end; base += SIMD) {
        const uint i = base + lane;
        const bool keep = i < end && mask[i] != 0;
        const uint votes = votes_for(keep);
        if (keep) out[next + before(votes, lane)] = x[i];
        next += popcount(votes);
    }
}

// The inverse of boolean selection: where the mask is set, write the next value.
template <typename T>
kernel void select_put(device const uchar* mask [[buffer(0)]],
                       device const uint* offsets [[buffer(1)]],
                       device const T* values [[buffer(2)]],
                       device T* x [[buffer(3)]],
                       constant Stretch& stretch [[buffer(4)]],
                       uint tile [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]]) {
    const uint begin = tile * stretch.tile;
    const uint end = min(begin + stretch.tile, stretch.n);
    uint next = offsets[tile];
    for (uint base = begin; base < end; base += SIMD) {
        const uint i = base + lane;
        const bool keep = i < end && mask[i] != 0;
        const uint votes = votes_for(keep);
        if (keep) x[i] = values[next + before(votes, lane)];
        next += popcount(votes);
    }
}

#define MAKE(name, suffix, ...) \
    template [[host_name(#name "_" #suffix)]] [[kernel]] decltype(name<__VA_ARGS__>) name<__VA_ARGS__>;
#define FOR_WIDTH(bits, U)                                 \
    MAKE(searchsorted, bits, U)                            \
    MAKE(select_write, bits, U)                            \
    MAKE(select_put, bits, U)                              \
    MAKE(keep_count, nonzero_##bits, U, Nonzero)           \
    MAKE(keep_write, nonzero_##bits, U, Nonzero)           \
    MAKE(keep_count, starts_##bits, U, Starts)             \
    MAKE(keep_values, starts_##bits, U, Starts)            \
    MAKE(keep_write, starts_##bits, U, Starts)             \
    MAKE(keep_inverse, starts_##bits, U, Starts)           \
    MAKE(keep_count, distinct_##bits, U, DistinctStarts)   \
    MAKE(keep_values, distinct_##bits, U, DistinctStarts)  \
    MAKE(keep_write, distinct_##bits, U, DistinctStarts)   \
    MAKE(keep_inverse, distinct_##bits, U, DistinctStarts)
FOR_WIDTH(8, uchar)
FOR_WIDTH(16, ushort)
FOR_WIDTH(32, uint)
FOR_WIDTH(64, ulong)
#undef FOR_WIDTH
#undef MAKE
