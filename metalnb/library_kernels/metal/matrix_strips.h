// SIMD-group matrices of half and bfloat in threadgroup memory: loading strips of factors, multiplying them, and
// storing sums. A strip has its factor's layout, so that adjacent lanes read and write adjacent elements.
#pragma once
#include <metalnb/copies.h>
#include <metalnb/matrix_elements.h>
#include <metalnb/tile_loads.h>

/// Copies strips of H lines, DEPTH deep, into threadgroup memory. An element is moved as 16 bits.
template <Way WAY, uint H, uint THREADS, uint DEPTH> struct Strips {
    static constexpr constant bool ACROSS = WAY == WIDE_ACROSS;         // a strip's layout
    static constexpr constant uint PITCH = (ACROSS ? H : DEPTH) + 8;    // a matrix's rows fall into different banks
    static constexpr constant uint SIZE = PITCH * (ACROSS ? DEPTH : H);
    static constexpr constant uint EACH = H * DEPTH / THREADS / 8;      // groups of eight elements per thread

    /// The position of an element in a strip.
    static uint place(uint line, uint k) { return ACROSS ? k * PITCH + line : line * PITCH + k; }

    /// The line and the position along K of a thread's eight elements.
    static uint2 eight(uint i) {
        return ACROSS ? uint2(i % (H / 8) * 8, i / (H / 8)) : uint2(i / (DEPTH / 8), i % (DEPTH / 8) * 8);
    }
    /// The line and the position along K of a single element.
    static uint2 one(uint i, bool along) { return along ? uint2(i / DEPTH, i % DEPTH) : uint2(i % H, i / H); }

    /// Read this thread's part of the next strip, which has `remaining` elements; 0 beyond the ends.
    static void read(thread uint4 (&prefetched)[EACH], thread const Lines<ushort>& x, uint remaining, uint t) {
        UNROLL for (uint f = 0; f < (WAY == ANY ? 0 : EACH); ++f) {
            const uint2 at = eight(t + f * THREADS), start = eight(t);
            device const ushort* from = x.from + (at.x - start.x) * x.line + (at.y - start.y) * x.k;
            prefetched[f] = at.x < x.count && at.y < remaining ? *reinterpret_cast<device const uint4*>(from) : uint4(0);
        }
    }

    /// Write the elements read into the strip, and move on to the next.
    static void write(thread const uint4 (&prefetched)[EACH], threadgroup ushort* strip, thread Lines<ushort>& x, uint remaining,
                      bool along, uint t) {
        if (WAY == ANY) {
            const uint2 at = one(t, along);
            const uint lines = along ? THREADS / DEPTH : 0, ks = along ? 0 : THREADS / H;
            const long step = lines * x.line + ks * x.k;
            device const ushort* from = x.from;
            _Pragma("clang loop unroll(disable)") for (uint e = 0; e < 8 * EACH; ++e, from += step) {
                const uint line = at.x + e * lines, k = at.y + e * ks;
                strip[place(line, k)] = line < x.count && k < remaining ? *from : ushort(0);
            }
        }
        UNROLL for (uint f = 0; f < (WAY == ANY ? 0 : EACH); ++f) {
            const uint2 at = eight(t + f * THREADS);
            *reinterpret_cast<threadgroup uint4*>(strip + place(at.x, at.y)) = prefetched[f];
        }
        x.from += DEPTH * x.k;
    }

    /// Start copying the next strip, which has `remaining` elements, and advance; requires a WAY other than ANY.
    static void bring(threadgroup ushort* strip, thread Lines<ushort>& x, uint remaining, uint t) {
        const uint2 start = eight(t);
        UNROLL for (uint f = 0; f < EACH; ++f) {
            const uint2 at = eight(t + f * THREADS);
            const bool there = at.x < x.count && at.y < remaining;
            device const ushort* from = x.from + (there ? (at.x - start.x) * x.line + (at.y - start.y) * x.k : 0);
            metalnb_copy(reinterpret_cast<threadgroup uint4*>(strip + place(at.x, at.y)),
                         reinterpret_cast<device const uint4*>(from), there);
        }
        x.from += DEPTH * x.k;
    }

    /// Where this thread starts: the `x` of `read`, `write` and `bring`.
    static Lines<ushort> lines(device const ushort* corner, long line, long k, uint count, bool along, uint t) {
        const uint2 at = WAY == ANY ? one(t, along) : eight(t);
        return {corner + at.x * line + at.y * k, line, k, count};
    }
};

/// sum += a·b over 16 steps of K; a and b begin at the first of this SIMD-group's matrices in their strips.
template <typename A, typename B, typename T, uint HIGH, uint WIDE>
METAL_FUNC void multiply_strips(thread simdgroup_float8x8 (&sum)[HIGH][WIDE], threadgroup const T* a, threadgroup const T* b) {
    simdgroup_matrix<T, 8, 8> x[HIGH / 2][2][2];
    EACH_MATRIX for (uint r = 0; r < HIGH / 2; ++r)
        metalnb_load_block<false, A::ACROSS>(x[r], a + A::place(16 * r, 0), A::place(0, 8), A::place(8, 0), A::PITCH);
    EACH_MATRIX for (uint c = 0; c < WIDE; c += 2) {
        simdgroup_matrix<T, 8, 8> y[2][2];
        metalnb_load_block<true, !B::ACROSS>(y, b + B::place(8 * c, 0), B::place(8, 0), B::place(0, 8), B::PITCH);
        EACH_MATRIX for (uint i = 0; i < 2; ++i)
            EACH_MATRIX for (uint r = 0; r < HIGH / 2; ++r)
                metalnb_multiply_block(sum[2 * r][c + i], sum[2 * r + 1][c + i], x[r][0][0], x[r][1][0], x[r][0][1],
                                       x[r][1][1], y[i][0], y[i][1]);
    }
}

/// Write a SIMD-group's `rows` by `columns` sums, starting at c. They go through threadgroup memory, eight rows at
/// a time, since the mapping of elements to threads is not specified.
template <typename C, uint HIGH, uint WIDE>
METAL_FUNC void store_sums(thread simdgroup_float8x8 (&sum)[HIGH][WIDE], threadgroup float* own, device memory_of<C>* c,
                           uint pitch, int rows, int columns, uint lane) {
    EACH_MATRIX for (uint r = 0; r < HIGH; ++r) {
        EACH_MATRIX for (uint s = 0; s < WIDE; ++s) simdgroup_store(sum[r][s], own + 8 * s, 8 * WIDE);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < 8 && int(8 * r + i) < rows; ++i)
            UNROLL for (uint s = lane; s < 8 * WIDE; s += 32)
                if (int(s) < columns) c[(8 * r + i) * long(pitch) + s] = storage<C>::store(own[i * 8 * WIDE + s]);
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
}
