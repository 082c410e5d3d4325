// Products of few vectors with weights of 4 or 8 bits (quantized.metal), by SIMD-group matrices of half or bfloat.
//
// Idea: a lane reads 16 bytes of a row, a unit, whose weights have one scale. Weights are the left factor. They need no
// conversion: as a half, the bits of q are q · 2^-24; as a bfloat, 128 + q has q in its lowest bits. A product sums over
// the four units of a row's lanes, which have different scales. So the right factor has two columns for each unit, for two
// vectors, with zeros where the other units' weights are: each unit has its own sums, as floats. A further product, with
// ones, gives the sums of x by which minima are multiplied. The order of elements within a unit is that of unpacking.
// SIMD-groups of a threadgroup share rows and split K.
//
// Source: E. Frantar et al., "MARLIN: Mixed-Precision Auto-Regressive Parallel Inference on Large Language Models", 2024,
// unpacks into tensor cores; the zeros are ours.
#include <metal_stdlib>
#include <metalnb/matrix_elements.h>
#include <metalnb/quantized.h>
#include <metalnb/storage.h>
using namespace metal;

/// How the bits of a word become elements: two `planes`, whose products are summed apart, of two pairs each.
template <typename T, ushort bits> struct Unpacking {  // of half
    static constexpr constant ushort PLANES = bits == 4 ? 2 : 1;
    static constexpr constant float OFFSET = 0;  // of each element
    static uint pair(uint word, ushort plane) {
        return bits == 4 ? word & (plane == 0 ? 0x000f000fu : 0x00f000f0u) : word & 0x00ff00ffu;
    }
    /// The sum, from those of the planes.
    static float joined(float first, float second) {
        return PLANES == 2 ? fma(second, 0x1p20f, first * 0x1p24f) : first * 0x1p24f;
    }
};
template <ushort bits> struct Unpacking<bfloat, bits> {
    static constexpr constant ushort PLANES = 2;
    static constexpr constant float OFFSET = bits == 4 ? 128 : 128 * 17;
    static uint pair(uint word, ushort plane) { return (word >> (4 * plane) & 0x000f000fu) | 0x43004300u; }
    static float joined(float first, float second) { return bits == 4 ? first + second : fma(second, 16.0f, first); }
};

/// What a lane reads at once: a unit of each of its rows, with scale and minimum.
template <typename S, ushort ROWS> struct Units {
    uint4 words[ROWS];
    memory_of<S> scales[ROWS], minima[ROWS];
};

