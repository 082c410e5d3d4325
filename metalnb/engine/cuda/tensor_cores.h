// SIMD-group matrices on tensor cores. Part of metal_simdgroup_matrix, in its namespace.
// A tensor core expects 16-bit matrices in one layout as the left factor and in another as the right one; sums have the
// layout of the left factor. Neither layout is Apple's, which thread_elements() exposes. So a load fills a matrix in
// every layout, and the unused ones are removed as dead code: consecutive products move nothing between threads. Once a
// kernel calls thread_elements(), Apple's layout holds the matrix, which is then moved at each product. Source: NVIDIA,
// "PTX ISA", "Matrix Fragments for mma.m16n8k8" and "… for mma.m16n8k16".

// The position of lane l's two elements: side by side in a row for a left factor or a sum; one below the other in a
// column, with rows and columns exchanged, for a right factor.
constexpr uint $core_row(uint l) { return l >> 2; }
constexpr uint $core_column(uint l) { return (l & 3) * 2; }

#ifndef $CORE_INSTRUCTIONS  // tests emulate them by shuffles on a processor without tensor cores
// Not volatile, so that unused results cost nothing.
$COLLECTIVE uint $moved(uint bits, uint from) {
    uint result;
    asm("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(result) : "r"(bits), "r"(from));
    return result;
}

/// Two elements of 16 bits, each rounded to the nearest.
template <class T> METAL_FUNC uint $rounded_pair(float first, float second) {
#if $COMPUTE_CAPABILITY >= 80
    uint pair;
    if constexpr (__is_same(T, half)) asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
    else asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
    return pair;
#else
    return __builtin_bit_cast(ushort, T(first)) | uint(__builtin_bit_cast(ushort, T(second))) << 16;
#endif
}

#define $MMA(shape, type, ...) \
    asm("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, " __VA_ARGS__)
/// Two 8 x 8 sums, one above the other: d += a b. T is the type of the 16-bit elements.
template <class T> $COLLECTIVE void $add_products(float (&d)[4], uint above, uint below, uint right) {
#define $OPERANDS "{%4, %5}, {%6}, {%0, %1, %2, %3};" \
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(above), "r"(below), "r"(right)
    if constexpr (__is_same(T, half)) $MMA("m16n8k8", "f16", $OPERANDS);
    else $MMA("m16n8k8", "bf16", $OPERANDS);
#undef $OPERANDS
}
/// The same for 16 columns of a and 16 rows of b.
template <class T> $COLLECTIVE void $add_products(float (&d)[4], uint a00, uint a10, uint a01, uint a11, uint b0, uint b1) {
#if $COMPUTE_CAPABILITY >= 80
#define $OPERANDS "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) \
    : "r"(a00), "r"(a10), "r"(a01), "r"(a11), "r"(b0), "r"(b1)
    if constexpr (__is_same(T, half)) $MMA("m16n8k16", "f16", $OPERANDS);
    else $MMA("m16n8k16", "bf16", $OPERANDS);
#undef $OPERANDS
#else
    $add_products<T>(d, a00, a10, b0);
    $add_products<T>(d, a01, a11, b1);
#endif
}
#undef $MMA

#if $COMPUTE_CAPABILITY >= 75 && !defined($CHECKED)  // the instruction's reads cannot be checked lane by lane
// Loads a matrix of 16-bit elements from threadgroup memory; lane l < 8 passes the address of line l. Each lane
// receives its two elements of a left factor, or with `turned` of a right one. Pure, so that unused results cost
// nothing.
__attribute__((pure, convergent)) uint $matrix_lines(const __local ushort* line)
    __asm("llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.b16.p3");
__attribute__((pure, convergent)) uint $matrix_turned(const __local ushort* line)
    __asm("llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.trans.b16.p3");
#define $MATRIX_LINES

/// Loads four such matrices by one instruction: lane l passes the address of line l % 8 of matrix l / 8.
template <bool turned> $COLLECTIVE void $four_matrices(uint (&loaded)[4], const __local ushort* line) {
    const uint at = uint(reinterpret_cast<uintptr_t>(line));
    if constexpr (turned)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(loaded[0]), "=r"(loaded[1]), "=r"(loaded[2]), "=r"(loaded[3]) : "r"(at) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(loaded[0]), "=r"(loaded[1]), "=r"(loaded[2]), "=r"(loaded[3]) : "r"(at) : "memory");
}
#define $FOUR_MATRICES
#endif
#endif

