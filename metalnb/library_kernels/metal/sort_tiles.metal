// A pass of the radix sort of sort.metal for devices with slow loads, by threadgroups of eight SIMD-groups. A tile's
// keys are ranked and put into the order of their digits in threadgroup memory, and then written: keys that are
// adjacent there are mostly adjacent in the result. Each SIMD-group has its own counts, so it ranks without waiting for
// others. The counts of all tiles are stored digit by digit, and their running sum is the destination of each tile's
// keys of each digit. Source: as sort.metal.
#include <metalnb/lanes.h>
#include <metalnb/radix.h>
#include <metalnb/unroll.h>

constant constexpr uint SIMDS = 8;
constant constexpr uint THREADS = SIMDS * SIMD;
static_assert(THREADS == DIGITS, "a thread for each digit");

constant constexpr uint ROOM = 16384;

// Keys per thread: as many as fit with their indices.
template <typename U> constexpr constant uint EACH = ROOM / THREADS / (sizeof(U) == 8 ? 8 : 4);

// First dispatch of a pass: counts[row][digit][tile].
template <typename U>
[[max_total_threads_per_threadgroup(THREADS)]]
kernel void tile_count(device const U* keys [[buffer(0)]],
                       device uint* counts [[buffer(1)]],
                       constant Pass& pass [[buffer(2)]],
                       uint2 group [[threadgroup_position_in_grid]],
                       uint t [[thread_index_in_threadgroup]]) {
    threadgroup atomic_uint counted[DIGITS];
    constant Shape& shape = pass.shape;
    atomic_store_explicit(counted + t, 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint begin = group.x * shape.tile;
    keys += ulong(group.y) * shape.n;
    UNROLL for (uint k = 0; k < EACH<U>; ++k) {
        const uint i = begin + k * THREADS + t;
        if (i < shape.n) atomic_fetch_add_explicit(counted + digit_of(keys[i], pass.shift), 1u, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    counts[(ulong(group.y) * DIGITS + t) * shape.tiles + group.x] = atomic_load_explicit(counted + t, memory_order_relaxed);
}

// One thread per digit: the number of keys in the tile with a smaller digit. `counts` has the SIMD-groups' counts,
// which are replaced by the sums of the previous SIMD-groups'.
inline uint starts_of_digits(threadgroup uint (&counts)[SIMDS][DIGITS], threadgroup uint (&sums)[SIMDS], uint t) {
    uint total = 0;
    for (uint s = 0; s < SIMDS; ++s) {
        const uint count = counts[s][t];
        counts[s][t] = total;
        total += count;
    }
    const uint before = simd_prefix_exclusive_sum(total), simd = t / SIMD;
    if (t % SIMD == SIMD - 1) sums[simd] = before + total;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint earlier = 0;
    for (uint s = 0; s < simd; ++s) earlier += sums[s];
    return earlier + before;
}

// Last dispatch of a pass. `first` is the running sum of the counts.
template <typename U>
[[max_total_threads_per_threadgroup(4 * THREADS)]]  // limits registers, so that four threadgroups fit at once
kernel void tile_scatter(device const U* keys [[buffer(0)]],
                         device U* sorted [[buffer(1)]],
                         device const uint* first [[buffer(2)]],
                         constant Pass& pass [[buffer(3)]],
                         device const uint* from [[buffer(4), function_constant(INDEXED)]],
                         device uint* to [[buffer(5), function_constant(INDEXED)]],
                         uint2 group [[threadgroup_position_in_grid]],
                         uint t [[thread_index_in_threadgroup]]) {
    threadgroup uint4 room[ROOM / sizeof(uint4)];  // for the keys in their new order, then for the indices
    threadgroup U* const ordered_keys = reinterpret_cast<threadgroup U*>(room);
    threadgroup uint counts[SIMDS][DIGITS];
    threadgroup uint shift_of[DIGITS];  // from a key's position in the tile to that in its row
    threadgroup uint sums[SIMDS];
    constant Shape& shape = pass.shape;
    const uint lane = t % SIMD, simd = t / SIMD;
    const uint begin = group.x * shape.tile, count = min(shape.tile, shape.n - begin);
    const ulong row = ulong(group.y) * shape.n;
    keys += row + begin;
    sorted += row;
    for (uint s = 0; s < SIMDS; ++s) counts[s][t] = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);

    U key[EACH<U>];
    uint rank[EACH<U>];
    const uint first_key = simd * SIMD * EACH<U> + lane;  // a SIMD-group's keys are adjacent
    UNROLL for (uint k = 0; k < EACH<U>; ++k) key[k] = first_key + k * SIMD < count ? keys[first_key + k * SIMD] : U(0);
    // rank_keys, inlined by hand, as a function would need more registers than there are.
    UNROLL for (uint k = 0; k < EACH<U>; ++k) rank[k] = peers_of(digit_of(key[k], pass.shift), first_key + k * SIMD < count, 8);
    UNROLL for (uint k = 0; k < EACH<U>; ++k) {
        const bool valid = first_key + k * SIMD < count;
        const uint digit = digit_of(key[k], pass.shift), peers = rank[k];
        const uint so_far = counts[simd][digit];
        rank[k] = so_far + before(peers, lane);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        if (valid && peers >> lane == 1) counts[simd][digit] = rank[k] + 1;
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint start = starts_of_digits(counts, sums, t);
    for (uint s = 0; s < SIMDS; ++s) counts[s][t] += start;
    shift_of[t] = first[(ulong(group.y) * (DIGITS * ulong(shape.tiles) + 1)) + t * ulong(shape.tiles) + group.x] - start;
    threadgroup_barrier(mem_flags::mem_threadgroup);

    UNROLL for (uint k = 0; k < EACH<U>; ++k) {
        rank[k] += counts[simd][digit_of(key[k], pass.shift)];
        if (first_key + k * SIMD < count) ordered_keys[rank[k]] = key[k];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint target[EACH<U>];
    UNROLL for (uint k = 0; k < EACH<U>; ++k) {
        const uint i = k * THREADS + t;
        if (i >= count) continue;
        const U moved = ordered_keys[i];
        target[k] = i + shift_of[digit_of(moved, pass.shift)];
        sorted[target[k]] = moved;
    }
    if (!INDEXED) return;
    from += row + begin;
    to += row;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup uint* const indices = reinterpret_cast<threadgroup uint*>(room);
    UNROLL for (uint k = 0; k < EACH<U>; ++k) {
        const uint i = first_key + k * SIMD;
        if (i < count) indices[rank[k]] = pass.first ? begin + i : from[i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    UNROLL for (uint k = 0; k < EACH<U>; ++k) {
        const uint i = k * THREADS + t;
        if (i < count) to[target[k]] = indices[i];
    }
}

// The rank of each of a SIMD-group's keys among those with its digit; counts[simd] becomes the SIMD-group's count of
// each digit.
template <typename U, uint N>
inline void rank_keys(thread const U (&key)[N], thread uint (&rank)[N], threadgroup uint (&counts)[SIMDS][DIGITS], uint first_key,
                      uint count, uint shift, uint t) {
    const uint lane = t % SIMD, simd = t / SIMD;
    UNROLL for (uint k = 0; k < N; ++k) rank[k] = peers_of(digit_of(key[k], shift), first_key + k * SIMD < count, 8);
    UNROLL for (uint k = 0; k < N; ++k) {  // in order: a key's position depends on those before it
        const bool valid = first_key + k * SIMD < count;
        const uint digit = digit_of(key[k], shift), peers = rank[k];
        const uint so_far = counts[simd][digit];
        rank[k] = so_far + before(peers, lane);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        if (valid && peers >> lane == 1) counts[simd][digit] = rank[k] + 1;  // the last of the peers
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
}

// Rows of at most THREADS * N keys: a threadgroup sorts its row by itself, the keys in registers between the passes.
template <typename U, uint N>
[[max_total_threads_per_threadgroup(4 * THREADS)]]
kernel void tile_rows(device const U* keys [[buffer(0)]],
                      device U* sorted [[buffer(1)]],
                      device uint* to [[buffer(2), function_constant(INDEXED)]],
                      constant uint& n [[buffer(3)]],
                      uint group [[threadgroup_position_in_grid]],
                      uint t [[thread_index_in_threadgroup]]) {
    constexpr uint WIDTH = sizeof(U) > sizeof(uint) ? sizeof(U) : sizeof(uint);
    threadgroup uint4 room[THREADS * N * WIDTH / sizeof(uint4)];  // for the keys in their new order, then for the indices
    threadgroup U* const ordered_keys = reinterpret_cast<threadgroup U*>(room);
    threadgroup uint* const indices = reinterpret_cast<threadgroup uint*>(room);
    threadgroup uint counts[SIMDS][DIGITS];
    threadgroup uint sums[SIMDS];
    const uint lane = t % SIMD, simd = t / SIMD, first_key = simd * SIMD * N + lane;  // a SIMD-group's keys are adjacent
    keys += ulong(group) * n;
    sorted += ulong(group) * n;

    U key[N];
    uint rank[N], index[(N + 1) / 2] = {};  // two of 16 bits
    UNROLL for (uint k = 0; k < N; ++k) {
        index[k / 2] |= (first_key + k * SIMD) << 16 * (k % 2);
        key[k] = first_key + k * SIMD < n ? keys[first_key + k * SIMD] : U(0);
    }
    _Pragma("clang loop unroll(disable)") for (uint shift = 0; shift < 8 * sizeof(U); shift += 8) {
        for (uint s = 0; s < SIMDS; ++s) counts[s][t] = 0;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        rank_keys(key, rank, counts, first_key, n, shift, t);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const uint start = starts_of_digits(counts, sums, t);
        for (uint s = 0; s < SIMDS; ++s) counts[s][t] += start;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        UNROLL for (uint k = 0; k < N; ++k) {
            rank[k] += counts[simd][digit_of(key[k], shift)];
            if (first_key + k * SIMD < n) ordered_keys[rank[k]] = key[k];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        UNROLL for (uint k = 0; k < N; ++k)
            if (first_key + k * SIMD < n) key[k] = ordered_keys[first_key + k * SIMD];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (!INDEXED) continue;
        UNROLL for (uint k = 0; k < N; ++k)
            if (first_key + k * SIMD < n) indices[rank[k]] = index[k / 2] >> 16 * (k % 2) & 0xFFFF;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        UNROLL for (uint k = 0; k < N; k += 2) {
            const uint i = first_key + k * SIMD;
            index[k / 2] = (i < n ? indices[i] : 0) | (k + 1 < N && i + SIMD < n ? indices[i + SIMD] << 16 : 0);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    UNROLL for (uint k = 0; k < N; ++k)
        if (first_key + k * SIMD < n) sorted[first_key + k * SIMD] = key[k];
    if (!INDEXED) return;
    to += ulong(group) * n;
    UNROLL for (uint k = 0; k < N; ++k)
        if (first_key + k * SIMD < n) to[first_key + k * SIMD] = index[k / 2] >> 16 * (k % 2) & 0xFFFF;
}

#define ROWS(bits, U, N) \
    template [[host_name("tile_rows_" #bits "_" #N)]] [[kernel]] decltype(tile_rows<U, N>) tile_rows<U, N>;
#define FOR_WIDTH(bits, U)                                                                          \
    template [[host_name("tile_count_" #bits)]] [[kernel]] decltype(tile_count<U>) tile_count<U>;       \
    template [[host_name("tile_scatter_" #bits)]] [[kernel]] decltype(tile_scatter<U>) tile_scatter<U>; \
    ROWS(bits, U, 1) ROWS(bits, U, 4) ROWS(bits, U, 8)

FOR_WIDTH(8, uchar)
FOR_WIDTH(16, ushort)
FOR_WIDTH(32, uint)
FOR_WIDTH(64, ulong)
ROWS(8, uchar, 16)
ROWS(16, ushort, 16)
ROWS(32, uint, 16)
#undef FOR_WIDTH
#undef ROWS
