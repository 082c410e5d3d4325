// C = A B of half and bfloat like matrix_tiles.metal, for factors that are read eight elements at a time: while one
// strip is multiplied, several more are being copied into threadgroup memory, asynchronously if the device can. So a
// strip is only half as deep, no registers are needed for loads in flight, and one barrier per strip is enough: after
// it all threads have finished the strip that the next copies overwrite.
//
// Source: as matrix_tiles.metal; NVIDIA, "CUTLASS: efficient GEMM in CUDA", multistage pipelines.
#include <metalnb/matrix_strips.h>

#ifndef B_WINDOWS  // whether B consists of windows of images whose channels are neighbors
#define B_WINDOWS 0
#endif

constant constexpr uint DEPTH = 16;     // of a strip
constant constexpr uint ROOM = 32768;   // bytes of threadgroup memory
constant constexpr uint MOST = 4;       // strips in flight

/// Columns from windows: a thread copies eight channels of EACH positions. A strip has one element of the windows.
template <uint H, uint THREADS> struct WindowPipes {
    static constexpr constant bool ACROSS = false;
    static constexpr constant uint PITCH = DEPTH + 8, SIZE = PITCH * H, EACH = H * DEPTH / THREADS / 8;
    static constexpr constant uint PIECES = DEPTH / 8, STEP = THREADS / PIECES;

    device const ushort* image;
    int2 places[EACH];  // of the windows' first elements
    uint2 tap;          // the element that comes next,
    uint channel;       // from this channel on
    ulong from[EACH];   // where its channels begin
    bool inside[EACH];

    static uint place(uint line, uint k) { return line * PITCH + k; }

    void start(device const ushort* given, uint first, uint count, uint strip, constant Window& w, uint t) {
        const uint strips = w.channels / DEPTH, element = strip / strips;
        image = given + t % PIECES * 8;
        tap = uint2(element % w.size.x, element / w.size.x);
        channel = strip % strips * DEPTH;
        UNROLL for (uint f = 0; f < EACH; ++f) {
            const uint line = t / PIECES + f * STEP, at = first + line;
            places[f] = int2(at % w.places.x * w.stride.x, at / w.places.x * w.stride.y) - w.padding;
            if (line >= count) places[f].y = -(1 << 30);
        }
        find(w);
    }
    void find(constant Window& w) {
        UNROLL for (uint f = 0; f < EACH; ++f) {
            const int x = places[f].x + int(tap.x * w.dilation.x), y = places[f].y + int(tap.y * w.dilation.y);
            inside[f] = x >= 0 && x < int(w.image.x) && y >= 0 && y < int(w.image.y);
            from[f] = inside[f] ? (ulong(y) * w.image.x + x) * w.pitch : 0;
        }
    }
    /// Start copying the next strip.
    void bring(threadgroup ushort* strip, constant Window& w, uint t) {
        UNROLL for (uint f = 0; f < EACH; ++f)
            metalnb_copy(reinterpret_cast<threadgroup uint4*>(strip + place(t / PIECES + f * STEP, t % PIECES * 8)),
                         reinterpret_cast<device const uint4*>(image + from[f] + channel), inside[f]);
        channel += DEPTH;
        if (channel < w.channels) return;
        channel = 0;
        if (++tap.x == w.size.x) tap = uint2(0, tap.y + 1);
        find(w);
    }
};

#if B_WINDOWS
#define BRING_B(strip, remaining) y.bring(strip, w, t)
#else
#define BRING_B(strip, remaining) B::bring(strip, y, remaining, t)
#endif

