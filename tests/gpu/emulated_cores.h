// The instructions of engine/cuda/tensor_cores.h, emulated by shuffles. Each lane holds the elements of the factors and
// sums that NVIDIA's "PTX ISA" lists under "Matrix Fragments for mma.m16n8k8" and "... for mma.m16n8k16".
#define $CORE_INSTRUCTIONS
#define $COMPUTE_CAPABILITY 90

$COLLECTIVE uint $moved(uint bits, uint from) { return $shuffled(bits, from); }

template <class T> METAL_FUNC uint $rounded_pair(float first, float second) {
    return __builtin_bit_cast(ushort, T(first)) | uint(__builtin_bit_cast(ushort, T(second))) << 16;
}

template <class T> $COLLECTIVE float $of_fragment(uint pairs, uint line, uint k) {  // of 8 lines, each along K
    const uint pair = $shuffled(pairs, line * 4 + k / 2);
    return float(__builtin_bit_cast(T, ushort(k % 2 ? pair >> 16 : pair)));
}
template <class T> $COLLECTIVE void $add_products(float (&d)[4], uint above, uint below, uint right) {
    const uint group = $simd_lane() >> 2, column = ($simd_lane() & 3) * 2;
    for (uint k = 0; k < 8; ++k)
        for (uint e = 0; e < 2; ++e) {
            const float b = $of_fragment<T>(right, column + e, k);
            d[e] += $of_fragment<T>(above, group, k) * b;
            d[2 + e] += $of_fragment<T>(below, group, k) * b;
        }
}
template <class T> $COLLECTIVE void $add_products(float (&d)[4], uint a0, uint a1, uint a2, uint a3, uint b0, uint b1) {
    $add_products<T>(d, a0, a1, b0);  // rows 0 to 7 and 8 to 15 of columns 0 to 7,
    $add_products<T>(d, a2, a3, b1);  // then of columns 8 to 15
}

#define $MATRIX_LINES
$COLLECTIVE uint $matrix_lines(const __local ushort* line) {
    const ulong from = $shuffled(reinterpret_cast<ulong>(line), $simd_lane() >> 2);
    const __local ushort* x = reinterpret_cast<const __local ushort*>(from) + ($simd_lane() & 3) * 2;
    return x[0] | uint(x[1]) << 16;
}
$COLLECTIVE uint $matrix_turned(const __local ushort* line) {
    uint pair = 0;
    for (uint e = 0; e < 2; ++e) {
        const ulong from = $shuffled(reinterpret_cast<ulong>(line), ($simd_lane() & 3) * 2 + e);
        pair |= uint(reinterpret_cast<const __local ushort*>(from)[$simd_lane() >> 2]) << 16 * e;
    }
    return pair;
}
#define $FOUR_MATRICES
template <bool turned> $COLLECTIVE void $four_matrices(uint (&loaded)[4], const __local ushort* line) {
    const ulong own = reinterpret_cast<ulong>(line);
    for (uint i = 0; i < 4; ++i) {
        const ulong of = $shuffled(own, 8 * i + ($simd_lane() & 7));
        loaded[i] = turned ? $matrix_turned(reinterpret_cast<const __local ushort*>(of))
                           : $matrix_lines(reinterpret_cast<const __local ushort*>(of));
    }
}
#include "tensor_cores.h"
