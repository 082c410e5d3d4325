// Products of few vectors with weights of 4 or 8 bits (quantized.metal), by SIMD-group matrices of half or bfloat.
//
// Idea: a lane reads 16 bytes of a row, a unit, whose weights have one scale. Weights are the left factor, and need no
// conversion: as a half, the bits of q are q · 2^-24; as a bfloat, 128 + q has q in its lowest bits. The order of
// elements is that of unpacking, for x as well. A product would sum over the four units that the lanes of a row hold,
// which have different scales. So for one or two vectors the right factor has two columns for each unit, with zeros
// where the other units' weights are. A further product, with ones, gives the sums of x by which the minima are
// multiplied. SIMD-groups of a threadgroup share rows and split K; sums are floats, scaled once for each unit.
//
// Source: E. Frantar et al., "MARLIN: Mixed-Precision Auto-Regressive Parallel Inference on Large Language Models",
// 2024, whose weights are unpacked for tensor cores and scaled as halves; the separate columns are ours.
#include <metal_stdlib>
#include <metalnb/matrix_elements.h>
#include <metalnb/quantized.h>
#include <metalnb/storage.h>
using namespace metal;

/// How the bits of a word become elements: two `planes` of two pairs each, whose products are summed separately.
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

/// A lane's loads of one step: a unit of each of its rows, with scale and minimum.
template <typename S, ushort ROWS> struct Units {
    uint4 words[ROWS];
    memory_of<S> scales[ROWS], minima[ROWS];
};

/// A lane's rows of the weights, 8 apart from `first`; the last one replaces those beyond the end.
template <typename S, ushort bits, bool symmetric, ushort ROWS> struct WeightRows {
    static constexpr constant uint UNIT = 128 / bits, SHARED = bits / 4;  // elements of a unit; units that share a scale
    device const uint4* words;
    device const memory_of<S>* scales;
    device const memory_of<S>* minima;
    uint units;
    uint starts[ROWS], blocks[ROWS];

    void start(device const uint* given, constant Quantized& p, uint first) {
        words = reinterpret_cast<device const uint4*>(given + p.words);
        scales += p.scales;
        minima += p.minima;
        units = p.K / UNIT;
        UNROLL for (ushort r = 0; r < ROWS; ++r) {
            const uint own = min(first + 8 * r, p.N - 1);
            starts[r] = own * units;
            blocks[r] = own * (p.K / BLOCK);
        }
    }
    void read(thread Units<S, ROWS>& to, uint at) const {
        const uint unit = min(at, units - 1);
        UNROLL for (ushort r = 0; r < ROWS; ++r) {
            to.words[r] = words[starts[r] + unit];
            to.scales[r] = scales[blocks[r] + unit / SHARED];
            if (!symmetric) to.minima[r] = minima[blocks[r] + unit / SHARED];
        }
    }
};

/// The right factor's pairs for eight elements of x: two of each plane, or of each word.
template <typename T, ushort bits> inline void spread(thread simdgroup_matrix<T, 8, 8> (&y)[4], uint4 e, uint lane) {
    const uint2 a = bits == 4 ? e.xy : e.xz, b = bits == 4 ? e.zw : e.yw;
    const uint2 low = (a & 0xffff) | b << 16, high = a >> 16 | (b & 0xffff0000u);
    y[0] = metalnb_right_factor_of_bits<T>(low.x, lane);
    y[1] = metalnb_right_factor_of_bits<T>(bits == 4 ? low.y : high.x, lane);
    y[2] = metalnb_right_factor_of_bits<T>(bits == 4 ? high.x : low.y, lane);
    y[3] = metalnb_right_factor_of_bits<T>(high.y, lane);
}

/// above += a y and below += b y for a plane of two words, one 8 rows below the other.
template <typename T, ushort bits>
inline void add_plane(thread simdgroup_float8x8& above, thread simdgroup_float8x8& below, uint a, uint b, ushort plane,
                      simdgroup_matrix<T, 8, 8> y0, simdgroup_matrix<T, 8, 8> y1) {
    using Form = Unpacking<T, bits>;
    metalnb_multiply_block(above, below, metalnb_matrix_of_bits<T>(Form::pair(a, plane)),
                           metalnb_matrix_of_bits<T>(Form::pair(a >> 8, plane)),
                           metalnb_matrix_of_bits<T>(Form::pair(b, plane)),
                           metalnb_matrix_of_bits<T>(Form::pair(b >> 8, plane)), y0, y1);
}