/// out = x w^T for up to 2 SETS vectors x, by threadgroups of 16 TALL rows.
template <typename T, typename S, ushort bits, bool symmetric, ushort SETS, ushort TALL, ushort SIMDS>
kernel void quantized_matrices(device const ushort*       x      [[buffer(0)]],
                               device const uint*         words  [[buffer(1)]],
                               device const memory_of<S>* scales [[buffer(2)]],
                               device const memory_of<S>* minima [[buffer(3)]],
                               device T*                  out    [[buffer(4)]],
                               constant Quantized&        p      [[buffer(5)]],
                               uint group [[threadgroup_position_in_grid]],
                               uint lane  [[thread_index_in_simdgroup]],
                               uint simd  [[simdgroup_index_in_threadgroup]]) {
    using Form = Unpacking<T, bits>;
    constexpr ushort ROWS = 2 * TALL, VECTORS = 2 * SETS, PLANES = Form::PLANES;
    constexpr uint UNIT = 128 / bits, SHARED = bits / 4;  // elements of a unit; units that share a scale
    threadgroup float parts[SIMDS][16 * TALL][VECTORS];
    const uint row = metalnb_matrix_row(lane), column = metalnb_matrix_column(lane);
    const uint units = p.K / UNIT, blocks = p.K / BLOCK, first = group * 16 * TALL;
    device const uint4* from = reinterpret_cast<device const uint4*>(words + p.words);
    scales += p.scales;
    minima += p.minima;
    uint starts[ROWS], scale_starts[ROWS];  // of this lane's rows
    UNROLL for (ushort r = 0; r < ROWS; ++r) {
        const uint own = min(first + 8 * r + row, p.N - 1);
        starts[r] = own * units;
        scale_starts[r] = own * blocks;
    }
    // This lane's part of the right factors: the elements of one unit of one vector of each set, or zeros.
    const uint vector = row % 2;
    const bool diagonal = row / 2 == column / 2;
    device const ushort* own = x + p.x + vector * ulong(p.K);

    float sum[ROWS][VECTORS];
    UNROLL for (ushort r = 0; r < ROWS; ++r)
        UNROLL for (ushort v = 0; v < VECTORS; ++v) sum[r][v] = 0;
    const auto ones = make_filled_simdgroup_matrix<T, 8, 8>(T(1));

    Units<S, ROWS> next;
    auto read = [&](uint at) {
        const uint unit = min(at, units - 1);
        UNROLL for (ushort r = 0; r < ROWS; ++r) {
            next.words[r] = from[starts[r] + unit];
            next.scales[r] = scales[scale_starts[r] + unit / SHARED];
            if (!symmetric) next.minima[r] = minima[scale_starts[r] + unit / SHARED];
        }
    };
    uint unit = 4 * simd + column / 2;
    read(unit);
    for (uint step = 4 * simd; step < units; step += 4 * SIMDS, unit += 4 * SIMDS) {
        const Units<S, ROWS> now = next;
        if (step + 4 * SIMDS < units) read(unit + 4 * SIMDS);
        const bool there = unit < units;
        simdgroup_float8x8 made[SETS][PLANES][ROWS], total[SETS][2];
        EACH_MATRIX for (ushort s = 0; s < SETS; ++s) {
            EACH_MATRIX for (ushort i = 0; i < PLANES; ++i)
                EACH_MATRIX for (ushort r = 0; r < ROWS; ++r) made[s][i][r] = make_filled_simdgroup_matrix<float, 8, 8>(0);
            EACH_MATRIX for (ushort i = 0; i < 2; ++i) total[s][i] = make_filled_simdgroup_matrix<float, 8, 8>(0);
        }
        EACH_MATRIX for (ushort i = 0; i < UNIT / 8; ++i) {  // eight elements at a time
            simdgroup_matrix<T, 8, 8> y[SETS][4];
            EACH_MATRIX for (ushort s = 0; s < SETS; ++s) {
                uint4 e = uint4(0);
                if (diagonal && there && 2 * s + vector < p.M)
                    e = reinterpret_cast<device const uint4*>(own + 2 * s * ulong(p.K) + unit * UNIT)[i];
                // The two pairs of each plane, or of each word.
                const uint2 a = bits == 4 ? e.xy : e.xz, b = bits == 4 ? e.zw : e.yw;
                const uint2 low = (a & 0xffff) | b << 16, high = a >> 16 | (b & 0xffff0000u);
                y[s][0] = metalnb_right_factor_of_bits<T>(low.x, lane);
                y[s][1] = metalnb_right_factor_of_bits<T>(bits == 4 ? low.y : high.x, lane);
                y[s][2] = metalnb_right_factor_of_bits<T>(bits == 4 ? high.x : low.y, lane);
                y[s][3] = metalnb_right_factor_of_bits<T>(high.y, lane);
                EACH_MATRIX for (ushort k = 0; k < 4; k += 2)
                    metalnb_multiply_block(total[s][0], total[s][1], ones, ones, ones, ones, y[s][k], y[s][k + 1]);
            }
            EACH_MATRIX for (ushort r = 0; r < ROWS; r += 2)
                EACH_MATRIX for (ushort w = 0; w < SHARED; ++w) {
                    const uint above = now.words[r][i * SHARED + w], below = now.words[r + 1][i * SHARED + w];
                    EACH_MATRIX for (ushort plane = 0; plane < PLANES; ++plane) {
                        const auto a00 = metalnb_matrix_of_bits<T>(Form::pair(above, plane));
                        const auto a01 = metalnb_matrix_of_bits<T>(Form::pair(above >> 8, plane));
                        const auto a10 = metalnb_matrix_of_bits<T>(Form::pair(below, plane));
                        const auto a11 = metalnb_matrix_of_bits<T>(Form::pair(below >> 8, plane));
                        const ushort k = bits == 4 ? 2 * plane : 2 * w;
                        EACH_MATRIX for (ushort s = 0; s < SETS; ++s)
                            metalnb_multiply_block(made[s][plane][r], made[s][plane][r + 1], a00, a01, a10, a11, y[s][k], y[s][k + 1]);
                    }
                }
        }
        EACH_MATRIX for (ushort s = 0; s < SETS; ++s) {
            const float2 all = metalnb_matrix_elements(total[s][0]);
            EACH_MATRIX for (ushort r = 0; r < ROWS; ++r) {
                const float scale = there ? float(storage<S>::load(now.scales[r])) : 0.0f;
                constexpr float middle = Form::OFFSET + (symmetric ? 1 << (bits - 1) : 0);
                const float minimum = symmetric || !there ? 0.0f : float(storage<S>::load(now.minima[r]));
                const float2 one = metalnb_matrix_elements(made[s][0][r]);
                const float2 other = PLANES == 2 ? metalnb_matrix_elements(made[s][PLANES - 1][r]) : float2(0);
                UNROLL for (ushort v = 0; v < 2; ++v) {
                    float dot = Form::joined(one[v], other[v]);
                    if (middle != 0) dot = fma(-middle, all[v], dot);
                    sum[r][2 * s + v] = fma(scale, dot, symmetric ? sum[r][2 * s + v] : fma(minimum, all[v], sum[r][2 * s + v]));
                }
            }
        }
    }

    UNROLL for (ushort r = 0; r < ROWS; ++r)
        UNROLL for (ushort v = 0; v < VECTORS; ++v) {
            const float part = sum_of_row(sum[r][v]);
            if (column == 0) parts[simd][8 * r + row][v] = part;
        }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 32 * simd + lane; i < 16 * TALL * p.M; i += 32 * SIMDS) {
        const uint r = i % (16 * TALL), v = i / (16 * TALL);
        if (first + r >= p.N) continue;
        float whole = 0;
        for (ushort s = 0; s < SIMDS; ++s) whole += parts[s][r][v];
        out[v * ulong(p.N) + first + r] = T(whole);
    }
}
