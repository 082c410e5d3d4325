// Products of rows of A and columns of B that are both contiguous along K, as in matrix times vector, or A B^T. The
// lanes of a SIMD-group read 32 adjacent elements of each, keep 32 sums, and add these up once, at the end. Four rows
// by two columns are computed at a time, so that every element that is read is used more than once.
//
// Source: a SIMD-group for each row is the "vector kernel" of N. Bell, M. Garland, "Implementing Sparse Matrix-Vector
// Multiplication on Throughput-Oriented Processors", SC 2009.
#include <metalnb/product.h>

// Return the sum over a SIMD-group. Metal has no 64-bit simd_sum, so the two halves are shuffled separately.
inline float simd_total(float x) { return simd_sum(x); }
inline uint  simd_total(uint x) { return simd_sum(x); }
inline ulong simd_total(ulong x) {
    for (ushort apart = 16; apart > 0; apart /= 2) {
        const ulong high = simd_shuffle_xor(uint(x >> 32), apart);
        x += high << 32 | simd_shuffle_xor(uint(x), apart);
    }
    return x;
}

/// V terms of R x W dot products for each lane that is `inside`.
template <typename T, typename Acc, ushort R, ushort W, ushort V>
inline void add_terms(thread Acc (&sum)[R][W], device const memory_of<T>* a, device const memory_of<T>* b, long a_row,
                      long b_column, bool inside, uint lane) {
    using Read = Neighbors<memory_of<T>, V>;
    typename Read::type y[W];
    UNROLL for (ushort w = 0; w < W; ++w) y[w] = inside ? Read::read(b + w * b_column, lane) : typename Read::type(0);
    UNROLL for (ushort r = 0; r < R; ++r) {
        const typename Read::type x = inside ? Read::read(a + r * a_row, lane) : typename Read::type(0);
        UNROLL for (ushort v = 0; v < V; ++v)
            UNROLL for (ushort w = 0; w < W; ++w)
                sum[r][w] = multiply_add(Acc(storage<T>::load(Read::at(x, v))), Acc(storage<T>::load(Read::at(y[w], v))),
                                         sum[r][w]);
    }
}

/// R x W dot products of rows of A with columns of B: the lanes read consecutive elements along K, and combine their
/// sums at the end. Vectors of four are loaded some steps ahead.
template <typename T, typename Acc, typename C, ushort R, ushort W, ushort V>
inline void dot_tile(device const memory_of<T>* a, device const memory_of<T>* b, device memory_of<C>* c,
                     constant Product& p, uint K, uint lane) {
    constexpr uint run = panel * V, step = V == 1 ? run : run * (8 / sizeof(memory_of<T>));
    const long a_row = p.a_row, b_column = p.b_panel;
    Acc sum[R][W];
    UNROLL for (ushort r = 0; r < R; ++r)
        UNROLL for (ushort w = 0; w < W; ++w) sum[r][w] = 0;
    const uint steps = K / step;
    for (uint i = 0; i < steps; ++i, a += step, b += step)
        UNROLL for (uint k = 0; k < step; k += run)
            add_terms<T, Acc, R, W, V>(sum, a + k, b + k, a_row, b_column, true, lane);
    for (uint k = steps * step; k < K; k += run, a += run, b += run)
        add_terms<T, Acc, R, W, V>(sum, a, b, a_row, b_column, k + lane * V < K, lane);
    UNROLL for (ushort r = 0; r < R; ++r, c += p.N)
        UNROLL for (ushort w = 0; w < W; ++w) {
            const Acc total = simd_total(sum[r][w]);
            if (lane == 0) c[w] = storage<C>::store(total);
        }
}