/// A unit's or a block's part of two dot products: sum += scale (q · x) + minimum (sum of x).
template <typename T, ushort bits, bool symmetric>
inline void add_part(thread float* sum, float2 first, float2 second, float2 total, float scale, float minimum) {
    using Form = Unpacking<T, bits>;
    constexpr float middle = Form::OFFSET + (symmetric ? 1 << (bits - 1) : 0);
    UNROLL for (ushort v = 0; v < 2; ++v) {
        float dot = Form::joined(first[v], second[v]);
        if (middle != 0) dot = fma(-middle, total[v], dot);
        sum[v] = fma(scale, dot, symmetric ? sum[v] : fma(minimum, total[v], sum[v]));
    }
}

/// The SIMD-groups' sums added up and written.
template <typename T, ushort SIMDS, ushort HEIGHT, ushort VECTORS>
inline void store_dots(threadgroup float (&parts)[SIMDS][HEIGHT][VECTORS], device T* out, constant Quantized& p, uint first,
                       uint t) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = t; i < HEIGHT * p.M; i += 32 * SIMDS) {
        const uint r = i % HEIGHT, v = i / HEIGHT;
        if (first + r >= p.N) continue;
        float whole = 0;
        for (ushort s = 0; s < SIMDS; ++s) whole += parts[s][r][v];
        out[v * ulong(p.N) + first + r] = T(whole);
    }
}

/// out = x w^T for one or two vectors x, by threadgroups of 16 TALL rows.
template <typename T, typename S, ushort bits, bool symmetric, ushort TALL, ushort SIMDS>
kernel void quantized_pair(device const ushort*       x      [[buffer(0)]],
                           device const uint*         words  [[buffer(1)]],
                           device const memory_of<S>* scales [[buffer(2)]],
                           device const memory_of<S>* minima [[buffer(3)]],
                           device T*                  out    [[buffer(4)]],
                           constant Quantized&        p      [[buffer(5)]],
                           uint group [[threadgroup_position_in_grid]],
                           uint lane  [[thread_index_in_simdgroup]],
                           uint simd  [[simdgroup_index_in_threadgroup]]) {
    constexpr ushort ROWS = 2 * TALL, PLANES = Unpacking<T, bits>::PLANES;
    constexpr uint UNIT = 128 / bits, SHARED = bits / 4;
    threadgroup float parts[SIMDS][16 * TALL][2];
    const uint row = metalnb_matrix_row(lane), column = metalnb_matrix_column(lane), first = group * 16 * TALL;
    WeightRows<S, bits, symmetric, ROWS> w = {nullptr, scales, minima};
    w.start(words, p, first + row);
    // This lane's part of the right factor: the elements of one unit of one vector, or zeros.
    const bool mine = row / 2 == column / 2 && row % 2 < p.M;
    x += p.x + row % 2 * ulong(p.K);

    float sum[ROWS][2];
    UNROLL for (ushort r = 0; r < ROWS; ++r) sum[r][0] = sum[r][1] = 0;
    const auto ones = make_filled_simdgroup_matrix<T, 8, 8>(T(1));
    Units<S, ROWS> next;
    uint unit = 4 * simd + column / 2;
    w.read(next, unit);
    for (uint step = 4 * simd; step < w.units; step += 4 * SIMDS, unit += 4 * SIMDS) {
        const Units<S, ROWS> now = next;
        if (step + 4 * SIMDS < w.units) w.read(next, unit + 4 * SIMDS);
        const bool there = unit < w.units;
        simdgroup_float8x8 made[PLANES][ROWS], total[2];
        EACH_MATRIX for (ushort i = 0; i < PLANES; ++i)
            EACH_MATRIX for (ushort r = 0; r < ROWS; ++r) made[i][r] = make_filled_simdgroup_matrix<float, 8, 8>(0);
        EACH_MATRIX for (ushort i = 0; i < 2; ++i) total[i] = make_filled_simdgroup_matrix<float, 8, 8>(0);
        EACH_MATRIX for (ushort i = 0; i < UNIT / 8; ++i) {  // eight elements at a time
            simdgroup_matrix<T, 8, 8> y[4];
            uint4 e = uint4(0);
            if (mine && there) e = reinterpret_cast<device const uint4*>(x + unit * UNIT)[i];
            spread<T, bits>(y, e, lane);
            EACH_MATRIX for (ushort k = 0; k < 4; k += 2)
                metalnb_multiply_block(total[0], total[1], ones, ones, ones, ones, y[k], y[k + 1]);
            EACH_MATRIX for (ushort r = 0; r < ROWS; r += 2)
                EACH_MATRIX for (ushort word = 0; word < SHARED; ++word)
                    EACH_MATRIX for (ushort plane = 0; plane < PLANES; ++plane) {
                        const ushort k = bits == 4 ? 2 * plane : 2 * word;
                        add_plane<T, bits>(made[plane][r], made[plane][r + 1], now.words[r][i * SHARED + word],
                                           now.words[r + 1][i * SHARED + word], plane, y[k], y[k + 1]);
                    }
        }
        const float2 all = metalnb_matrix_elements(total[0]);
        EACH_MATRIX for (ushort r = 0; r < ROWS; ++r) {
            const float scale = there ? float(storage<S>::load(now.scales[r])) : 0.0f;
            const float minimum = symmetric || !there ? 0.0f : float(storage<S>::load(now.minima[r]));
            add_part<T, bits, symmetric>(sum[r], metalnb_matrix_elements(made[0][r]),
                                         metalnb_matrix_elements(made[PLANES - 1][r]), all, scale, minimum);
        }
    }

    UNROLL for (ushort r = 0; r < ROWS; ++r)
        UNROLL for (ushort v = 0; v < 2; ++v) {
            const float part = sum_of_row(sum[r][v]);
            if (column == 0) parts[simd][8 * r + row][v] = part;
        }
    store_dots<T>(parts, out, p, first, 32 * simd + lane);
}

