// Counter-based random numbers: a block of four words is a function of a key and the block's number, so any thread can
// compute any block independently, and a seed produces the same numbers on every engine. Integers and uniforms use only
// exact arithmetic; normals (Box and Muller, 1958) use only operations whose rounding IEEE 754 defines: ×, fma, sqrt,
// with polynomials for log, sin and cos. Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2,
// 3", 2011 (Philox4x32-10); Lemire, "Fast Random Integer Generation in an Interval", 2019.
#include <metalnb/lanes.h>
#include <metalnb/storage.h>

constant constexpr uint ROWS = 32;  // of 32 blocks each: the output of a threadgroup, which is one SIMD-group

struct Stream {
    uint2 key;
    ulong block;  // number of the first block
    ulong count;  // elements to generate
};

inline uint4 philox(uint4 counter, uint2 key) {
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const uint high0 = mulhi(counter.x, 0xD2511F53u), low0 = counter.x * 0xD2511F53u;
        const uint high1 = mulhi(counter.z, 0xCD9E8D57u), low1 = counter.z * 0xCD9E8D57u;
        counter = uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key += uint2(0x9E3779B9u, 0xBB67AE85u);  // the fractions of the golden ratio and of the root of 3
    }
    return counter;
}

// Block `number` of a key's stream. `attempt` distinguishes further blocks for the same number.
inline uint4 block_of(uint2 key, ulong number, uint attempt) {
    return philox(uint4(uint(number), uint(number >> 32), attempt, 0), key);
}

// ---- Conversions of a block to four elements, or to two elements of 64 bits.
// Uniform on [low, low + width): as many random bits as a significand has.
template <typename T>
struct Uniform {
    using Parameters = float2;  // low, width
    constant static constexpr uint BITS = sizeof(T) == 4 ? 24 : 11;
    static float4 make(uint4 words, uint2, ulong, float2 range) {
        return fma(float4(words >> (32 - BITS)) * (1.0f / float(1u << BITS)), float4(range.y), float4(range.x));
    }
};
template <>
struct Uniform<bfloat16> {
    using Parameters = float2;
    static float4 make(uint4 words, uint2, ulong, float2 range) {
        return fma(float4(words >> 24) * 0x1p-8f, float4(range.y), float4(range.x));
    }
};

// log(u) for u close to (w + 1/2) / 2^32, to 2 ulp.
inline float log_of_fraction(uint w) {
    w |= 1;
    const uint zeros = clz(w);
    float m = float((w << zeros) >> 8) * 0x1p-23f;  // 1 <= m < 2, exact
    const bool big = m > 1.41421354f;
    m = big ? m * 0.5f : m;
    const float e = big ? -float(zeros) : -float(zeros + 1);
    const float x = m - 1.0f;
    float p = 0.06980702f;
    p = fma(p, x, -0.114945464f);
    p = fma(p, x, 0.11689071f);
    p = fma(p, x, -0.124240376f);
    p = fma(p, x, 0.14248551f);
    p = fma(p, x, -0.1666785f);
    p = fma(p, x, 0.2000073f);
    p = fma(p, x, -0.24999997f);
    p = fma(p, x, 0.3333333f);
    const float xx = x * x;
    const float log_m = fma(xx * x, p, fma(-0.5f, xx, x));
    return fma(e, 0.693147182f, log_m);
}

// cos and sin of 2π w / 2^32: the top two bits are the quadrant, and polynomials do the rest.
inline float2 point_on_circle(uint w) {
    const float t = float(int(w >> 6 & 0xFFFFFF) - 0x800000) * 0x1p-24f;  // of a quarter: -1/2 <= t < 1/2, exact
    const float tt = t * t;
    float s = fma(0.00015820631f, tt, -0.0046812664f);
    s = fma(s, tt, 0.07969258f);
    s = fma(s, tt, -0.6459641f);
    s = fma(s, tt, 1.5707964f) * t;
    float c = fma(0.00090362807f, tt, -0.02086007f);
    c = fma(c, tt, 0.2536692f);
    c = fma(c, tt, -1.2337005f);
    c = fma(c, tt, 1.0f);
    const uint quadrant = w >> 30;
    const float x = quadrant & 1 ? s : c;
    const float y = quadrant & 1 ? c : s;
    return float2(quadrant == 1 || quadrant == 2 ? -x : x, quadrant & 2 ? -y : y);
}

