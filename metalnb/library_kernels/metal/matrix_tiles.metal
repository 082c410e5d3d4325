// C = A B of half and bfloat for devices with slow loads, by SIMD-group matrices, which a GPU multiplies in dedicated
// hardware. A threadgroup loads a strip of A and one of B into threadgroup memory, and reads the next ones into
// registers while it multiplies. A strip has its factor's layout, so that adjacent lanes read and write adjacent
// elements.
//
// Source: as tiles.metal; the accumulators of float are those of M. Fasi et al., "Numerical behavior of NVIDIA tensor
// cores", PeerJ CS 7 (2021).
#include <metalnb/matrix_strips.h>

#ifndef B_WINDOWS  // whether B consists of windows: see tile_loads.h
#define B_WINDOWS 0
#endif

constant constexpr uint DEPTH = 32;  // of a strip

/// The same for columns from windows: two elements of 16 bits per word.
template <uint H, uint THREADS> struct Columns : WindowStrips<ushort, H, THREADS, DEPTH> {
    using Base = WindowStrips<ushort, H, THREADS, DEPTH>;
    static constexpr constant bool ACROSS = true;
    static constexpr constant uint PITCH = H + 8, SIZE = PITCH * DEPTH, EACH = Base::N / 8;

    static uint place(uint line, uint k) { return k * PITCH + line; }

    static void read(thread uint4 (&prefetched)[EACH], thread Seen<ushort>& seen, constant Window& w) {
        ushort elements[Base::N];
        Base::read(elements, seen, w);
        UNROLL for (uint e = 0; e < Base::N; e += 2) prefetched[e / 8][e / 2 % 4] = elements[e] | uint(elements[e + 1]) << 16;
    }
    static void write(thread const uint4 (&prefetched)[EACH], threadgroup ushort* strip, uint t) {
        UNROLL for (uint e = 0; e < Base::N; ++e)
            strip[place(t % H, t / H + e * Base::STEP)] = ushort(prefetched[e / 8][e / 2 % 4] >> 16 * (e % 2));
    }
};

#if B_WINDOWS
#define READ_B(remaining) B::read(next_b, y, w)
#define WRITE_B(strip, remaining) B::write(next_b, strip, t)
#else
#define READ_B(remaining) B::read(next_b, y, remaining, t)
#define WRITE_B(strip, remaining) B::write(next_b, strip, y, remaining, b_along, t)
#endif

/// C = A B by DOWN x ACROSS SIMD-groups, each of which computes HIGH x WIDE matrices of sums, kept as float.
///
/// It does not limit the threads of a threadgroup: a SIMD-group's 64 x 64 sums need all available registers.
///
/// Threadgroups: x is the tile, z the part of K and the product of the batch.
template <typename T, typename C, uint DOWN, uint ACROSS, uint HIGH, uint WIDE>
kernel void matrix_tiles(device const ushort* a      [[buffer(0)]],
                         device const ushort* b      [[buffer(1)]],
                         device memory_of<C>* c      [[buffer(2)]],
                         device const long*   starts [[buffer(3)]],  // where each product's A and B begin
                         constant Product&    p      [[buffer(4)]],  // `b_panel` leads from one column of B to the next
#if B_WINDOWS
                         constant Window&     w      [[buffer(5)]],
#endif
                         uint3 group [[threadgroup_position_in_grid]],
                         uint  t     [[thread_index_in_threadgroup]]) {
    constexpr uint ROWS = 8 * HIGH * DOWN, COLUMNS = 8 * WIDE * ACROSS, THREADS = 32 * DOWN * ACROSS;
    using A = Strips<A_WAY, ROWS, THREADS, DEPTH>;
#if B_WINDOWS
    using B = Columns<COLUMNS, THREADS>;
#else
    using B = Strips<B_WAY, COLUMNS, THREADS, DEPTH>;
#endif
    constexpr uint SIZE = A::SIZE + B::SIZE, STORED = DOWN * ACROSS * 8 * 8 * WIDE * 2;
    threadgroup uint4 room[(SIZE > STORED ? SIZE : STORED) / 8];
    threadgroup ushort* const strips = reinterpret_cast<threadgroup ushort*>(room);
    const Part part = part_of(group.z, p);
    const uint2 first = corner(group.x, p.M, p.N, ROWS, COLUMNS);
    const bool a_along = abs(p.a_k) <= abs(p.a_row), b_along = abs(p.b_k) <= abs(p.b_panel);
    auto x = A::lines(a + starts[2 * part.batch] + first.x * p.a_row + part.first * p.a_k, p.a_row, p.a_k,
                      p.M - first.x, a_along, t);
#if B_WINDOWS
    auto y = B::lines(b + starts[2 * part.batch + 1], first.y, p.N - first.y, part.first / DEPTH, w, t);
#else
    auto y = B::lines(b + starts[2 * part.batch + 1] + first.y * p.b_panel + part.first * p.b_k, p.b_panel, p.b_k,
                      p.N - first.y, b_along, t);
#endif
    const uint simd = t / 32, lane = t % 32;
    const uint row = simd % DOWN * 8 * HIGH, column = simd / DOWN * 8 * WIDE;

    uint4 next_a[A::EACH], next_b[B::EACH];
    simdgroup_float8x8 sum[HIGH][WIDE];
    EACH_MATRIX for (uint r = 0; r < HIGH; ++r)
        EACH_MATRIX for (uint s = 0; s < WIDE; ++s) sum[r][s] = make_filled_simdgroup_matrix<float, 8, 8>(0);
    A::read(next_a, x, part.K, t);
    READ_B(part.K);
    const uint steps = (part.K + DEPTH - 1) / DEPTH;
    for (uint step = 0; step < steps; ++step) {
        const uint remaining = part.K - step * DEPTH;
        A::write(next_a, strips, x, remaining, a_along, t);
        WRITE_B(strips + A::SIZE, remaining);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (step + 1 < steps) {
            A::read(next_a, x, remaining - DEPTH, t);
            READ_B(remaining - DEPTH);
        }
        UNROLL for (uint k = 0; k < DEPTH; k += 16)
            multiply_strips<A, B>(sum, reinterpret_cast<threadgroup const T*>(room + A::place(row, k) / 8),
                                  reinterpret_cast<threadgroup const T*>(room + (A::SIZE + B::place(column, k)) / 8));
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    threadgroup float* const own = reinterpret_cast<threadgroup float*>(room) + simd * 8 * 8 * WIDE;
    c += (long(part.c) * p.M + first.x + row) * p.N + first.y + column;
    store_sums<C>(sum, own, c, p.N, int(p.M) - int(first.x + row), int(p.N) - int(first.y + column), lane);
}

#define TILES(name, suffix, DOWN, ACROSS, HIGH, T, C) \
    template [[host_name(#name "_" #suffix)]] [[kernel]] \
    decltype(matrix_tiles<T, C, DOWN, ACROSS, HIGH, 8>) matrix_tiles<T, C, DOWN, ACROSS, HIGH, 8>;
#define EACH_SIZE(suffix, T, C)                                                                            \
    TILES(large_matrix_tiles, suffix, 2, 4, 8, T, C) TILES(matrix_tiles, suffix, 2, 2, 8, T, C)                   \
    TILES(small_matrix_tiles, suffix, 2, 2, 4, T, C)

EACH_SIZE(half, half, half)
EACH_SIZE(half_parts, half, float)
EACH_SIZE(bfloat16, bfloat, bfloat16)
EACH_SIZE(bfloat16_parts, bfloat, float)