/// The lane of the same row whose place among the four lanes differs in these bits.
inline uint mate(uint lane, uint bits) {
    return lane ^ ((bits & 1 ? metalnb_matrix_mates[0] : 0) | (bits & 2 ? metalnb_matrix_mates[1] : 0));
}

/// Exchanges words among the four lanes of a row: word i of lane j becomes word j of lane i.
inline uint4 exchanged(uint4 w, uint j, uint lane) {
    const bool odd = j & 1, upper = j & 2;
    const uint2 given = odd ? w.xz : w.yw;
    const uint2 got = uint2(metalnb_of_lane(given.x, mate(lane, 1)), metalnb_of_lane(given.y, mate(lane, 1)));
    w = odd ? uint4(got.x, w.y, got.y, w.w) : uint4(w.x, got.x, w.z, got.y);
    const uint2 other = upper ? w.xy : w.zw;
    const uint2 back = uint2(metalnb_of_lane(other.x, mate(lane, 2)), metalnb_of_lane(other.y, mate(lane, 2)));
    return upper ? uint4(back, w.zw) : uint4(w.xy, back);
}

/// The same for up to eight vectors. The right factor has a column for each, so a product sums over one block: the
/// lanes of a row exchange words until each has a part of every unit.
template <typename T, typename S, ushort bits, bool symmetric, ushort TALL, ushort SIMDS>
kernel void quantized_eight(device const ushort*       x      [[buffer(0)]],
                            device const uint*         words  [[buffer(1)]],
                            device const memory_of<S>* scales [[buffer(2)]],
                            device const memory_of<S>* minima [[buffer(3)]],
                            device T*                  out    [[buffer(4)]],
                            constant Quantized&        p      [[buffer(5)]],
                            uint group [[threadgroup_position_in_grid]],
                            uint lane  [[thread_index_in_simdgroup]],
                            uint simd  [[simdgroup_index_in_threadgroup]]) {
    constexpr ushort ROWS = 2 * TALL, PLANES = Unpacking<T, bits>::PLANES;
    constexpr uint UNIT = 128 / bits, SHARED = bits / 4;
    threadgroup float parts[SIMDS][16 * TALL][8];
    const uint row = metalnb_matrix_row(lane), column = metalnb_matrix_column(lane), first = group * 16 * TALL;
    const uint place = column / 2;  // among the four lanes of a row
    WeightRows<S, bits, symmetric, ROWS> w = {nullptr, scales, minima};
    w.start(words, p, first + row);
    x += p.x + min(row, p.M - 1) * ulong(p.K) + place * (32 / bits);  // a word's elements

    float sum[ROWS][2];
    UNROLL for (ushort r = 0; r < ROWS; ++r) sum[r][0] = sum[r][1] = 0;
    const auto ones = make_filled_simdgroup_matrix<T, 8, 8>(T(1));
    Units<S, ROWS> next;
    uint unit = 4 * simd;
    w.read(next, unit + place);
    for (; unit < w.units; unit += 4 * SIMDS) {
        Units<S, ROWS> now = next;
        if (unit + 4 * SIMDS < w.units) w.read(next, unit + 4 * SIMDS + place);
        const bool there = unit + place < w.units;
        float scale[ROWS], minimum[ROWS];
        EACH_MATRIX for (ushort r = 0; r < ROWS; ++r) {
            now.words[r] = exchanged(now.words[r], place, lane);
            scale[r] = there ? float(storage<S>::load(now.scales[r])) : 0.0f;
            minimum[r] = symmetric || !there ? 0.0f : float(storage<S>::load(now.minima[r]));
        }
        EACH_MATRIX for (ushort u = 0; u < 4; u += SHARED) {  // a block
            simdgroup_float8x8 made[PLANES][ROWS], total[2];
            EACH_MATRIX for (ushort i = 0; i < PLANES; ++i)
                EACH_MATRIX for (ushort r = 0; r < ROWS; ++r) made[i][r] = make_filled_simdgroup_matrix<float, 8, 8>(0);
            EACH_MATRIX for (ushort i = 0; i < 2; ++i) total[i] = make_filled_simdgroup_matrix<float, 8, 8>(0);
            // Eight elements of x: of one word, or of the words of two units.
            uint4 e = uint4(0);
            if (unit + u < w.units && row < p.M) {
                device const ushort* from = x + (unit + u) * UNIT;
                if (bits == 4) e = *reinterpret_cast<device const uint4*>(from);
                else e = uint4(*reinterpret_cast<device const uint2*>(from),
                               *reinterpret_cast<device const uint2*>(from + UNIT));
            }
            simdgroup_matrix<T, 8, 8> y[4];
            spread<T, bits>(y, e, lane);
            EACH_MATRIX for (ushort k = 0; k < 4; k += 2)
                metalnb_multiply_block(total[0], total[1], ones, ones, ones, ones, y[k], y[k + 1]);
            EACH_MATRIX for (ushort r = 0; r < ROWS; r += 2)
                EACH_MATRIX for (ushort word = 0; word < SHARED; ++word)
                    EACH_MATRIX for (ushort plane = 0; plane < PLANES; ++plane) {
                        const ushort k = bits == 4 ? 2 * plane : 2 * word;
                        add_plane<T, bits>(made[plane][r], made[plane][r + 1], now.words[r][u + word],
                                           now.words[r + 1][u + word], plane, y[k], y[k + 1]);
                    }
            const float2 all = metalnb_matrix_elements(total[0]);
            const uint from = mate(lane, place ^ u);  // has the block's scales
            EACH_MATRIX for (ushort r = 0; r < ROWS; ++r)
                add_part<T, bits, symmetric>(sum[r], metalnb_matrix_elements(made[0][r]),
                                             metalnb_matrix_elements(made[PLANES - 1][r]), all,
                                             as_type<float>(metalnb_of_lane(as_type<uint>(scale[r]), from)),
                                             as_type<float>(metalnb_of_lane(as_type<uint>(minimum[r]), from)));
        }
    }

    UNROLL for (ushort r = 0; r < ROWS; ++r)
        UNROLL for (ushort v = 0; v < 2; ++v) parts[simd][8 * r + row][column + v] = sum[r][v];
    store_dots<T>(parts, out, p, first, 32 * simd + lane);
}
