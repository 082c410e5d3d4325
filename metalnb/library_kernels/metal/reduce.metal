// Reductions of many elements to one by any monoid (an identity and an associative operation). Idea: a SIMD-group walks
// one stretch of memory with eight loads in flight and keeps a result for each lane; lanes combine once, at the end.
// The results of several stretches are reduced again. No thread waits for another threadgroup. Source: M. Harris,
// "Optimizing Parallel Reduction in CUDA", 2007; the blocks within blocks that keep a long float sum exact are N.
// Higham's, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14 (1993).
#pragma once
#include <metal_stdlib>
#include <metalnb/storage.h>
using namespace metal;

constant constexpr uint LANES = 32;
constant constexpr uint IN_FLIGHT = 8;      // loads in flight per lane
constant constexpr uint STEP = LANES * IN_FLIGHT;
constant constexpr uint BLOCK = 16;         // steps that are combined before they join the total
constant constexpr uint TILE_BYTES = 8192;  // a tile of columns in threadgroup memory

// The layout of the elements to reduce, and how they are split. In elements; the host writes it.
struct Reduction {
    long offset;       // of the first element
    long outer_pitch;  // from one outer index to the next (each, columns)
    long pitch;        // from one element of a reduction to the next (each, columns); from one row to the next (rows)
    long about_pitch;  // of `about`, from one outer index to the next; 0 when all share one value
    uint count;        // elements of one reduction
    uint stretch;      // … that one SIMD-group takes
    uint rest;         // … that the last one takes
    uint parts;        // SIMD-groups to a reduction
    uint width;        // adjacent reductions: 1 for rows
    uint tail;         // columns of the last row; fewer than `width` where narrow rows were laid end to end
    uint tiles;        // SIMD-groups across `width`
    float scale;       // the divisor of `finish`
};

// ---- Monoids ---------------------------------------------------------------------------------------------------------
//
// element   the type read (a tag of storage.h)      part   a lane's running value within a block
// result    the type written                        acc    the running value of blocks, lanes and stretches
// load      an element as a part; `about` is a value of its reduction, such as its mean: OWN
// combine   associative and commutative             finish the total as a result

// Return whether one of the numbers is NaN. Fast math may assume that none is, so this tests the bits.
template <typename T> inline bool unordered(T, T) { return false; }
#if __FINITE_MATH_ONLY__
inline bool unordered(float a, float b) { return max(as_type<uint>(a) << 1, as_type<uint>(b) << 1) > 0xFF000000u; }
#else
inline bool unordered(float a, float b) { return a != a || b != b; }
#endif

template <typename T, typename R, typename Part, typename Acc> struct Monoid {
    using element = T;
    using result = R;
    using part = Part;
    using acc = Acc;
    enum { OWN = false };
    static Part load(value_of<T> x, float) { return Part(x); }
    static Acc finish(Acc total, float, float) { return total; }
};

template <typename T, typename R, typename Part, typename Acc> struct Sum : Monoid<T, R, Part, Acc> {
    static Acc identity() { return 0; }
    template <typename A> static A combine(A a, A b) { return a + b; }
};

template <typename T, typename R, typename Part, typename Acc> struct Product : Monoid<T, R, Part, Acc> {
    static Acc identity() { return 1; }
    template <typename A> static A combine(A a, A b) { return a * b; }
};

// NaN wins, as in NumPy.
template <typename T, typename R, typename Part, typename Acc> struct Maximum : Monoid<T, R, Part, Acc> {
    static Acc identity() { return is_floating_point_v<Acc> ? -numeric_limits<Acc>::infinity() : numeric_limits<Acc>::lowest(); }
    template <typename A> static A combine(A a, A b) { return unordered(a, b) ? A(NAN) : b > a ? b : a; }
};

template <typename T, typename R, typename Part, typename Acc> struct Minimum : Monoid<T, R, Part, Acc> {
    static Acc identity() { return is_floating_point_v<Acc> ? numeric_limits<Acc>::infinity() : numeric_limits<Acc>::max(); }
    template <typename A> static A combine(A a, A b) { return unordered(a, b) ? A(NAN) : b < a ? b : a; }
};

