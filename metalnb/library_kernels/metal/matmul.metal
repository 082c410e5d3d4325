// C = A B. A SIMD-group owns a block of C and keeps it in registers: its lanes are columns, and each element of A that
// it reads, the same for all lanes, multiplies 32 adjacent elements of B. When B is large, or its columns are not
// adjacent, it is first packed into panels of 32 columns, so that the inner loop (BLIS calls it a micro-kernel) reads
// contiguous memory.
//
// Source: K. Goto, R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34 (2008);
// F. Van Zee, R. van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS Functionality", ACM TOMS 41 (2015).
#include <metalnb/product.h>

/// Compute R rows and W panels of C, `deep` elements of K at a time; K is a multiple of `deep`. With `edge`, only
/// `columns` columns exist, and the lanes beyond them stay idle.
template <typename T, typename Acc, typename C, ushort R, ushort W, bool edge, ushort deep = 1>
inline void tile(device const memory_of<T>* a, device const memory_of<T>* b, device memory_of<C>* c, constant Product& p,
                 uint K, uint columns, uint lane) {
    const long a_row = p.a_row, a_k = p.a_k, b_k = p.b_k;
    Acc sum[R][W];
    UNROLL for (ushort r = 0; r < R; ++r)
        UNROLL for (ushort w = 0; w < W; ++w) sum[r][w] = 0;
    for (uint k = 0; k < K; k += deep, a += deep * a_k, b += deep * b_k)
        UNROLL for (ushort i = 0; i < deep; ++i)
            UNROLL for (ushort w = 0; w < W; ++w) {
                if (W > 1 && edge && w * panel >= columns) continue;
                const bool inside = !edge || w * panel + lane < columns;
                const Acc y = inside ? Acc(storage<T>::load((b + i * b_k + w * panel)[lane])) : Acc(0);
                UNROLL for (ushort r = 0; r < R; ++r)
                    sum[r][w] = multiply_add(Acc(storage<T>::load(a[i * a_k + r * a_row])), y, sum[r][w]);
            }
    UNROLL for (ushort r = 0; r < R; ++r, c += p.N)
        UNROLL for (ushort w = 0; w < W; ++w)
            if (!edge || w * panel + lane < columns) (c + w * panel)[lane] = storage<C>::store(sum[r][w]);
}

/// C = A B. Each SIMD-group, a threadgroup by itself, computes R rows of one panel: as many as fit into the registers.
///
/// Threadgroups: x is the R rows within a block, y the panel, z the block, the part of K and the product of the batch.
template <typename T, typename Acc, typename C, ushort R>
kernel void matmul(device const memory_of<T>* a      [[buffer(0)]],
                   device const memory_of<T>* b      [[buffer(1)]],  // rows with adjacent columns, or panels
                   device memory_of<C>*       c      [[buffer(2)]],
                   device const long*         starts [[buffer(3)]],  // the start of each product's A and B
                   constant Product&          p      [[buffer(4)]],
                   uint3 group  [[threadgroup_position_in_grid]],
                   uint3 groups [[threadgroups_per_grid]],
                   uint  lane   [[thread_index_in_simdgroup]]) {
    const Part part = part_of(group.z, p);
    const uint row = (part.block * groups.x + group.x) * R, column = group.y * panel;
    if (row >= p.M) return;
    const long a_row = p.a_row, c_row = p.N;
    a += starts[2 * part.batch] + row * a_row + part.first * p.a_k;
    b += starts[2 * part.batch + 1] + group.y * p.b_panel + part.first * p.b_k;
    c += (long(part.c) * p.M + row) * c_row + column;

    const uint rows = p.M - row, columns = p.N - column;
    if (rows >= R) {
        // Four elements of K at a time hide the loop's overhead, a tenth of the time; under a mask they would cost
        // more.
        if (part.K % 4 == 0 && columns >= panel) tile<T, Acc, C, R, 1, false, 4>(a, b, c, p, part.K, columns, lane);
        else tile<T, Acc, C, R, 1, true>(a, b, c, p, part.K, columns, lane);
        return;
    }
    // The last rows, fewer than R, are computed in eights, fours, twos and ones.
    if (rows & 8) tile<T, Acc, C, 8, 1, true>(a, b, c, p, part.K, columns, lane);
    if (rows & 4) tile<T, Acc, C, 4, 1, true>(a + (rows & 8) * a_row, b, c + (rows & 8) * c_row, p, part.K, columns, lane);
    if (rows & 2) tile<T, Acc, C, 2, 1, true>(a + (rows & 12) * a_row, b, c + (rows & 12) * c_row, p, part.K, columns, lane);
    if (rows & 1) tile<T, Acc, C, 1, 1, true>(a + (rows & 14) * a_row, b, c + (rows & 14) * c_row, p, part.K, columns, lane);
}