/// C = A B where A's rows and B's columns are contiguous along K: matrix times vector, and A B^T with few rows or
/// columns. `p.b_panel` leads from one column of B to the next.
///
/// Threadgroups: x is 4 rows, y 2 columns, z the part of K and the product of the batch.
template <typename T, typename Acc, typename C, ushort V>
kernel void dots(device const memory_of<T>* a      [[buffer(0)]],
                 device const memory_of<T>* b      [[buffer(1)]],
                 device memory_of<C>*       c      [[buffer(2)]],
                 device const long*         starts [[buffer(3)]],
                 constant Product&          p      [[buffer(4)]],
                 uint3 group [[threadgroup_position_in_grid]],
                 uint  lane  [[thread_index_in_simdgroup]]) {
    const Part part = part_of(group.z, p);
    const uint row = group.x * 4, column = group.y * 2;
    const long a_row = p.a_row, c_row = p.N;
    a += starts[2 * part.batch] + row * a_row + part.first;
    b += starts[2 * part.batch + 1] + column * p.b_panel + part.first;
    c += (long(part.c) * p.M + row) * c_row + column;

    const uint rows = p.M - row;
    if (p.N - column >= 2) {
        if (rows >= 4) {
            dot_tile<T, Acc, C, 4, 2, V>(a, b, c, p, part.K, lane);
            return;
        }
        if (rows & 2) dot_tile<T, Acc, C, 2, 2, V>(a, b, c, p, part.K, lane);
        if (rows & 1) dot_tile<T, Acc, C, 1, 2, V>(a + (rows & 2) * a_row, b, c + (rows & 2) * c_row, p, part.K, lane);
        return;
    }
    if (rows >= 4) {
        dot_tile<T, Acc, C, 4, 1, V>(a, b, c, p, part.K, lane);
        return;
    }
    if (rows & 2) dot_tile<T, Acc, C, 2, 1, V>(a, b, c, p, part.K, lane);
    if (rows & 1) dot_tile<T, Acc, C, 1, 1, V>(a + (rows & 2) * a_row, b, c + (rows & 2) * c_row, p, part.K, lane);
}

/// Many dot products, each of a row of A with a row of B. Each SIMD-group computes 8 of the `p.M` products, one after
/// another, since a single product takes hardly longer than starting a SIMD-group.
template <typename T, typename Acc, typename C>
kernel void pair_dots(device const memory_of<T>* a      [[buffer(0)]],
                      device const memory_of<T>* b      [[buffer(1)]],
                      device memory_of<C>*       c      [[buffer(2)]],
                      device const long*         starts [[buffer(3)]],
                      constant Product&          p      [[buffer(4)]],
                      uint group [[threadgroup_position_in_grid]],
                      uint lane  [[thread_index_in_simdgroup]]) {
    const uint first = group * 8;
    uint count = 8;
    if (first + count > p.M) count = p.M - first;  // not min(), as in part_of
    for (uint i = first; i < first + count; ++i)
        dot_tile<T, Acc, C, 1, 1, 1>(a + starts[2 * i], b + starts[2 * i + 1], c + i, p, p.K, lane);
}

/// Dot products whose elements are not contiguous along K, or that are short: one per thread.
struct Dots {
    uint K;
    long a_k, b_k;
};

template <typename T, typename Acc, typename C>
kernel void each_dot(device const memory_of<T>* a      [[buffer(0)]],
                     device const memory_of<T>* b      [[buffer(1)]],
                     device memory_of<C>*       c      [[buffer(2)]],
                     device const long*         starts [[buffer(3)]],  // of a, b and c for each row of the grid
                     device const long*         steps  [[buffer(4)]],  // of a, b and c from one thread to the next
                     constant Dots&             p      [[buffer(5)]],
                     uint2 at [[thread_position_in_grid]]) {
    a += starts[3 * at.y] + at.x * steps[0];
    b += starts[3 * at.y + 1] + at.x * steps[1];
    c += starts[3 * at.y + 2] + at.x * steps[2];
    Acc sum = 0;
    for (uint k = 0; k < p.K; ++k, a += p.a_k, b += p.b_k)
        sum = multiply_add(Acc(storage<T>::load(*a)), Acc(storage<T>::load(*b)), sum);
    *c = storage<C>::store(sum);
}

#define MAKE(name, suffix, ...) \
    template [[host_name(#name "_" #suffix)]] [[kernel]] decltype(name<__VA_ARGS__>) name<__VA_ARGS__>;
#define DOTS(suffix, T, Acc, C) \
    MAKE(dots, suffix, T, Acc, C, 1) MAKE(pair_dots, suffix, T, Acc, C) MAKE(each_dot, suffix, T, Acc, C)
#define WIDE(suffix, T, C) \
    template [[host_name("wide_dots_" #suffix)]] [[kernel]] decltype(dots<T, float, C, 4>) dots<T, float, C, 4>;

DOTS(float, float, float, float)
DOTS(half, half, float, half)
DOTS(half_parts, half, float, float)
DOTS(bfloat16, bfloat16, float, bfloat16)
DOTS(bfloat16_parts, bfloat16, float, float)
DOTS(bool, bool, uint, bool)
DOTS(uchar, uchar, uint, uchar)
DOTS(ushort, ushort, uint, ushort)
DOTS(uint, uint, uint, uint)
DOTS(ulong, ulong, ulong, ulong)

WIDE(float, float, float)
WIDE(half, half, half)
WIDE(half_parts, half, float)
WIDE(bfloat16, bfloat16, bfloat16)
WIDE(bfloat16_parts, bfloat16, float)
