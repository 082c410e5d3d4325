// C = A B of half and bfloat where loads take long, by SIMD-group matrices: what a GPU multiplies in hardware of its own. A
// threadgroup brings a strip of A and one of B into threadgroup memory, and reads the next ones into registers while it
// multiplies. A strip lies there as its factor does in memory, so that neighbouring lanes read, and write, neighbours.
//
// Source: as tiles.metal; the accumulators of float are those of M. Fasi et al., "Numerical behavior of NVIDIA tensor cores",
// PeerJ CS 7 (2021).
#include <metalnb/tile_loads.h>

#ifndef B_WINDOWS  // whether B is made of windows: see tile_loads.h
#define B_WINDOWS 0
#endif

constant constexpr uint DEPTH = 32;  // of a strip

/// Brings strips of H lines, DEPTH deep, into threadgroup memory. Elements are moved as 16 bits.
template <Way WAY, uint H, uint THREADS> struct Strips {
    static constexpr constant bool ACROSS = WAY == WIDE_ACROSS;         // how a strip lies
    static constexpr constant uint PITCH = (ACROSS ? H : DEPTH) + 8;    // a matrix's rows fall into different banks
    static constexpr constant uint SIZE = PITCH * (ACROSS ? DEPTH : H);
    static constexpr constant uint EACH = H * DEPTH / THREADS / 8;      // eights

    /// Where an element is in a strip.
    static uint place(uint line, uint k) { return ACROSS ? k * PITCH + line : line * PITCH + k; }

    /// The line and the place along K of a thread's eight.
    static uint2 eight(uint i) {
        return ACROSS ? uint2(i % (H / 8) * 8, i / (H / 8)) : uint2(i / (DEPTH / 8), i % (DEPTH / 8) * 8);
    }
    /// The same of a single element.
    static uint2 one(uint i, bool along) { return along ? uint2(i / DEPTH, i % DEPTH) : uint2(i % H, i / H); }

    /// Read what this thread brings of the next strip, of which `left` elements are there; 0 beyond the ends.
    static void read(thread uint4 (&held)[EACH], thread const Lines<ushort>& x, uint left, uint t) {
        UNROLL for (uint f = 0; f < (WAY == ANY ? 0 : EACH); ++f) {
            const uint2 at = eight(t + f * THREADS), start = eight(t);
            device const ushort* from = x.from + (at.x - start.x) * x.line + (at.y - start.y) * x.k;
            held[f] = at.x < x.count && at.y < left ? *reinterpret_cast<device const uint4*>(from) : uint4(0);
        }
    }

    /// Write what was read into the strip, and move on to the next.
    static void write(thread const uint4 (&held)[EACH], threadgroup ushort* strip, thread Lines<ushort>& x, uint left,
                      bool along, uint t) {
        if (WAY == ANY) {
            const uint2 at = one(t, along);
            const uint lines = along ? THREADS / DEPTH : 0, ks = along ? 0 : THREADS / H;
            const long step = lines * x.line + ks * x.k;
            device const ushort* from = x.from;
            _Pragma("clang loop unroll(disable)") for (uint e = 0; e < 8 * EACH; ++e, from += step) {
                const uint line = at.x + e * lines, k = at.y + e * ks;
                strip[place(line, k)] = line < x.count && k < left ? *from : ushort(0);
            }
        }
        UNROLL for (uint f = 0; f < (WAY == ANY ? 0 : EACH); ++f) {
            const uint2 at = eight(t + f * THREADS);
            *reinterpret_cast<threadgroup uint4*>(strip + place(at.x, at.y)) = held[f];
        }
        x.from += DEPTH * x.k;
    }

    /// Where this thread begins: what `read` is given.
    static Lines<ushort> lines(device const ushort* corner, long line, long k, uint count, bool along, uint t) {
        const uint2 at = WAY == ANY ? one(t, along) : eight(t);
        return {corner + at.x * line + at.y * k, line, k, count};
    }
};

/// The same of columns that windows make: two elements of 16 bits to a word.
template <uint H, uint THREADS> struct Columns : WindowStrips<ushort, H, THREADS, DEPTH> {
    using Base = WindowStrips<ushort, H, THREADS, DEPTH>;
    static constexpr constant bool ACROSS = true;
    static constexpr constant uint PITCH = H + 8, SIZE = PITCH * DEPTH, EACH = Base::N / 8;

    static uint place(uint line, uint k) { return k * PITCH + line; }

    static void read(thread uint4 (&held)[EACH], thread Seen<ushort>& seen, constant Window& w) {
        ushort found[Base::N];
        Base::read(found, seen, w);
        UNROLL for (uint e = 0; e < Base::N; e += 2) held[e / 8][e / 2 % 4] = found[e] | uint(found[e + 1]) << 16;
    }
    static void write(thread const uint4 (&held)[EACH], threadgroup ushort* strip, uint t) {
        UNROLL for (uint e = 0; e < Base::N; ++e)
            strip[place(t % H, t / H + e * Base::STEP)] = ushort(held[e / 8][e / 2 % 4] >> 16 * (e % 2));
    }
};

