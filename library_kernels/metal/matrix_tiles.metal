// C = A B of half and bfloat where loads take long, by SIMD-group matrices: what a GPU multiplies in hardware of its own. As in
// tiles.metal a threadgroup brings strips of A and B into threadgroup memory, in turns, and each SIMD-group makes 32 rows of 64
// columns: 4 x 8 matrices of sums, kept as float. Both strips lie along K, so that neighbours of a factor are read together.
//
// Source: as tiles.metal; the accumulators of float are those of M. Fasi et al., "Numerical behavior of NVIDIA tensor cores",
// PeerJ CS 7 (2021).
#include <metalnb/tile_loads.h>

constant constexpr uint DEPTH = 16;          // of a strip: two matrices
constant constexpr uint PITCH = DEPTH + 8;  // from one line to the next: a matrix's rows fall into different banks

/// The rows and columns of sums that a SIMD-group makes.
constant constexpr uint DOWN_EACH = 32, ACROSS_EACH = 64;

/// Brings strips of H lines, DEPTH deep, into threadgroup memory, each line along K. Elements are moved as 16 bits.
template <Way WAY, uint H, uint THREADS> struct Strips {
    static constexpr constant uint EACH = H * DEPTH / THREADS / 8;  // eights

    /// The line and the place along K of a thread's eight: of one line, or four lines of two; or of a single element.
    static uint2 eight(uint i) {
        return WAY == WIDE_ALONG ? uint2(i / (DEPTH / 8), i % (DEPTH / 8) * 8) : uint2(i / (DEPTH / 2) * 4, i % (DEPTH / 2) * 2);
    }
    static uint2 one(uint i, bool along) { return along ? uint2(i / DEPTH, i % DEPTH) : uint2(i % H, i / H); }

    /// Read what this thread brings of the next strip, of which `left` elements are there; 0 beyond the ends.
    static void read(thread uint4 (&held)[EACH], thread const Lines<ushort>& x, uint left, uint t) {
        UNROLL for (uint f = 0; f < (WAY == ANY ? 0 : EACH); ++f) {
            const uint2 at = eight(t + f * THREADS), start = eight(t);
            device const ushort* from = x.from + (at.x - start.x) * x.line + (at.y - start.y) * x.k;
            held[f] = 0;
            if (WAY == WIDE_ALONG) {
                if (at.x < x.count && at.y < left) held[f] = *reinterpret_cast<device const uint4*>(from);
            } else {
                uint2 even = 0, odd = 0;
                if (at.x < x.count && at.y < left) even = *reinterpret_cast<device const uint2*>(from);
                if (at.x < x.count && at.y + 1 < left) odd = *reinterpret_cast<device const uint2*>(from + x.k);
                held[f] = uint4(even, odd);
            }
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
                strip[line * PITCH + k] = line < x.count && k < left ? *from : ushort(0);
            }
        }
        UNROLL for (uint f = 0; f < (WAY == ANY ? 0 : EACH); ++f) {
            const uint2 at = eight(t + f * THREADS);
            if (WAY == WIDE_ALONG) {
                *reinterpret_cast<threadgroup uint4*>(strip + at.x * PITCH + at.y) = held[f];
            } else {
                UNROLL for (uint e = 0; e < 4; ++e) {
                    const uint even = held[f][e / 2] >> e % 2 * 16 & 0xFFFF, odd = held[f][2 + e / 2] >> e % 2 * 16;
                    *reinterpret_cast<threadgroup uint*>(strip + (at.x + e) * PITCH + at.y) = even | odd << 16;
                }
            }
        }
        x.from += DEPTH * x.k;
    }

    /// Where this thread begins: what `read` is given.
    static Lines<ushort> lines(device const ushort* corner, long line, long k, uint count, bool along, uint t) {
        const uint2 at = WAY == ANY ? one(t, along) : eight(t);
        return {corner + at.x * line + at.y * k, line, k, count};
    }
};

// METALNB_MATRIX_BLOCKS: two matrices of sums are multiplied by one instruction, and each has registers of its own. Where the
// lanes compute them one by one, the loops below would only become long.
#ifdef METALNB_MATRIX_BLOCKS
#define EACH_MATRIX UNROLL
#else
#define EACH_MATRIX _Pragma("clang loop unroll(disable)")
#endif

/// sum += a b for one strip of each.
template <typename T>
inline void multiply_strips(thread simdgroup_float8x8 (&sum)[4][8], threadgroup const T* a, threadgroup const T* b) {
    simdgroup_matrix<T, 8, 8> x[4][2];
    EACH_MATRIX for (uint r = 0; r < 4; ++r)
        EACH_MATRIX for (uint k = 0; k < 2; ++k) simdgroup_load(x[r][k], a + 8 * r * PITCH + 8 * k, PITCH);
    EACH_MATRIX for (uint c = 0; c < 8; ++c) {
        simdgroup_matrix<T, 8, 8> y[2];
        EACH_MATRIX for (uint k = 0; k < 2; ++k) simdgroup_load(y[k], b + 8 * c * PITCH + 8 * k, PITCH, ulong2(0), true);
        EACH_MATRIX for (uint r = 0; r < 4; r += 2) {
#ifdef METALNB_MATRIX_BLOCKS
            metalnb_multiply_block(sum[r][c], sum[r + 1][c], x[r][0], x[r][1], x[r + 1][0], x[r + 1][1], y[0], y[1]);
#else
            EACH_MATRIX for (uint h = r; h < r + 2; ++h)
                EACH_MATRIX for (uint k = 0; k < 2; ++k) simdgroup_multiply_accumulate(sum[h][c], x[h][k], y[k], sum[h][c]);
#endif
        }
    }
}

