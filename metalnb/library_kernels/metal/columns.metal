// C = A B for few rows of A on a GPU, as in vector times matrix. Nearly all the time goes into reading B, which needs
// many loads in flight. So B is split in both directions. A threadgroup takes a strip of columns and a part of K;
// its SIMD-groups interleave along K, and each lane sums a few columns. The SIMD-groups' sums are added in threadgroup
// memory, the parts of K in add_parts.
//
// Source: R. Nath, S. Tomov, T. Dong, J. Dongarra, "Optimizing Symmetric Dense Matrix-Vector Multiplication on GPUs",
// SC 2011, on splitting columns; V. Volkov, "Better Performance at Lower Occupancy", GTC 2010, on loads of four
// elements.
#include <metalnb/product.h>

constant constexpr ushort SIMDS = 8;  // SIMD-groups per threadgroup

/// Compute a lane's sums for R rows of A and W times V columns, over its SIMD-group's rows of B, beginning at `first`.
/// `ahead` rows of B are loaded before the first of them is used.
template <typename T, typename Acc, ushort R, ushort V, ushort W, ushort ahead>
inline void add_rows(thread Acc (&sum)[R][W][V], device const memory_of<T>* a, device const memory_of<T>* b,
                     constant Product& p, uint first, const thread bool (&inside)[W], uint lane) {
    using Read = Neighbors<memory_of<T>, V>;
    typename Read::type held[ahead][W];
    Acc x[ahead][R];
    UNROLL for (ushort i = 0; i < ahead; ++i) {
        const long k = first + i;
        UNROLL for (ushort w = 0; w < W; ++w)
            held[i][w] = inside[w] ? Read::read(b + k * p.b_k + w * (panel * V), lane) : typename Read::type(0);
        UNROLL for (ushort r = 0; r < R; ++r) x[i][r] = Acc(storage<T>::load(a[k * p.a_k + r * p.a_row]));
    }
    UNROLL for (ushort i = 0; i < ahead; ++i)
        UNROLL for (ushort w = 0; w < W; ++w)
            UNROLL for (ushort v = 0; v < V; ++v) {
                const Acc y = Acc(storage<T>::load(Read::at(held[i][w], v)));
                UNROLL for (ushort r = 0; r < R; ++r) sum[r][w][v] = multiply_add(x[i][r], y, sum[r][w][v]);
            }
}

template <typename T, typename Acc, typename C, ushort R, ushort V, ushort W>
inline void strip_of_rows(device const memory_of<T>* a, device const memory_of<T>* b, device memory_of<C>* c,
                          constant Product& p, threadgroup Acc* shared, uint K, uint columns, uint simd, uint lane) {
    Acc sum[R][W][V];
    bool inside[W];
    UNROLL for (ushort w = 0; w < W; ++w) {
        inside[w] = w * (panel * V) + lane * V < columns;
        UNROLL for (ushort r = 0; r < R; ++r)
            UNROLL for (ushort v = 0; v < V; ++v) sum[r][w][v] = 0;
    }
    constexpr uint ahead = 4;
    uint k = simd * ahead;
    for (; k + ahead <= K; k += SIMDS * ahead) add_rows<T, Acc, R, V, W, ahead>(sum, a, b, p, k, inside, lane);
    for (; k < K; ++k) add_rows<T, Acc, R, V, W, 1>(sum, a, b, p, k, inside, lane);  // the remaining rows
    UNROLL for (ushort r = 0; r < R; ++r)
        UNROLL for (ushort w = 0; w < W; ++w)
            UNROLL for (ushort v = 0; v < V; ++v)
                shared[((simd * R + r) * W + w) * (panel * V) + lane * V + v] = sum[r][w][v];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    constexpr uint width = W * panel * V;
    for (uint i = simd * panel + lane; i < R * width; i += SIMDS * panel) {
        Acc total = shared[i];
        UNROLL for (ushort s = 1; s < SIMDS; ++s) total += shared[s * (R * width) + i];
        const uint r = i / width, column = i % width;
        if (column < columns) c[r * long(p.N) + column] = storage<C>::store(total);
    }
}

/// Threadgroups of SIMDS SIMD-groups: x is the strip of columns, y the R rows of A, z the part of K and the product of
/// the batch. B's rows are contiguous; V columns are read in one load.
template <typename T, typename Acc, typename C, ushort R, ushort V, ushort W>
kernel void columns(device const memory_of<T>* a      [[buffer(0)]],
                    device const memory_of<T>* b      [[buffer(1)]],
                    device memory_of<C>*       c      [[buffer(2)]],
                    device const long*         starts [[buffer(3)]],
                    constant Product&          p      [[buffer(4)]],
                    uint3 group [[threadgroup_position_in_grid]],
                    uint  simd  [[simdgroup_index_in_threadgroup]],
                    uint  lane  [[thread_index_in_simdgroup]]) {
    constexpr uint width = W * panel * V;
    threadgroup Acc shared[SIMDS * R * width];
    const Part part = part_of(group.z, p);
    const uint column = group.x * width, row = group.y * R, rows = p.M - row;
    a += starts[2 * part.batch] + row * p.a_row + part.first * p.a_k;
    b += starts[2 * part.batch + 1] + column + part.first * p.b_k;
    c += (long(part.c) * p.M + row) * p.N + column;
    if (rows >= R) {
        strip_of_rows<T, Acc, C, R, V, W>(a, b, c, p, shared, part.K, p.N - column, simd, lane);
        return;
    }
    for (uint r = 0; r < rows; ++r, a += p.a_row, c += p.N) {
        strip_of_rows<T, Acc, C, 1, V, W>(a, b, c, p, shared, part.K, p.N - column, simd, lane);
        threadgroup_barrier(mem_flags::mem_threadgroup);  // the next row overwrites `shared`
    }
}

#define MAKE(name, suffix, ...) \
    template [[host_name(name "_" #suffix)]] [[kernel]] decltype(columns<__VA_ARGS__>) columns<__VA_ARGS__>;
#define EACH(suffix, T, Acc, C) \
    MAKE("columns_1", suffix, T, Acc, C, 1, 1, 4) MAKE("columns_4", suffix, T, Acc, C, 4, 1, 4)
#define WIDE(suffix, W, T, Acc, C) EACH(suffix, T, Acc, C) \
    MAKE("columns_wide_1", suffix, T, Acc, C, 1, 4, W) MAKE("columns_wide_4", suffix, T, Acc, C, 4, 4, 1)

WIDE(float, 1, float, float, float)
WIDE(half, 2, half, float, half)
WIDE(half_parts, 2, half, float, float)
WIDE(bfloat16, 2, bfloat16, float, bfloat16)
WIDE(bfloat16_parts, 2, bfloat16, float, float)
EACH(bool, bool, uint, bool)
EACH(uchar, uchar, ushort, uchar)
EACH(ushort, ushort, ushort, ushort)
EACH(uint, uint, uint, uint)
MAKE("columns_1", ulong, ulong, ulong, ulong, 1, 1, 2)
