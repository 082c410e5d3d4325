// C = A B for devices with slow loads. A threadgroup computes a tile of C: it loads the next strips of A and B into
// threadgroup memory while it multiplies the current ones, and each thread keeps a block of 8 x 8 sums in registers. A
// SIMD-group computes 32 rows of 64 columns; its threads' rows and columns come in groups of four, so that the elements
// they read are in different banks.
//
// Source: V. Volkov, J. Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra", SC 2008 (blocks in registers);
// G. Tan et al., "Fast Implementation of DGEMM on Fermi GPU", SC 2011 (two strips of each factor, alternating).
#include <metalnb/tile_loads.h>

#ifndef B_WINDOWS  // whether B consists of windows: see tile_loads.h
#define B_WINDOWS 0
#endif

constant constexpr uint DEPTH = 8;  // of a strip
constant constexpr uint PAD = 4;    // elements transposed on the way into the strip fall into different banks

/// Loads strips of H lines, DEPTH deep, into threadgroup memory, with lines adjacent: T threads, EACH elements per
/// thread.
template <typename T, typename V, Way WAY, uint H, uint THREADS> struct Strips {
    using M = memory_of<T>;
    static constexpr constant uint EACH = H * DEPTH / THREADS, FOURS = EACH / 4;

    /// The line and the position along K of a thread's four elements, or of a single one.
    static uint2 four(uint i) {
        return WAY == WIDE_ALONG ? uint2(i / (DEPTH / 4), i % (DEPTH / 4) * 4) : uint2(i % (H / 4) * 4, i / (H / 4));
    }
    static uint2 one(uint i, bool along) { return along ? uint2(i / DEPTH, i % DEPTH) : uint2(i % H, i / H); }

    /// Read this thread's part of the next strip, which has `remaining` elements; 0 beyond the ends.
    static void read(thread V (&prefetched)[EACH], thread const Lines<M>& x, uint remaining, uint t) {
        UNROLL for (uint f = 0; f < (WAY == ANY ? 0 : FOURS); ++f) {
            const uint2 at = four(t + f * THREADS), start = four(t);
            vec<M, 4> four = 0;
            if (at.x < x.count && at.y < remaining)
                four = *reinterpret_cast<device const vec<M, 4>*>(x.from + (at.x - start.x) * x.line + (at.y - start.y) * x.k);
            UNROLL for (uint e = 0; e < 4; ++e) prefetched[4 * f + e] = V(storage<T>::load(four[e]));
        }
    }

    /// Write the elements read into the strip, and move on to the next.
    static void write(thread const V (&prefetched)[EACH], threadgroup V (&strip)[DEPTH][H + PAD], thread Lines<M>& x, uint remaining,
                      bool along, uint t) {
        if (WAY == ANY) {  // not prefetched: the registers suffice for vectors of four, not for separate addresses
            const uint2 at = one(t, along);
            const uint lines = along ? THREADS / DEPTH : 0, ks = along ? 0 : THREADS / H;
            const long step = lines * x.line + ks * x.k;
            device const M* from = x.from;
            _Pragma("clang loop unroll(disable)") for (uint e = 0; e < EACH; ++e, from += step) {
                const uint line = at.x + e * lines, k = at.y + e * ks;
                strip[k][line] = line < x.count && k < remaining ? V(storage<T>::load(*from)) : V(0);
            }
        }
        UNROLL for (uint f = 0; f < (WAY == ANY ? 0 : FOURS); ++f) {
            const uint2 at = four(t + f * THREADS);
            if (WAY == WIDE_ALONG) {
                UNROLL for (uint e = 0; e < 4; ++e) strip[at.y + e][at.x] = prefetched[4 * f + e];
            } else {
                *reinterpret_cast<threadgroup vec<V, 4>*>(&strip[at.y][at.x]) =
                    vec<V, 4>(prefetched[4 * f], prefetched[4 * f + 1], prefetched[4 * f + 2], prefetched[4 * f + 3]);
            }
        }
        x.from += DEPTH * x.k;
    }

    /// This thread's start, the argument of `read`.
    static Lines<M> lines(device const M* corner, long line, long k, uint count, bool along, uint t) {
        const uint2 at = WAY == ANY ? one(t, along) : four(t);
        return {corner + at.x * line + at.y * k, line, k, count};
    }
};

/// Loads strips of columns from windows in the same way.
template <typename T, typename V, uint H, uint THREADS> struct Columns : WindowStrips<memory_of<T>, H, THREADS, DEPTH> {
    using M = memory_of<T>;
    using Base = WindowStrips<M, H, THREADS, DEPTH>;
    static constexpr constant uint EACH = Base::N;

    static void read(thread V (&prefetched)[EACH], thread Seen<M>& seen, constant Window& w) {
        M found[EACH];
        Base::read(found, seen, w);
        UNROLL for (uint e = 0; e < EACH; ++e) prefetched[e] = V(storage<T>::load(found[e]));
    }
    static void write(thread const V (&prefetched)[EACH], threadgroup V (&strip)[DEPTH][H + PAD], uint t) {
        UNROLL for (uint e = 0; e < EACH; ++e) strip[t / H + e * Base::STEP][t % H] = prefetched[e];
    }
};