/// C = A B by DOWN x ACROSS SIMD-groups, each of which computes HIGH x WIDE matrices of sums, kept as float.
///
/// Threadgroups: x is the tile, z the part of K and the product of the batch.
template <typename T, typename C, uint DOWN, uint ACROSS, uint HIGH, uint WIDE>
kernel void matrix_pipes(device const ushort* a      [[buffer(0)]],
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
    using B = WindowPipes<COLUMNS, THREADS>;
#else
    using B = Strips<B_WAY, COLUMNS, THREADS, DEPTH>;
#endif
    constexpr uint SIZE = A::SIZE + B::SIZE, FIT = ROOM / 2 / SIZE, STAGES = FIT < MOST ? FIT : MOST;
    constexpr uint STORED = DOWN * ACROSS * 8 * 8 * WIDE * 2;
    static_assert(STAGES > 1, "one strip is multiplied while another comes");
    threadgroup uint4 room[(STAGES * SIZE > STORED ? STAGES * SIZE : STORED) / 8];
    threadgroup ushort* const strips = reinterpret_cast<threadgroup ushort*>(room);
    const Part part = part_of(group.z, p);
    const uint2 first = corner(group.x, p.M, p.N, ROWS, COLUMNS);
    auto x = A::lines(a + starts[2 * part.batch] + first.x * p.a_row + part.first * p.a_k, p.a_row, p.a_k,
                      p.M - first.x, false, t);
#if B_WINDOWS
    B y;
    y.start(b + starts[2 * part.batch + 1], first.y, p.N - first.y, part.first / DEPTH, w, t);
#else
    auto y = B::lines(b + starts[2 * part.batch + 1] + first.y * p.b_panel + part.first * p.b_k, p.b_panel, p.b_k,
                      p.N - first.y, false, t);
#endif
    const uint simd = t / 32, row = simd % DOWN * 8 * HIGH, column = simd / DOWN * 8 * WIDE;

    simdgroup_float8x8 sum[HIGH][WIDE];
    EACH_MATRIX for (uint r = 0; r < HIGH; ++r)
        EACH_MATRIX for (uint s = 0; s < WIDE; ++s) sum[r][s] = make_filled_simdgroup_matrix<float, 8, 8>(0);
    const uint steps = (part.K + DEPTH - 1) / DEPTH;
    for (uint step = 0; step < STAGES - 1; ++step) {
        if (step < steps) {
            A::bring(strips + step * SIZE, x, part.K - step * DEPTH, t);
            BRING_B(strips + step * SIZE + A::SIZE, part.K - step * DEPTH);
        }
        metalnb_close_copies();
    }
    uint now = 0, next = STAGES - 1;  // the strips' offsets
    for (uint step = 0; step < steps; ++step) {
        metalnb_wait_for_copies<STAGES - 2>();
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const uint ahead = step + STAGES - 1;
        if (ahead < steps) {
            A::bring(strips + next * SIZE, x, part.K - ahead * DEPTH, t);
            BRING_B(strips + next * SIZE + A::SIZE, part.K - ahead * DEPTH);
        }
        metalnb_close_copies();
        threadgroup const ushort* strip = strips + now * SIZE;
        multiply_strips<A, B>(sum, reinterpret_cast<threadgroup const T*>(strip + A::place(row, 0)),
                              reinterpret_cast<threadgroup const T*>(strip + A::SIZE + B::place(column, 0)));
        now = now + 1 == STAGES ? 0 : now + 1;
        next = next + 1 == STAGES ? 0 : next + 1;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // the sums reuse the strips' memory

    threadgroup float* const own = reinterpret_cast<threadgroup float*>(room) + simd * 8 * 8 * WIDE;
    c += (long(part.c) * p.M + first.x + row) * p.N + first.y + column;
    store_sums<C>(sum, own, c, p.N, int(p.M) - int(first.x + row), int(p.N) - int(first.y + column), t % 32);
}

#define PIPES(name, suffix, DOWN, ACROSS, HIGH, T, C) \
    template [[host_name(#name "_" #suffix)]] [[kernel]] \
    decltype(matrix_pipes<T, C, DOWN, ACROSS, HIGH, 8>) matrix_pipes<T, C, DOWN, ACROSS, HIGH, 8>;
#define EACH_SIZE(suffix, T, C) \
    PIPES(matrix_pipes, suffix, 2, 2, 8, T, C) PIPES(small_matrix_pipes, suffix, 2, 2, 4, T, C)

EACH_SIZE(half, half, half)
EACH_SIZE(half_parts, half, float)
EACH_SIZE(bfloat16, bfloat, bfloat16)
EACH_SIZE(bfloat16_parts, bfloat, float)