/// Compute R rows of W panels. A's rows are contiguous along K, and B is packed. With `some`, only the rows from
/// `first` on are stored.
template <typename T, typename Acc, typename C, ushort R, ushort W, bool some>
inline void tile_along(device const memory_of<T>* a, device const memory_of<T>* b, device memory_of<C>* c,
                       constant Product& p, long b_panel, uint K, uint first, uint columns, uint lane) {
    const long a_row = p.a_row;
    Acc sum[R][W];
    UNROLL for (ushort r = 0; r < R; ++r)
        UNROLL for (ushort w = 0; w < W; ++w) sum[r][w] = 0;
    uint k = 0;
    for (; k + 4 <= K; k += 4, a += 4, b += 4 * panel)
        UNROLL for (ushort i = 0; i < 4; ++i) {
            Acc y[W];
            UNROLL for (ushort w = 0; w < W; ++w) y[w] = Acc(storage<T>::load((b + w * b_panel + i * panel)[lane]));
            UNROLL for (ushort r = 0; r < R; ++r) {
                const Acc element = Acc(storage<T>::load(a[i + r * a_row]));
                UNROLL for (ushort w = 0; w < W; ++w) sum[r][w] = multiply_add(element, y[w], sum[r][w]);
            }
        }
    for (; k < K; ++k, ++a, b += panel)
        UNROLL for (ushort w = 0; w < W; ++w) {
            const Acc y = Acc(storage<T>::load((b + w * b_panel)[lane]));
            UNROLL for (ushort r = 0; r < R; ++r) {
                const Acc element = Acc(storage<T>::load(a[r * a_row]));
                sum[r][w] = multiply_add(element, y, sum[r][w]);
            }
        }
    UNROLL for (ushort w = 0; w < W; ++w) {
        const bool inside = w * panel + lane < columns;
        UNROLL for (ushort r = 0; r < R; ++r)
            if ((!some || r >= first) && inside) (c + r * long(p.N) + w * panel)[lane] = storage<C>::store(sum[r][w]);
    }
}

/// C = A B for a packed B and at least R rows of A that are contiguous along K. Each SIMD-group, a threadgroup by
/// itself, computes a block of rows of W panels, R at a time; if fewer than R rows are left, the last R overlap the
/// rows before. Products of 500² to 1,024² take 1.5 to 1.75 times as long with `matmul`, whose twelve rows of one panel
/// need more loads for the same number of sums.
///
/// Threadgroups: x is the W panels, z the block, the part of K and the product of the batch.
template <typename T, typename Acc, typename C, ushort R, ushort W>
kernel void matmul_panels(device const memory_of<T>* a      [[buffer(0)]],
                          device const memory_of<T>* b      [[buffer(1)]],  // panels
                          device memory_of<C>*       c      [[buffer(2)]],
                          device const long*         starts [[buffer(3)]],
                          constant Product&          p      [[buffer(4)]],
                          uint3 group [[threadgroup_position_in_grid]],
                          uint  lane  [[thread_index_in_simdgroup]]) {
    const Part part = part_of(group.z, p);
    const uint tiles = (p.M + R - 1) / R, tall = (tiles + p.blocks - 1) / p.blocks * R, column = group.x * (W * panel);
    const uint columns = p.N - column;
    // If the last panel does not exist, the previous one is read again and not stored.
    const long a_row = p.a_row, c_row = p.N, b_panel = columns > (W - 1) * panel ? p.b_panel : 0;
    a += starts[2 * part.batch] + part.first;
    b += starts[2 * part.batch + 1] + group.x * W * p.b_panel + part.first * panel;
    c += long(part.c) * p.M * c_row + column;
    uint row = part.block * tall, end = row + tall;
    if (end > p.M) end = p.M;
    for (; row + R <= end; row += R)
        tile_along<T, Acc, C, R, W, false>(a + row * a_row, b, c + row * c_row, p, b_panel, part.K, 0, columns, lane);
    if (row >= end) return;
    const uint first = end - R;
    tile_along<T, Acc, C, R, W, true>(a + first * a_row, b, c + first * c_row, p, b_panel, part.K, row - first, columns,
                                      lane);
}