// Normal with mean and standard deviation.
struct Normal {
    using Parameters = float2;
    static float4 make(uint4 words, uint2, ulong, float2 moments) {
        const float2 r(precise::sqrt(-2.0f * log_of_fraction(words.x)), precise::sqrt(-2.0f * log_of_fraction(words.z)));
        const float2 a = point_on_circle(words.y), b = point_on_circle(words.w);
        return fma(float4(r.x * a, r.y * b), float4(moments.y), float4(moments.x));
    }
};

// Uniform integers on [low, low + range): the upper half of word × range is the number. A lower half below 2^32 mod
// range would bias it, so another word is drawn. A range of 0 means all words.
struct Interval {
    ulong low;
    ulong range;
    ulong excess;  // 2^32 mod range, or 2^64 mod range
};
struct Integer {
    using Parameters = Interval;
    static uint4 make(uint4 words, uint2 key, ulong number, Interval in) {
        if (in.range != 0) {
            const uint range = uint(in.range);
            const uint excess = uint(in.excess);
            uint4 drawn = words;
            for (uint attempt = 1; any(drawn * range < excess); ++attempt) {
                drawn = select(drawn, block_of(key, number, attempt), drawn * range < excess);
            }
            words = mulhi(drawn, uint4(range));
        }
        return words + uint(in.low);
    }
};
struct Integer64 {
    static ulong2 make(uint4 words, uint2 key, ulong number, Interval in) {
        ulong2 drawn(as_type<ulong>(words.xy), as_type<ulong>(words.zw));
        if (in.range != 0) {
            for (uint attempt = 1; any(drawn * in.range < in.excess); ++attempt) {
                const uint4 more = block_of(key, number, attempt);
                const ulong2 again(as_type<ulong>(more.xy), as_type<ulong>(more.zw));
                drawn = select(drawn, again, drawn * in.range < in.excess);
            }
            drawn = mulhi(drawn, ulong2(in.range));
        }
        return drawn + in.low;
    }
};

// ---- The kernels. Each row of 32 blocks fills 128 elements: word w of lane l's block is element 32 w + l. So a
// SIMD-group writes 32 adjacent elements at a time. The grid is a multiple of SIMD-groups.
template <typename T, typename Make>
kernel void random_fill(device memory_of<T>* out [[buffer(0)]],
                        constant Stream& stream [[buffer(1)]],
                        constant typename Make::Parameters& parameters [[buffer(2)]],
                        uint group [[threadgroup_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
    for (uint row = 0; row < ROWS; ++row) {
        const ulong first = 4ul * SIMD * (ulong(group) * ROWS + row);
        if (first >= stream.count) break;
        const ulong number = stream.block + first / 4 + lane;
        const auto numbers = Make::make(block_of(stream.key, number, 0), stream.key, number, parameters);
        device memory_of<T>* target = out + first + lane;
        if (first + 4 * SIMD <= stream.count) {
            for (uint w = 0; w < 4; ++w) target[w * SIMD] = storage<T>::store(numbers[w]);
        } else {
            for (uint w = 0; w < 4; ++w) {
                if (first + w * SIMD + lane < stream.count) target[w * SIMD] = storage<T>::store(numbers[w]);
            }
        }
    }
}

// The same for elements that take two words.
kernel void random_integers_64(device ulong* out [[buffer(0)]],
                               constant Stream& stream [[buffer(1)]],
                               constant Interval& interval [[buffer(2)]],
                               uint group [[threadgroup_position_in_grid]],
                               uint lane [[thread_index_in_simdgroup]]) {
    for (uint row = 0; row < ROWS; ++row) {
        const ulong first = 2ul * SIMD * (ulong(group) * ROWS + row);
        if (first >= stream.count) break;
        const ulong number = stream.block + first / 2 + lane;
        const ulong2 numbers = Integer64::make(block_of(stream.key, number, 0), stream.key, number, interval);
        if (first + lane < stream.count) out[first + lane] = numbers.x;
        if (first + SIMD + lane < stream.count) out[first + SIMD + lane] = numbers.y;
    }
}

#define MAKE(name, ...) template [[host_name(#name)]] [[kernel]] decltype(random_fill<__VA_ARGS__>) random_fill<__VA_ARGS__>;
MAKE(random_uniform_float32, float, Uniform<float>)
MAKE(random_uniform_float16, half, Uniform<half>)
MAKE(random_uniform_bfloat16, bfloat16, Uniform<bfloat16>)
MAKE(random_normal_float32, float, Normal)
MAKE(random_normal_float16, half, Normal)
MAKE(random_normal_bfloat16, bfloat16, Normal)
MAKE(random_integers_8, uchar, Integer)
MAKE(random_integers_16, ushort, Integer)
MAKE(random_integers_32, uint, Integer)
#undef MAKE