#if B_WINDOWS
#define READ_B(left) B::read(next_b, y, w)
#define WRITE_B(strip, left) B::write(next_b, strip, t)
#else
#define READ_B(left) B::read(next_b, y, left, t)
#define WRITE_B(strip, left) B::write(next_b, strip, y, left, b_along, t)
#endif

// METALNB_MATRIX_BLOCKS: two matrices of sums are multiplied by one instruction, and each has registers of its own. Where the
// lanes compute them one by one, the loops below would only become long.
#ifdef METALNB_MATRIX_BLOCKS
#define EACH_MATRIX UNROLL
#else
#define EACH_MATRIX _Pragma("clang loop unroll(disable)")
#endif

/// sum += a b for 16 along K; a and b begin at the first of this SIMD-group's matrices in their strips.
template <typename A, typename B, typename T, uint HIGH, uint WIDE>
METAL_FUNC void multiply_strips(thread simdgroup_float8x8 (&sum)[HIGH][WIDE], threadgroup const T* a, threadgroup const T* b) {
    simdgroup_matrix<T, 8, 8> x[HIGH][2];
    EACH_MATRIX for (uint r = 0; r < HIGH; ++r)
        EACH_MATRIX for (uint k = 0; k < 2; ++k)
            simdgroup_load(x[r][k], a + A::place(8 * r, 8 * k), A::PITCH, ulong2(0), A::ACROSS);
    EACH_MATRIX for (uint c = 0; c < WIDE; ++c) {
        simdgroup_matrix<T, 8, 8> y[2];
        EACH_MATRIX for (uint k = 0; k < 2; ++k)
            simdgroup_load(y[k], b + B::place(8 * c, 8 * k), B::PITCH, ulong2(0), !B::ACROSS);
        EACH_MATRIX for (uint r = 0; r < HIGH; r += 2) {
#ifdef METALNB_MATRIX_BLOCKS
            metalnb_multiply_block(sum[r][c], sum[r + 1][c], x[r][0], x[r][1], x[r + 1][0], x[r + 1][1], y[0], y[1]);
#else
            EACH_MATRIX for (uint h = r; h < r + 2; ++h)
                EACH_MATRIX for (uint k = 0; k < 2; ++k) simdgroup_multiply_accumulate(sum[h][c], x[h][k], y[k], sum[h][c]);
#endif
        }
    }
}

/// C = A B by DOWN x ACROSS SIMD-groups, which make HIGH x WIDE matrices of sums each, kept as float.
///
/// It does not say how many threads a threadgroup has: 64 x 64 sums of a SIMD-group need all registers that there are.
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
    using A = Strips<A_WAY, ROWS, THREADS>;
#if B_WINDOWS
    using B = Columns<COLUMNS, THREADS>;
#else
    using B = Strips<B_WAY, COLUMNS, THREADS>;
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
        const uint left = part.K - step * DEPTH;
        A::write(next_a, strips, x, left, a_along, t);
        WRITE_B(strips + A::SIZE, left);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (step + 1 < steps) {
            A::read(next_a, x, left - DEPTH, t);
            READ_B(left - DEPTH);
        }
        UNROLL for (uint k = 0; k < DEPTH; k += 16)
            multiply_strips<A, B>(sum, reinterpret_cast<threadgroup const T*>(room + A::place(row, k) / 8),
                                  reinterpret_cast<threadgroup const T*>(room + (A::SIZE + B::place(column, k)) / 8));
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    // By way of threadgroup memory, eight rows at a time: which thread has which element is nobody's business.
    threadgroup float* const own = reinterpret_cast<threadgroup float*>(room) + simd * 8 * 8 * WIDE;
    c += (long(part.c) * p.M + first.x + row) * p.N + first.y + column;
    EACH_MATRIX for (uint r = 0; r < HIGH; ++r) {
        EACH_MATRIX for (uint s = 0; s < WIDE; ++s) simdgroup_store(sum[r][s], own + 8 * s, 8 * WIDE);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < 8 && first.x + row + 8 * r + i < p.M; ++i)
            UNROLL for (uint s = lane; s < 8 * WIDE; s += 32)
                if (first.y + column + s < p.N)
                    c[(8 * r + i) * long(p.N) + s] = storage<C>::store(own[i * 8 * WIDE + s]);
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
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