/// R rows of up to W panels.
template <typename T, typename Acc, typename C, ushort R, ushort W>
inline void strip(device const memory_of<T>* a, device const memory_of<T>* b, device memory_of<C>* c, constant Product& p,
                  uint K, uint columns, uint lane) {
    if (columns >= W * panel) tile<T, Acc, C, R, W, false>(a, b, c, p, K, columns, lane);
    else tile<T, Acc, C, R, W, true>(a, b, c, p, K, columns, lane);
}

/// C = A B for few rows, where reading B takes all the time: each SIMD-group computes 4 rows of S panels, and so reads
/// long stretches of B's rows in place.
///
/// Threadgroups: x is the 4 rows, so that SIMD-groups that run together read the same part of B; y the S panels; z the
/// part of K and the product of the batch.
template <typename T, typename Acc, typename C, ushort S>
kernel void matmul_few(device const memory_of<T>* a      [[buffer(0)]],
                       device const memory_of<T>* b      [[buffer(1)]],  // rows with adjacent columns
                       device memory_of<C>*       c      [[buffer(2)]],
                       device const long*         starts [[buffer(3)]],
                       constant Product&          p      [[buffer(4)]],
                       uint3 group [[threadgroup_position_in_grid]],
                       uint  lane  [[thread_index_in_simdgroup]]) {
    const Part part = part_of(group.z, p);
    const uint row = group.x * 4, column = group.y * (S * panel);
    const long a_row = p.a_row, c_row = p.N;
    a += starts[2 * part.batch] + row * a_row + part.first * p.a_k;
    b += starts[2 * part.batch + 1] + column + part.first * p.b_k;
    c += (long(part.c) * p.M + row) * c_row + column;

    const uint rows = p.M - row, columns = p.N - column;
    if (rows >= 4) {
        for (ushort s = 0; s < S; s += S / 4) {
            const uint j = s * panel;
            if (j < columns) strip<T, Acc, C, 4, S / 4>(a, b + j, c + j, p, part.K, columns - j, lane);
        }
        return;
    }
    if (rows & 2)
        for (ushort s = 0; s < S; s += S / 2) {
            const uint j = s * panel;
            if (j < columns) strip<T, Acc, C, 2, S / 2>(a, b + j, c + j, p, part.K, columns - j, lane);
        }
    if (rows & 1) strip<T, Acc, C, 1, S>(a + (rows & 2) * a_row, b, c + (rows & 2) * c_row, p, part.K, columns, lane);
}

/// Copy B, of any strides, into panels, as an array panel x K x 32; the last panel is padded with zeros.
struct Packing {
    uint K, N;
    long k, column;  // the steps between rows, and between columns, of B
};