$COLLECTIVE float $moved(float x, uint from) { return __builtin_bit_cast(float, $moved(__builtin_bit_cast(uint, x), from)); }

/// The lane that holds, in Apple's layout, lane n's elements in the core's; and the inverse.
constexpr uint $lane_of_apples(uint n) { return (n & 17) | (n >> 1 & 6) | (n << 2 & 8); }
constexpr uint $lane_of_cores(uint l) { return (l & 17) | (l << 1 & 12) | (l >> 2 & 2); }

template <class T> METAL_FUNC uint $pair(T first, T second) {
    return __builtin_bit_cast(ushort, first) | uint(__builtin_bit_cast(ushort, second)) << 16;
}
template <class T> METAL_FUNC vec<T, 2> $of_pair(uint pair) {
    return vec<T, 2>(__builtin_bit_cast(T, ushort(pair)), __builtin_bit_cast(T, ushort(pair >> 16)));
}

/// Two elements from memory: one access if they are neighbors and aligned as a pair.
template <class T> METAL_FUNC uint $pair_at(const __global T* from, ulong first, ulong second, bool) {
    return $pair<T>(from[first], from[second]);
}
template <class T> METAL_FUNC uint $pair_at(const __local T* from, ulong first, ulong second, bool neighbors) {
    if (neighbors && !(reinterpret_cast<uintptr_t>(from + first) & 3))
        return *reinterpret_cast<const __local uint*>(from + first);
    return $pair<T>(from[first], from[second]);
}

/// Fills both layouts from memory with the matrix load instruction, if the lines are aligned as it requires.
template <class P, class F> METAL_FUNC bool $lines_loaded(P, F, bool, thread uint&, thread uint&) { return false; }
#ifdef $MATRIX_LINES
template <class T, class F>
METAL_FUNC bool $lines_loaded(const __local T* from, F index, bool transposed, thread uint& rows, thread uint& columns) {
    const uint l = $simd_lane() & 7;
    const __local ushort* line = reinterpret_cast<const __local ushort*>(from + (transposed ? index(0, l) : index(l, 0)));
    const ulong step = transposed ? index(0, 1) - index(0, 0) : index(1, 0) - index(0, 0);
    if ((reinterpret_cast<uintptr_t>(from + index(0, 0)) | step * sizeof(T)) & 15) return false;  // uniform
    rows = transposed ? $matrix_turned(line) : $matrix_lines(line);
    columns = transposed ? $matrix_lines(line) : $matrix_turned(line);
    return true;
}
#endif