template <typename T, typename R, typename Part, typename Acc> struct All : Monoid<T, R, Part, Acc> {
    static Acc identity() { return numeric_limits<Acc>::max(); }
    static Part load(value_of<T> x, float) { return x != value_of<T>(0); }
    template <typename A> static A combine(A a, A b) { return min(a, b); }
};

template <typename T, typename R, typename Part, typename Acc> struct Any : Monoid<T, R, Part, Acc> {
    static Acc identity() { return 0; }
    static Part load(value_of<T> x, float) { return x != value_of<T>(0); }
    template <typename A> static A combine(A a, A b) { return a | b; }
};

template <typename T, typename R, typename Part, typename Acc> struct Nonzero : Sum<T, R, Part, Acc> {
    static Part load(value_of<T> x, float) { return x != value_of<T>(0); }
};

template <typename T, typename R, typename Part, typename Acc> struct Mean : Sum<T, R, Part, Acc> {
    static float finish(Acc total, float count, float) { return float(total) / count; }
};

// Squares of the distances from the mean, which an earlier pass has computed. Distances of 64-bit integers are measured
// in units of 2^32, so that the sum does not overflow.
template <typename T, typename R, typename Part, typename Acc> struct Variance : Sum<T, R, Part, Acc> {
    enum { OWN = true };
    static float unit() { return sizeof(value_of<T>) == 8 ? 4294967296.0f : 1.0f; }
    static Part load(value_of<T> x, float mean) { return squared((float(x) - mean) / unit()); }
    static Part squared(float distance) { return distance * distance; }
    static float finish(Acc total, float count, float) { return total / count * (unit() * unit()); }
};

template <typename T, typename R, typename Part, typename Acc> struct Deviation : Variance<T, R, Part, Acc> {
    static float finish(Acc total, float count, float) { return sqrt(total / count) * Variance<T, R, Part, Acc>::unit(); }
};

// Σ exp(x - m): no exp overflows if m is the largest x, which an earlier pass found.
template <typename T, typename R, typename Part, typename Acc> struct SumExp : Sum<T, R, Part, Acc> {
    enum { OWN = true };
    static Part load(value_of<T> x, float largest) { return exp(float(x) - largest); }
};

// log Σ exp x = log Σ exp(x - m) + m. For infinities, where x - m is NaN, the sum itself is right.
template <typename T, typename R, typename Part, typename Acc> struct LogSumExp : Sum<T, R, Part, Acc> {
    enum { OWN = true };
    static float shift(float largest) { return (as_type<uint>(largest) & 0x7F800000u) == 0x7F800000u ? 0.0f : largest; }
    static Part load(value_of<T> x, float largest) { return exp(float(x) - shift(largest)); }
    static float finish(Acc total, float, float largest) { return log(total) + shift(largest); }
};

// (Σ |x|^p)^(1/p), and the values of p with a simpler formula.
template <typename T, typename R, typename Part, typename Acc> struct NormOne : Sum<T, R, Part, Acc> {
    static Part load(value_of<T> x, float) { return abs(float(x)); }
};
template <typename T, typename R, typename Part, typename Acc> struct NormTwo : Sum<T, R, Part, Acc> {
    static Part load(value_of<T> x, float) { return float(x) * float(x); }
    static float finish(Acc total, float, float) { return sqrt(total); }
};
template <typename T, typename R, typename Part, typename Acc> struct NormAny : Sum<T, R, Part, Acc> {
    static Part load(value_of<T> x, float p) { return pow(abs(float(x)), p); }
    static float finish(Acc total, float, float p) { return pow(total, 1.0f / p); }
};
template <typename T, typename R, typename Part, typename Acc> struct NormMost : Maximum<T, R, Part, Acc> {
    static Part load(value_of<T> x, float) { return abs(float(x)); }
};
template <typename T, typename R, typename Part, typename Acc> struct NormLeast : Minimum<T, R, Part, Acc> {
    static Part load(value_of<T> x, float) { return abs(float(x)); }
};