/// Threadgroups: x is a block of panels, y a block of their rows, z the matrix. Where the columns of a row are
/// adjacent, a long stretch of the row is read at once.
template <typename S, typename T, bool neighbors>
kernel void pack(device const memory_of<S>* b      [[buffer(0)]],
                 device T*                  packed [[buffer(1)]],
                 device const long*         starts [[buffer(2)]],
                 constant Packing&          p      [[buffer(3)]],
                 uint3 group [[threadgroup_position_in_grid]],
                 uint  lane  [[thread_index_in_simdgroup]]) {
    constexpr uint rows = neighbors ? 32 : 64, abreast = neighbors ? 8 : 1;
    const uint first = group.y * rows, column = group.x * (abreast * panel);
    const long b_k = p.k, b_column = neighbors ? 1 : p.column, whole = long(p.K) * panel;
    b += starts[group.z] + first * b_k + column * b_column;
    packed += (group.z * long((p.N + panel - 1) / panel) + group.x * abreast) * whole + first * panel;
    uint count = rows, columns = abreast * panel;
    if (first + count > p.K) count = p.K - first;
    if (column + columns > p.N) columns = p.N - column;
    for (uint k = 0; k < count; ++k, b += b_k, packed += panel) {
        device T* to = packed;
        for (uint j = 0; j < columns; j += panel, to += whole)
            to[lane] = j + lane < columns ? T(storage<S>::load((b + j * b_column)[lane * b_column])) : T(0);
    }
}

/// Add up the matrices of the parts of K. Threads: x is the element, y the product of the batch.
template <typename Acc, typename C>
kernel void add_parts(device const Acc*    parts  [[buffer(0)]],
                      device memory_of<C>* c      [[buffer(1)]],
                      constant uint&       splits [[buffer(2)]],
                      uint2 at   [[thread_position_in_grid]],
                      uint2 size [[threads_per_grid]]) {
    device const Acc* part = parts + long(at.y) * splits * size.x;
    Acc sum = 0;
    _Pragma("clang loop unroll_count(8)")  // loads in flight at once
    for (uint s = 0; s < splits; ++s, part += size.x) sum += part[at.x];
    c[long(at.y) * size.x + at.x] = storage<C>::store(sum);
}

// ---- The kernels by name. A signed integer is treated as unsigned: modulo 2^n their products are equal.

#define MAKE(name, suffix, ...) \
    template [[host_name(#name "_" #suffix)]] [[kernel]] decltype(name<__VA_ARGS__>) name<__VA_ARGS__>;
#define PANELS(suffix, T, Acc, C) MAKE(matmul_panels, suffix, T, Acc, C, 6, 2)
#define PRODUCT(suffix, T, Acc, C) \
    MAKE(matmul, suffix, T, Acc, C, 12) MAKE(matmul_few, suffix, T, Acc, C, 8) PANELS(suffix, T, Acc, C)
#define PACK(suffix, S, T) MAKE(pack, suffix, S, T, false) MAKE(pack, suffix##_rows, S, T, true)

PRODUCT(float, float, float, float)
PRODUCT(half, half, float, half)
PRODUCT(half_parts, half, float, float)  // rounded to half once, by add_parts
PRODUCT(bfloat16, bfloat16, float, bfloat16)
PRODUCT(bfloat16_parts, bfloat16, float, float)
PRODUCT(bool, bool, uint, bool)  // whether any pair is true
PRODUCT(uchar, uchar, ushort, uchar)
PRODUCT(ushort, ushort, ushort, ushort)
PRODUCT(uint, uint, uint, uint)
MAKE(matmul, ulong, ulong, ulong, ulong, 6)
MAKE(matmul_few, ulong, ulong, ulong, ulong, 4)

// For large products of 16-bit floats, whose factors have been converted to float: only the result is rounded.
PANELS(float_half, float, float, half)
PANELS(float_bfloat16, float, float, bfloat16)

PACK(1, uchar, uchar)
PACK(2, ushort, ushort)
PACK(4, uint, uint)
PACK(8, ulong, ulong)
PACK(half, half, float)
PACK(bfloat16, bfloat16, float)

MAKE(add_parts, float, float, float)
MAKE(add_parts, half, float, half)
MAKE(add_parts, bfloat16, float, bfloat16)
MAKE(add_parts, bool, bool, bool)
MAKE(add_parts, uchar, uchar, uchar)
MAKE(add_parts, ushort, ushort, ushort)
MAKE(add_parts, uint, uint, uint)
MAKE(add_parts, ulong, ulong, ulong)