/// A matrix in the core's layouts.
template <class T, size_t = sizeof(T)> struct $matrix_forms {  // a matrix of half or bfloat
    uint $rows, $columns;
    bool $shown = false;
    METAL_FUNC void $show() { $shown = true; }

    /// at(row, column) is an element.
    template <class F> METAL_FUNC void $fill(F at) {
        const uint l = $simd_lane(), i = $core_row(l), j = $core_column(l);
        $rows = $pair<T>(at(i, j), at(i, j + 1));
        $columns = $pair<T>(at(j, i), at(j + 1, i));
    }
    /// The same from memory: index(row, column) is the index of an element.
    template <class P, class F> METAL_FUNC void $fill_from(P from, F index, bool transposed) {
        if ($lines_loaded(from, index, transposed, $rows, $columns)) return;
        const uint l = $simd_lane(), i = $core_row(l), j = $core_column(l);
        $rows = $pair_at<T>(from, index(i, j), index(i, j + 1), !transposed);
        $columns = $pair_at<T>(from, index(j, i), index(j + 1, i), transposed);
    }
    $COLLECTIVE uint $left(vec<T, 2> elements) const {
        return $shown ? $moved($pair(elements.$get(0), elements.$get(1)), $lane_of_apples($simd_lane())) : $rows;
    }
    $COLLECTIVE uint $right(vec<T, 2> elements) const { return $shown ? $turned(elements) : $columns; }
    $COLLECTIVE vec<float, 2> $sum(vec<T, 2> elements) const {
        const vec<T, 2> pair = $of_pair<T>($left(elements));
        return vec<float, 2>(float(pair.$get(0)), float(pair.$get(1)));
    }
    $COLLECTIVE vec<T, 2> $take(float first, float second) { return $take_rows($rounded_pair<T>(first, second)); }
    $COLLECTIVE vec<T, 2> $take_rows(uint pair) {
        $rows = pair;
        const vec<T, 2> elements = $of_pair<T>($moved($rows, $lane_of_cores($simd_lane())));
        $columns = $turned(elements);
        return elements;
    }
    $COLLECTIVE void $follow(vec<T, 2> elements) {
        $rows = $moved($pair(elements.$get(0), elements.$get(1)), $lane_of_apples($simd_lane()));
        $columns = $turned(elements);
    }
    METAL_FUNC vec<T, 2> $stored(vec<T, 2> elements) const {
        if ($shown) return elements;
        return $of_pair<T>($rows);
    }
    METAL_FUNC uint $stored_row() const { return $shown ? $matrix_row($simd_lane()) : $core_row($simd_lane()); }
    METAL_FUNC uint $stored_column() const { return $shown ? $matrix_column($simd_lane()) : $core_column($simd_lane()); }

    $COLLECTIVE static uint $turned(vec<T, 2> elements) {
        const uint n = $simd_lane(), pair = $pair(elements.$get(0), elements.$get(1));
        const uint from = (n << 3 & 16) | (n << 2 & 4) | (n >> 1 & 8) | (n >> 3 & 1);  // has the even row; the next has the odd
        const uint even = $moved(pair, from), odd = $moved(pair, from | 2);
        return n & 4 ? even >> 16 | (odd & 0xffff0000u) : (even & 0xffff) | odd << 16;
    }
};
template <class T> struct $matrix_forms<T, 4> {  // a matrix of float, used only for sums
    float $first, $second;
    bool $shown = false;
    METAL_FUNC void $show() { $shown = true; }

    template <class F> METAL_FUNC void $fill(F at) {
        const uint l = $simd_lane(), i = $core_row(l), j = $core_column(l);
        $first = at(i, j);
        $second = at(i, j + 1);
    }
    template <class P, class F> METAL_FUNC void $fill_from(P from, F index, bool) {
        $fill([=](uint row, uint column) { return from[index(row, column)]; });
    }
    $COLLECTIVE vec<float, 2> $sum(vec<float, 2> elements) const {
        const uint from = $lane_of_apples($simd_lane());
        return $shown ? vec<float, 2>($moved(elements.$get(0), from), $moved(elements.$get(1), from))
                      : vec<float, 2>($first, $second);
    }
    $COLLECTIVE vec<float, 2> $take(float first, float second) {
        $first = first;
        $second = second;
        const uint from = $lane_of_cores($simd_lane());
        return vec<float, 2>($moved(first, from), $moved(second, from));
    }
    $COLLECTIVE void $follow(vec<float, 2> elements) {
        const uint from = $lane_of_apples($simd_lane());
        $first = $moved(elements.$get(0), from);
        $second = $moved(elements.$get(1), from);
    }
    METAL_FUNC vec<float, 2> $stored(vec<float, 2> elements) const {
        if ($shown) return elements;
        return vec<float, 2>($first, $second);
    }
    METAL_FUNC uint $stored_row() const { return $shown ? $matrix_row($simd_lane()) : $core_row($simd_lane()); }
    METAL_FUNC uint $stored_column() const { return $shown ? $matrix_column($simd_lane()) : $core_column($simd_lane()); }
};

/// Whether a tensor core multiplies these types.
template <class A, class B> constexpr bool $on_cores =
    __is_same(A, B) && (__is_same(A, half) || ($COMPUTE_CAPABILITY >= 80 && __is_same(A, bfloat)));

template <class T, int Columns, int Rows> struct simdgroup_matrix;

/// d = a b + c. The lower half of the core's result is discarded: see metalnb_multiply_block.
template <class D, class A, class B, class C>
$COLLECTIVE void $multiply_on_cores(thread simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a,
                                    simdgroup_matrix<B, 8, 8> b, simdgroup_matrix<C, 8, 8> c) {
    const vec<float, 2> start = c.$sum(c.$elements);
    float sum[4] = {start.$get(0), start.$get(1), 0, 0};
    $add_products<A>(sum, a.$left(a.$elements), 0u, b.$right(b.$elements));
    d.$elements = d.$take(sum[0], sum[1]);
}