// A long reduction takes several dispatches: the first stores its totals unchanged, and later ones load them unchanged.
template <typename M> struct First : M {
    using result = typename M::acc;
    static result finish(result total, float, float) { return total; }
};
template <typename M> struct Later : M {
    using element = typename M::acc;
    using part = typename M::acc;
    static part load(part x, float) { return x; }
};
template <typename M> struct Between : Later<M> {
    using result = typename M::acc;
    static result finish(result total, float, float) { return total; }
};

// ---- Walks -----------------------------------------------------------------------------------------------------------

template <typename M> using memory_in = device const memory_of<typename M::element>*;
template <typename M> using memory_out = device memory_of<typename M::result>*;

template <typename M> inline typename M::part fetch(memory_in<M> x, long at, float about) {
    return M::load(storage<typename M::element>::load(x[at]), about);
}

// Combine eight elements: two that lie `near` each other at each of four places, `far` apart. They form a tree, so that
// no sum waits for the previous one.
template <typename M, typename I>
inline typename M::part eight(memory_in<M> x, I at, I near, I far, float about) {
    auto a = M::combine(fetch<M>(x, at, about), fetch<M>(x, at + near, about));
    auto b = M::combine(fetch<M>(x, at + far, about), fetch<M>(x, at + far + near, about));
    auto c = M::combine(fetch<M>(x, at + 2 * far, about), fetch<M>(x, at + 2 * far + near, about));
    auto d = M::combine(fetch<M>(x, at + 3 * far, about), fetch<M>(x, at + 3 * far + near, about));
    return M::combine(M::combine(a, b), M::combine(c, d));
}

// Return another lane's value. SIMD-groups exchange at most 32 bits at a time (MSL 6.9.2).
template <typename A> inline A from_lane(A value, ushort mask) {
    if constexpr (sizeof(A) == 8) {
        const uint2 halves = as_type<uint2>(value);
        return as_type<A>(uint2(simd_shuffle_xor(halves.x, mask), simd_shuffle_xor(halves.y, mask)));
    } else {
        return simd_shuffle_xor(value, mask);
    }
}

// Combine the lanes' values; every lane has the result.
template <typename M, typename A = typename M::acc> inline A across_lanes(A value) {
    for (ushort mask = LANES / 2; mask > 0; mask /= 2) value = M::combine(value, from_lane(value, mask));
    return value;
}

// Combine one lane's share of `count` elements in a row: lane, lane + 32, … Counters and loop bounds are uniform, so
// that no lane leaves the loop early and the compiler sees that a SIMD-group reads adjacent elements.
template <typename M>
inline typename M::acc along_row(memory_in<M> x, uint count, uint lane, float about) {
    typename M::acc total = M::identity();
    typename M::part sum = typename M::part(M::identity());
    const uint steps = count / STEP;
    x += lane;
    uint step = 0;
    for (; step + BLOCK <= steps; step += BLOCK) {
        for (uint k = 0; k < BLOCK; ++k)
            sum = M::combine(sum, eight<M>(x, (step + k) * STEP, LANES, 2 * LANES, about));
        total = M::combine(total, typename M::acc(sum));
        sum = typename M::part(M::identity());
    }
    for (; step < steps; ++step) sum = M::combine(sum, eight<M>(x, step * STEP, LANES, 2 * LANES, about));
    const uint runs = count / LANES;
    for (uint run = steps * IN_FLIGHT; run < runs; ++run) sum = M::combine(sum, fetch<M>(x, run * LANES, about));
    if (lane < count - runs * LANES) sum = M::combine(sum, fetch<M>(x, runs * LANES, about));
    return M::combine(total, typename M::acc(sum));
}