/// C = A B by DOWN x ACROSS SIMD-groups: tiles of 32 DOWN rows and 64 ACROSS columns.
///
/// Threadgroups: x is the tile, z the part of K and the product of the batch.
template <typename T, typename C, uint DOWN, uint ACROSS>
[[max_total_threads_per_threadgroup(32 * DOWN * ACROSS)]]
kernel void matrix_tiles(device const ushort* a      [[buffer(0)]],
                         device const ushort* b      [[buffer(1)]],
                         device memory_of<C>* c      [[buffer(2)]],
                         device const long*   starts [[buffer(3)]],  // where each product's A and B begin
                         constant Product&    p      [[buffer(4)]],  // `b_panel` leads from one column of B to the next
                         uint3 group [[threadgroup_position_in_grid]],
                         uint  t     [[thread_index_in_threadgroup]]) {
    constexpr uint ROWS = DOWN_EACH * DOWN, COLUMNS = ACROSS_EACH * ACROSS, THREADS = 32 * DOWN * ACROSS;
    constexpr uint STRIP_A = ROWS * PITCH, STRIP_B = COLUMNS * PITCH;
    using A = Strips<A_WAY, ROWS, THREADS>;
    using B = Strips<B_WAY, COLUMNS, THREADS>;
    threadgroup uint4 room[(STRIP_A + STRIP_B) * 2 / 8];
    threadgroup ushort* const strips = reinterpret_cast<threadgroup ushort*>(room);
    const Part part = part_of(group.z, p);
    const uint2 first = corner(group.x, p.M, p.N, ROWS, COLUMNS);
    const bool a_along = abs(p.a_k) <= abs(p.a_row), b_along = abs(p.b_k) <= abs(p.b_panel);
    auto x = A::lines(a + starts[2 * part.batch] + first.x * p.a_row + part.first * p.a_k, p.a_row, p.a_k,
                      p.M - first.x, a_along, t);
    auto y = B::lines(b + starts[2 * part.batch + 1] + first.y * p.b_panel + part.first * p.b_k, p.b_panel, p.b_k,
                      p.N - first.y, b_along, t);
    const uint simd = t / 32, lane = t % 32;
    const uint row = simd % DOWN * DOWN_EACH, column = simd / DOWN * ACROSS_EACH;

    uint4 next_a[A::EACH], next_b[B::EACH];
    simdgroup_float8x8 sum[4][8];
    EACH_MATRIX for (uint r = 0; r < 4; ++r)
        EACH_MATRIX for (uint s = 0; s < 8; ++s) sum[r][s] = make_filled_simdgroup_matrix<float, 8, 8>(0);
    A::read(next_a, x, part.K, t);
    B::read(next_b, y, part.K, t);
    A::write(next_a, strips, x, part.K, a_along, t);
    B::write(next_b, strips + 2 * STRIP_A, y, part.K, b_along, t);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint steps = (part.K + DEPTH - 1) / DEPTH;
    for (uint step = 0; step < steps; ++step) {
        const uint now = step % 2, left = part.K - (step + 1) * DEPTH;
        const bool more = step + 1 < steps;
        if (more) {
            A::read(next_a, x, left, t);
            B::read(next_b, y, left, t);
        }
        multiply_strips<T>(sum, reinterpret_cast<threadgroup const T*>(room + (now * STRIP_A + row * PITCH) / 8),
                           reinterpret_cast<threadgroup const T*>(room + (2 * STRIP_A + now * STRIP_B + column * PITCH) / 8));
        if (more) {
            A::write(next_a, strips + (1 - now) * STRIP_A, x, left, a_along, t);
            B::write(next_b, strips + 2 * STRIP_A + (1 - now) * STRIP_B, y, left, b_along, t);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    // By way of threadgroup memory, eight rows at a time: which thread has which element is nobody's business.
    threadgroup float* const own = reinterpret_cast<threadgroup float*>(room) + simd * 8 * ACROSS_EACH;
    c += (long(part.c) * p.M + first.x + row) * p.N + first.y + column;
    EACH_MATRIX for (uint r = 0; r < 4; ++r) {
        EACH_MATRIX for (uint s = 0; s < 8; ++s) simdgroup_store(sum[r][s], own + 8 * s, ACROSS_EACH);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < 8 && first.x + row + 8 * r + i < p.M; ++i)
            UNROLL for (uint s = lane; s < ACROSS_EACH; s += 32)
                if (first.y + column + s < p.N)
                    c[(8 * r + i) * long(p.N) + s] = storage<C>::store(own[i * ACROSS_EACH + s]);
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
}

#define TILES(name, suffix, DOWN, ACROSS, T, C) \
    template [[host_name(#name "_" #suffix)]] [[kernel]] decltype(matrix_tiles<T, C, DOWN, ACROSS>) matrix_tiles<T, C, DOWN, ACROSS>;
#define EACH_SIZE(suffix, T, C) TILES(matrix_tiles, suffix, 4, 2, T, C) TILES(small_matrix_tiles, suffix, 2, 2, T, C)

EACH_SIZE(half, half, half)
EACH_SIZE(half_parts, half, float)
EACH_SIZE(bfloat16, bfloat, bfloat16)
EACH_SIZE(bfloat16_parts, bfloat, float)
