// Calls that the vectorizer replaces (engine/vectorizer): each thread's position, and SIMD functions of all active
// threads, as calls that no pass of clang's may move to other active threads. Part of host.h.
#pragma once

extern "C" {
// A thread's position. These change from lane to lane in a way that the vectorizer knows.
#define $STANDS(name) __attribute__((const, visibility("hidden"))) metal::uint metalnb_##name();
$STANDS(grid_x) $STANDS(grid_y) $STANDS(grid_z) $STANDS(group_x) $STANDS(group_y) $STANDS(group_z)
$STANDS(index) $STANDS(simdgroup)
#undef $STANDS
// Returns false, but clang must not know that: the call keeps a path back into a loop (engine/clang/loop_exits.py). It
// is not `const`, because clang would then know the result after the first loop.
__attribute__((nothrow, visibility("hidden"))) bool metalnb_never();

#define $SIMD_FUNCTION __attribute__((convergent, nomerge, const, visibility("hidden")))
#define $ON(suffix, T) $SIMD_FUNCTION T metalnb_add_##suffix(T); $SIMD_FUNCTION T metalnb_min_##suffix(T); \
    $SIMD_FUNCTION T metalnb_max_##suffix(T);
$ON(f32, float) $ON(f16, half) $ON(i32, int) $ON(u32, metal::uint) $ON(i16, short) $ON(u16, metal::ushort)
$ON(i8, signed char) $ON(u8, metal::uchar) $ON(i64, long) $ON(u64, metal::ulong)
#undef $ON
#define $ON(suffix, T) $SIMD_FUNCTION T metalnb_and_##suffix(T); $SIMD_FUNCTION T metalnb_or_##suffix(T); \
    $SIMD_FUNCTION T metalnb_xor_##suffix(T); $SIMD_FUNCTION T metalnb_shuffle_##suffix(T, metal::uint lane);
$ON(u32, metal::uint) $ON(u64, metal::ulong)
#undef $ON
$SIMD_FUNCTION metal::uint metalnb_ballot(bool);
// The first or the second of this thread's two elements of sum + a b, which are SIMD-group matrices.
$SIMD_FUNCTION float metalnb_multiply_matrices(
    metal::uint element, float a0, float a1, float b0, float b1, float sum0, float sum1);
__attribute__((convergent, nomerge, visibility("hidden"))) void metalnb_simd_barrier();
}
inline bool $never() { return metalnb_never(); }
__attribute__((convergent)) inline void $simd_barrier(metal::uint) { metalnb_simd_barrier(); }
__attribute__((convergent)) inline metal::uint $simd_ballot(bool x) { return metalnb_ballot(x); }

/// Convert a value that is no wider than a word to its bits, and back.
template <class T> inline metal::uint $word_of(T x) {
    if constexpr (sizeof(T) == 4) return __builtin_bit_cast(metal::uint, x);
    else if constexpr (sizeof(T) == 2) return __builtin_bit_cast(metal::ushort, x);
    else return __builtin_bit_cast(metal::uchar, x);
}
template <class T> inline T $of_word(metal::uint bits) {
    if constexpr (sizeof(T) == 4) return __builtin_bit_cast(T, bits);
    else if constexpr (sizeof(T) == 2) return __builtin_bit_cast(T, (metal::ushort)bits);
    else return __builtin_bit_cast(T, (metal::uchar)bits);
}
/// The value of a lane; for an inactive lane, the caller's own value.
template <class T> __attribute__((convergent)) inline T $simd_shuffle(T x, metal::uint lane) {
    if constexpr (sizeof(T) == 8)
        return __builtin_bit_cast(T, metalnb_shuffle_u64(__builtin_bit_cast(metal::ulong, x), lane));
    else return $of_word<T>(metalnb_shuffle_u32($word_of(x), lane));
}
template <class T> __attribute__((convergent)) inline T $simd_broadcast(T x, metal::uint lane) {
    return $simd_shuffle(x, lane);
}
/// The value of the lane `distance` lanes further, wrapping around at 32.
template <class T> __attribute__((convergent)) inline T $simd_rotate(T x, int distance) {
    return $simd_shuffle(x, (metalnb_lane() + metal::uint(distance)) & 31);
}
#ifndef METALNB_COUNTED  // in the counted build, a product counts as the operations of its lanes
#define $MULTIPLIES_MATRICES 1
#define $PAIRS_IN_MEMORY true
__attribute__((convergent)) inline float $simd_multiply_matrices(
    metal::uint element, float a0, float a1, float b0, float b1, float sum0, float sum1) {
    return metalnb_multiply_matrices(element, a0, a1, b0, b1, sum0, sum1);
}
#endif
template <class T> struct $is_fraction { enum { value = 0 }; };
template <> struct $is_fraction<float> { enum { value = 1 }; };
template <> struct $is_fraction<half> { enum { value = 1 }; };
#define $REDUCE(name) \
    template <class T> __attribute__((convergent)) inline T $simd_##name(T x) { \
        constexpr bool is_signed = T(-1) < T(0); \
        if constexpr ($is_fraction<T>::value && sizeof(T) == 4) return metalnb_##name##_f32(x); \
        else if constexpr ($is_fraction<T>::value) return metalnb_##name##_f16(x); \
        else if constexpr (sizeof(T) == 8) return is_signed ? T(metalnb_##name##_i64(x)) : T(metalnb_##name##_u64(x)); \
        else if constexpr (sizeof(T) == 4) return is_signed ? T(metalnb_##name##_i32(x)) : T(metalnb_##name##_u32(x)); \
        else if constexpr (sizeof(T) == 2) return is_signed ? T(metalnb_##name##_i16(x)) : T(metalnb_##name##_u16(x)); \
        else return is_signed ? T(metalnb_##name##_i8(x)) : T(metalnb_##name##_u8(x)); \
    }
$REDUCE(add) $REDUCE(min) $REDUCE(max)
#undef $REDUCE
#define $REDUCE(name) \
    template <class T> __attribute__((convergent)) inline T $simd_##name(T x) { \
        if constexpr (sizeof(T) == 8) return T(metalnb_##name##_u64(metal::ulong(x))); \
        else return T(metalnb_##name##_u32(metal::uint(x))); \
    }
$REDUCE(and) $REDUCE(or) $REDUCE(xor)
#undef $REDUCE

// In the counted build (profiled/counted_build.py) the result of each function passes through a mark, which returns it
// unchanged. If clang drops a call, it drops the mark too; if it unrolls a loop, each iteration has its own mark.
#ifdef METALNB_COUNTED
extern "C" {
$SIMD_FUNCTION metal::uint metalnb_function_u32(metal::uint);
$SIMD_FUNCTION metal::ulong metalnb_function_u64(metal::ulong);
}
template <class T> __attribute__((convergent)) inline T $counted_result(T x) {
    if constexpr (sizeof(T) == 8)
        return __builtin_bit_cast(T, metalnb_function_u64(__builtin_bit_cast(metal::ulong, x)));
    else return $of_word<T>(metalnb_function_u32($word_of(x)));
}
#define $collective_result(T, ...) $counted_result<T>(T(__VA_ARGS__))
#endif
#undef $SIMD_FUNCTION