// Combine the SIMD-groups' values through threadgroup memory; every thread has the result. It serves kernels in which
// each threadgroup takes a row: loads are slow on a GPU, and more threads read a row in fewer iterations.
template <typename M, typename A = typename M::acc>
inline A across_group(A value, threadgroup A* shared, uint lane, uint simd, uint simds) {
    if (lane == 0) shared[simd] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const A total = across_lanes<M>(lane < simds ? shared[lane] : M::identity());
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return total;
}

// Combine a SIMD-group's part of a row that a threadgroup's SIMD-groups share: full runs of 32, except for the last.
struct Part {
    uint first, count;
    Part(uint all, uint simd, uint simds) {
        const uint share = (all + simds * LANES - 1) / (simds * LANES) * LANES;
        first = min(simd * share, all);
        count = min(share, all - first);
    }
};

// The elements of a reduction are adjacent: a SIMD-group takes a stretch of one row.
template <typename M>
kernel void reduce_rows(device const memory_of<typename M::element>* x, device const float* about,
                        device memory_of<typename M::result>* out, constant Reduction& r,
                        uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                        uint simd [[simdgroup_index_in_threadgroup]], uint simds [[dispatch_simdgroups_per_threadgroup]]) {
    const uint index = group * simds + simd;
    const uint row = index / r.parts, part = index % r.parts;
    const float center = about[row * r.about_pitch];
    const uint count = part + 1 == r.parts ? r.rest : r.stretch;
    x += r.offset + row * r.pitch + part * ulong(r.stretch);
    const auto total = across_lanes<M>(along_row<M>(x, count, lane, center));
    if (lane == 0) out[index] = storage<typename M::result>::store(M::finish(total, r.scale, center));
}

// The same for devices with slow loads, if there are many rows or the rows are short: a threadgroup takes a row.
template <typename M>
kernel void reduce_rows_shared(device const memory_of<typename M::element>* x, device const float* about,
                               device memory_of<typename M::result>* out, constant Reduction& r,
                               uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                               uint simd [[simdgroup_index_in_threadgroup]],
                               uint simds [[simdgroups_per_threadgroup]]) {
    threadgroup typename M::acc totals[LANES];
    const Part part(r.count, simd, simds);
    const float center = about[row * r.about_pitch];
    const auto partial = across_lanes<M>(along_row<M>(x + r.offset + row * r.pitch + part.first, part.count, lane, center));
    const auto total = across_group<M>(partial, totals, lane, simd, simds);
    if (lane == 0 && simd == 0) out[row] = storage<typename M::result>::store(M::finish(total, r.scale, center));
}