#define METALNB_MATRIX_BLOCKS 1
/// Two sums, one above the other: above += a00 b0 + a01 b1, below += a10 b0 + a11 b1, by one instruction.
template <class D, class T>
$COLLECTIVE void metalnb_multiply_block(
    thread simdgroup_matrix<D, 8, 8>& above, thread simdgroup_matrix<D, 8, 8>& below, simdgroup_matrix<T, 8, 8> a00,
    simdgroup_matrix<T, 8, 8> a01, simdgroup_matrix<T, 8, 8> a10, simdgroup_matrix<T, 8, 8> a11,
    simdgroup_matrix<T, 8, 8> b0, simdgroup_matrix<T, 8, 8> b1) {
    const vec<float, 2> upper = above.$sum(above.$elements), lower = below.$sum(below.$elements);
    float sum[4] = {upper.$get(0), upper.$get(1), lower.$get(0), lower.$get(1)};
    $add_products<T>(sum, a00.$left(a00.$elements), a10.$left(a10.$elements), a01.$left(a01.$elements),
                     a11.$left(a11.$elements), b0.$right(b0.$elements), b1.$right(b1.$elements));
    above.$elements = above.$take(sum[0], sum[1]);
    below.$elements = below.$take(sum[2], sum[3]);
}

// The core's layout, open to kernels that work on sums between products: lane l holds two neighbors of a row.
METAL_FUNC uint metalnb_matrix_row(uint lane) { return $core_row(lane); }
METAL_FUNC uint metalnb_matrix_column(uint lane) { return $core_column(lane); }
constant constexpr uint metalnb_matrix_mates[2] = {1, 2};  // bits in which the lanes that share a row differ
/// Convert a matrix to a lane's two elements, and back, without moving data between lanes.
template <class T> $COLLECTIVE vec<float, 2> metalnb_matrix_elements(simdgroup_matrix<T, 8, 8> m) {
    return m.$sum(m.$elements);
}
template <class T> $COLLECTIVE simdgroup_matrix<T, 8, 8> metalnb_matrix_of(float first, float second) {
    simdgroup_matrix<T, 8, 8> m;
    m.$elements = m.$take(first, second);
    return m;
}
/// Return a matrix from the bits of a lane's two elements, the first in the lower half.
template <class T> $COLLECTIVE simdgroup_matrix<T, 8, 8> metalnb_matrix_of_bits(uint pair) {
    simdgroup_matrix<T, 8, 8> m;
    m.$elements = m.$take_rows(pair);
    return m;
}
/// A matrix used only as a right factor, from the bits of the transposed matrix's elements.
template <class T> $COLLECTIVE simdgroup_matrix<T, 8, 8> metalnb_right_factor_of_bits(uint pair, uint) {
    simdgroup_matrix<T, 8, 8> m;
    m.$columns = pair;
    return m;
}

/// Four matrices from threadgroup memory, (i, j) at from + i down + j across, as left factors, or with `right` as right
/// factors; not as both. Rows, or columns of transposed ones, begin at multiples of 16 bytes.
template <bool right, bool transposed, class T>
$COLLECTIVE void metalnb_load_block(thread simdgroup_matrix<T, 8, 8> (&m)[2][2], const threadgroup T* from, uint down,
                                    uint across, uint pitch) {
#ifdef $FOUR_MATRICES
    const uint l = $simd_lane();
    uint loaded[4];
    $four_matrices<right != transposed>(loaded, reinterpret_cast<const threadgroup ushort*>(
        from + (l >> 4) * down + (l >> 3 & 1) * across + (l & 7) * pitch));
    for (uint i = 0; i < 4; ++i) (right ? m[i / 2][i % 2].$columns : m[i / 2][i % 2].$rows) = loaded[i];
#else
    for (uint i = 0; i < 4; ++i)
        simdgroup_load(m[i / 2][i % 2], from + i / 2 * down + i % 2 * across, pitch, ulong2(0), transposed);
#endif
}

/// The value of a lane; all lanes must request one.
$COLLECTIVE uint metalnb_of_lane(uint x, uint lane) { return $moved(x, lane); }

/// 2^x to a few ulp; 0 where that is subnormal.
METAL_FUNC float metalnb_exp2(float x) {
#ifdef $CORE_INSTRUCTIONS
    return exp2(x);
#else
    return __nvvm_ex2_approx_ftz_f(x);
#endif
}