/// sum += a b for one strip of each.
template <typename V, uint H, uint W>
inline void multiply_strips(thread V (&sum)[8][8], threadgroup const V (&a)[DEPTH][H], threadgroup const V (&b)[DEPTH][W],
                            uint row, uint column) {
    UNROLL for (uint k = 0; k < DEPTH; ++k) {
        vec<V, 4> x[2], y[2];
        UNROLL for (uint h = 0; h < 2; ++h) {
            x[h] = *reinterpret_cast<threadgroup const vec<V, 4>*>(&a[k][row + 16 * h]);
            y[h] = *reinterpret_cast<threadgroup const vec<V, 4>*>(&b[k][column + 32 * h]);
        }
        UNROLL for (uint r = 0; r < 8; ++r)
            UNROLL for (uint c = 0; c < 8; ++c) sum[r][c] = multiply_add(x[r / 4][r % 4], y[c / 4][c % 4], sum[r][c]);
    }
}

#if B_WINDOWS
#define READ_B(remaining) B::read(next_b, y, w)
#define WRITE_B(strip, remaining) B::write(next_b, strip, t)
#else
#define READ_B(remaining) B::read(next_b, y, remaining, t)
#define WRITE_B(strip, remaining) B::write(next_b, strip, y, remaining, b_along, t)
#endif

/// C = A B by DOWN x ACROSS SIMD-groups: tiles of 32 DOWN rows and 64 ACROSS columns.
///
/// Threadgroups: x is the tile, z the part of K and the product of the batch.
template <typename T, typename V, typename C, uint DOWN, uint ACROSS>
[[max_total_threads_per_threadgroup(32 * DOWN * ACROSS)]]
kernel void tiles(device const memory_of<T>* a      [[buffer(0)]],
                  device const memory_of<T>* b      [[buffer(1)]],
                  device memory_of<C>*       c      [[buffer(2)]],
                  device const long*         starts [[buffer(3)]],  // where each product's A and B begin
                  constant Product&          p      [[buffer(4)]],  // `b_panel` leads from one column of B to the next
#if B_WINDOWS
                  constant Window&           w      [[buffer(5)]],
#endif
                  uint3 group [[threadgroup_position_in_grid]],
                  uint  t     [[thread_index_in_threadgroup]]) {
    constexpr uint ROWS = 32 * DOWN, COLUMNS = 64 * ACROSS, THREADS = 32 * DOWN * ACROSS;
    using A = Strips<T, V, A_WAY, ROWS, THREADS>;
#if B_WINDOWS
    using B = Columns<T, V, COLUMNS, THREADS>;
#else
    using B = Strips<T, V, B_WAY, COLUMNS, THREADS>;
#endif
    threadgroup V strip_a[2][DEPTH][ROWS + PAD];
    threadgroup V strip_b[2][DEPTH][COLUMNS + PAD];
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
    const uint row = simd % DOWN * 32 + lane / 8 * 4, column = simd / DOWN * 64 + lane % 8 * 4;

    V next_a[A::EACH], next_b[B::EACH], sum[8][8];
    UNROLL for (uint r = 0; r < 8; ++r) UNROLL for (uint s = 0; s < 8; ++s) sum[r][s] = 0;
    A::read(next_a, x, part.K, t);
    READ_B(part.K);
    A::write(next_a, strip_a[0], x, part.K, a_along, t);
    WRITE_B(strip_b[0], part.K);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint steps = (part.K + DEPTH - 1) / DEPTH;
    for (uint step = 0; step < steps; ++step) {
        const uint now = step % 2, remaining = part.K - (step + 1) * DEPTH;
        const bool more = step + 1 < steps;
        if (more) {
            A::read(next_a, x, remaining, t);
            READ_B(remaining);
        }
        multiply_strips(sum, strip_a[now], strip_b[now], row, column);
        if (more) {
            A::write(next_a, strip_a[1 - now], x, remaining, a_along, t);
            WRITE_B(strip_b[1 - now], remaining);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    c += (long(part.c) * p.M + first.x + row) * p.N + first.y + column;
    UNROLL for (uint r = 0; r < 8; ++r) {
        const uint down = r / 4 * 16 + r % 4;
        if (first.x + row + down >= p.M) continue;
        UNROLL for (uint s = 0; s < 8; ++s) {
            const uint along = s / 4 * 32 + s % 4;
            if (first.y + column + along < p.N) c[down * long(p.N) + along] = storage<C>::store(sum[r][s]);
        }
    }
}

#define TILES(name, suffix, DOWN, ACROSS, ...) \
    template [[host_name(#name "_" #suffix)]] [[kernel]] decltype(tiles<__VA_ARGS__, DOWN, ACROSS>) tiles<__VA_ARGS__, DOWN, ACROSS>;
#define EACH_SIZE(suffix, ...) TILES(tiles, suffix, 4, 2, __VA_ARGS__) TILES(small_tiles, suffix, 2, 2, __VA_ARGS__)

EACH_SIZE(float, float, float, float)
EACH_SIZE(half, half, float, half)
EACH_SIZE(half_parts, half, float, float)
EACH_SIZE(bfloat16, bfloat16, float, bfloat16)
EACH_SIZE(bfloat16_parts, bfloat16, float, float)
EACH_SIZE(bool, bool, uint, bool)
EACH_SIZE(uchar, uchar, uint, uchar)
EACH_SIZE(ushort, ushort, uint, ushort)
EACH_SIZE(uint, uint, uint, uint)