// Reductions are adjacent: a SIMD-group takes a tile of columns and goes down some rows, eight at a time. The
// tile's totals wait in threadgroup memory, where each thread accesses only its own.
template <typename M>
kernel void reduce_columns(device const memory_of<typename M::element>* x, device const float* about,
                           device memory_of<typename M::result>* out, constant Reduction& r,
                           uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    constexpr uint TILE = TILE_BYTES / sizeof(typename M::acc);
    threadgroup typename M::acc totals[TILE];
    const uint first = group % r.tiles * TILE, part = group / r.tiles % r.parts, outer = group / r.tiles / r.parts;
    const bool last = part + 1 == r.parts;
    const uint count = last ? r.rest : r.stretch;
    const uint full = last && r.tail < r.width ? count - 1 : count;  // rows of full length
    const uint width = first + TILE > r.width ? r.width - first : TILE, whole = width / LANES * LANES;
    x += r.offset + outer * r.outer_pitch + part * long(r.stretch) * r.pitch + first;
    if (M::OWN) about += outer * r.about_pitch + first;
    for (uint at = 0; at < width; at += LANES) totals[at + lane] = M::identity();  // TILE is a multiple of 32

    const uint eights = full / IN_FLIGHT;
    x += lane;  // the lane is added last, so that the compiler sees that a SIMD-group reads adjacent elements
    about += M::OWN ? lane : 0;
    for (uint step = 0; step < eights; ++step, x += IN_FLIGHT * r.pitch) {
        for (uint at = 0; at < whole; at += LANES) {
            const auto sum = eight<M>(x, long(at), r.pitch, 2 * r.pitch, about[M::OWN ? at : 0]);
            totals[at + lane] = M::combine(totals[at + lane], typename M::acc(sum));
        }
        if (lane < width - whole) {
            const auto sum = eight<M>(x, long(whole), r.pitch, 2 * r.pitch, about[M::OWN ? whole : 0]);
            totals[whole + lane] = M::combine(totals[whole + lane], typename M::acc(sum));
        }
    }
    for (uint row = eights * IN_FLIGHT; row < count; ++row, x += r.pitch) {
        const uint there = row < full || r.tail >= first + width ? width : r.tail > first ? r.tail - first : 0;
        for (uint at = 0; at < there; at += LANES) {
            if (lane < there - at) {
                const auto element_value = fetch<M>(x, at, about[M::OWN ? at : 0]);
                totals[at + lane] = M::combine(totals[at + lane], typename M::acc(element_value));
            }
        }
    }
    out += (outer * r.parts + part) * ulong(r.width) + first + lane;
    for (uint at = 0; at < width; at += LANES) {
        if (lane < width - at)
            out[at] = storage<typename M::result>::store(
                M::finish(totals[at + lane], r.scale, about[M::OWN ? at : 0]));
    }
}

// The same for devices with slow loads: each thread goes down a stretch of one column. Adjacent threads read adjacent
// elements, and there are enough threads to need no threadgroup memory.
template <typename M>
kernel void reduce_down(device const memory_of<typename M::element>* x, device const float* about,
                        device memory_of<typename M::result>* out, constant Reduction& r,
                        uint index [[thread_position_in_grid]]) {
    const uint column = index % r.width, part = index / r.width % r.parts, outer = index / r.width / r.parts;
    const bool last = part + 1 == r.parts;
    const uint count = (last ? r.rest : r.stretch) - (last && column >= r.tail);  // the last row may be shorter
    x += r.offset + outer * r.outer_pitch + part * long(r.stretch) * r.pitch + column;
    const float center = about[M::OWN ? outer * r.about_pitch + column : 0];
    typename M::acc total = M::identity();
    typename M::part sum = typename M::part(M::identity());
    uint i = 0;
    for (; i + IN_FLIGHT <= count; i += IN_FLIGHT, x += IN_FLIGHT * r.pitch) {
        sum = M::combine(sum, eight<M>(x, 0l, r.pitch, 2 * r.pitch, center));
        if ((i / IN_FLIGHT + 1) % BLOCK == 0) {
            total = M::combine(total, typename M::acc(sum));
            sum = typename M::part(M::identity());
        }
    }
    for (; i < count; ++i, x += r.pitch) sum = M::combine(sum, fetch<M>(x, 0, center));
    out[index] = storage<typename M::result>::store(M::finish(M::combine(total, typename M::acc(sum)), r.scale, center));
}

// Short reductions, of elements with any strides: each is done by one thread.
template <typename M>
kernel void reduce_each(device const memory_of<typename M::element>* x, device const float* about,
                        device memory_of<typename M::result>* out, constant Reduction& r,
                        uint index [[thread_position_in_grid]]) {
    const uint outer = index / r.width, column = index % r.width;
    x += r.offset + outer * r.outer_pitch + column;
    const float center = about[M::OWN ? index : 0];
    typename M::acc total = M::identity();
    uint i = 0;
    for (; i + IN_FLIGHT <= r.count; i += IN_FLIGHT)
        total = M::combine(total, typename M::acc(eight<M>(x, i * r.pitch, r.pitch, 2 * r.pitch, center)));
    for (; i < r.count; ++i) total = M::combine(total, typename M::acc(fetch<M>(x, i * r.pitch, center)));
    out[index] = storage<typename M::result>::store(M::finish(total, r.scale, center));
}
