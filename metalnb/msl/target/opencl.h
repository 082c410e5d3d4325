// What the MSL headers need of a target, on an OpenCL CPU device. Another target is another file with these names.
//
// The names that begin with __spirv_ are known to the SPIR-V back end, and no cell can take them.
#pragma once
#include "$scalars"

#define $pure __attribute__((overloadable, const))
#define $together __attribute__((overloadable, convergent))
#define $equal __attribute__((const))  // of the same values, in one block, the same result

// ---- Mathematics. OpenCL's own functions: accurate to a few ulp, and the device vectorises them over threads. (Its
// native_ and half_ kin are no faster there and miss even the bounds of MSL's fast math: exp by 3,800 ulp.)
#define $math(name) __spirv_ocl_##name
#define $MATH1(name) float __spirv_ocl_##name(float) $pure;
#define $MATH2(name) float __spirv_ocl_##name(float, float) $pure;
$MATH1(acos) $MATH1(acosh) $MATH1(asin) $MATH1(asinh) $MATH1(atan) $MATH1(atanh) $MATH1(cos) $MATH1(cosh)
$MATH1(cospi) $MATH1(exp) $MATH1(exp10) $MATH1(exp2) $MATH1(log) $MATH1(log10) $MATH1(log2) $MATH1(rsqrt)
$MATH1(sin) $MATH1(sinh) $MATH1(sinpi) $MATH1(tan) $MATH1(tanh) $MATH1(tanpi)
$MATH2(atan2) $MATH2(fmod) $MATH2(nextafter) $MATH2(pow) $MATH2(powr)
#undef $MATH1
#undef $MATH2
float __spirv_ocl_ldexp(float, int) $pure;

// Correctly rounded, by way of a wider type: tried on every float of two binades, which stand for all.
inline float $rsqrt_rounded(float x) { return float(1 / __builtin_elementwise_sqrt(double(x))); }

// ---- Integers.
metal::ulong __spirv_ocl_u_mul_hi(metal::ulong, metal::ulong) $pure;
// Of two constants, where a branch hangs on it, the device's compiler takes the wrong side: clang works them out.
inline metal::ulong $mul_high(metal::ulong x, metal::ulong y) {
    if (!__builtin_constant_p(x) || !__builtin_constant_p(y)) return __spirv_ocl_u_mul_hi(x, y);
    const metal::ulong a = x >> 32, b = x & 0xffffffff, c = y >> 32, d = y & 0xffffffff;
    const metal::ulong left = a * d + (b * d >> 32), right = b * c + (left & 0xffffffff);
    return a * c + (left >> 32) + (right >> 32);
}
// Made of the unsigned one. The device's own for signed integers is six times slower, and where its compiler finds out
// that no thread comes to it, the whole kernel does nothing.
inline long $mul_high(long x, long y) {
    const metal::ulong high = $mul_high(metal::ulong(x), metal::ulong(y));
    return long(high - (metal::ulong(x >> 63) & metal::ulong(y)) - (metal::ulong(y >> 63) & metal::ulong(x)));
}

// ---- Where a thread stands.
// Under names of ours: a cell may well have a get_global_id of its own.
#define $INDEX(name, mangled) metal::size_t $##name(metal::uint) __asm__(mangled) __attribute__((const));
$INDEX(get_global_id, "_Z13get_global_idj") $INDEX(get_local_id, "_Z12get_local_idj")
$INDEX(get_group_id, "_Z12get_group_idj") $INDEX(get_global_size, "_Z15get_global_sizej")
$INDEX(get_local_size, "_Z14get_local_sizej") $INDEX(get_enqueued_local_size, "_Z23get_enqueued_local_sizej")
$INDEX(get_num_groups, "_Z14get_num_groupsj")
#undef $INDEX
metal::size_t $get_local_linear_id() __asm__("_Z19get_local_linear_idv") __attribute__((const));
metal::uint $get_sub_group_local_id() __asm__("_Z22get_sub_group_local_idv") __attribute__((const));
metal::uint $get_sub_group_id() __asm__("_Z16get_sub_group_idv") __attribute__((const));
inline metal::uint $simd_lane() { return $get_sub_group_local_id(); }

// ---- Threadgroup memory. C++ for OpenCL lets a `__local` variable stand only in a kernel, or in a lambda at namespace
// scope: so every threadgroup variable of a cell is a reference to storage of its own, by number.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wreturn-stack-address"
template <int id, metal::size_t size, metal::size_t alignment> constexpr auto $storage = [] {
    __local __attribute__((aligned(alignment))) char bytes[size];
    return (__local void*)bytes;
};
template <int id, metal::size_t... aligned> struct $threadgroup_storage {
    template <class T> operator __local T&() const {
        return *(__local T*)$storage<id, sizeof(T), $strictest(alignof(T), aligned...)>();
    }
};
#pragma clang diagnostic pop

// ---- Barriers: SPIR-V's scopes and memory semantics.
void __spirv_ControlBarrier(metal::uint execution, metal::uint memory, metal::uint semantics) $together;
void __spirv_MemoryBarrier(metal::uint memory, metal::uint semantics) $together;
enum { $device_scope = 1, $threadgroup_scope = 2, $simdgroup_scope = 3 };
enum { $acquire_release = 0x8, $sequential = 0x10, $threadgroup_memory = 0x100, $device_memory = 0x200 };

// ---- SIMD-groups: sub-groups of 32. Only active threads take part, so that these are right in branches and loops.
#define $SHUFFLE(T) \
    T sub_group_non_uniform_broadcast(T, metal::uint) $together $equal; T sub_group_rotate(T, int) $together $equal;
#define $REDUCE(T, op) T sub_group_non_uniform_reduce_##op(T) $together;
#define $NUMBER(T) $SHUFFLE(T) $REDUCE(T, add) $REDUCE(T, min) $REDUCE(T, max)
#define $INTEGER(T) $NUMBER(T) $REDUCE(T, and) $REDUCE(T, or) $REDUCE(T, xor)
$NUMBER(float) $INTEGER(int) $INTEGER(metal::uint) $INTEGER(long) $INTEGER(metal::ulong)
#undef $INTEGER
#undef $NUMBER
#undef $REDUCE
#undef $SHUFFLE
typedef metal::uint $ballot __attribute__((ext_vector_type(4)));
$ballot sub_group_ballot(int) $together;

/// A SIMD-group's threads meet, and see each other's memory. Not a control barrier: the device takes that for one of the
/// whole threadgroup, and drops every thread's work when a SIMD-group has returned before it. They meet in a ballot.
inline __attribute__((convergent)) void $simd_barrier(metal::uint semantics) {
    sub_group_ballot(true);
    if (semantics) __spirv_MemoryBarrier($simdgroup_scope, semantics);  // one mfence for each thread, some 25 ns
}
inline metal::uint $simd_ballot(bool x) { return sub_group_ballot(x).x; }
/// From one lane, the same for all threads; far cheaper than a shuffle.
template <class T> T $simd_broadcast(T x, metal::uint lane) { return sub_group_non_uniform_broadcast(x, lane); }
/// From a lane of each thread's own choice: every lane in turn, which costs a tenth of the device's own shuffle.
template <class T> T $simd_shuffle(T x, metal::uint lane) {
    if (__builtin_constant_p(lane)) return $simd_broadcast(x, lane);
    T result = x;
#pragma unroll
    for (metal::uint i = 0; i < 32; ++i) {
        const T there = $simd_broadcast(x, i);
        result = lane == i ? there : result;
    }
    return result;
}
/// From `distance` lanes on, around the active end, the same distance for all threads; far cheaper than a shuffle.
template <class T> T $simd_rotate(T x, int distance) { return sub_group_rotate(x, distance); }
template <class T> T $simd_add(T x) { return sub_group_non_uniform_reduce_add(x); }
template <class T> T $simd_min(T x) { return sub_group_non_uniform_reduce_min(x); }
template <class T> T $simd_max(T x) { return sub_group_non_uniform_reduce_max(x); }
template <class T> T $simd_and(T x) { return sub_group_non_uniform_reduce_and(x); }
template <class T> T $simd_or(T x) { return sub_group_non_uniform_reduce_or(x); }
template <class T> T $simd_xor(T x) { return sub_group_non_uniform_reduce_xor(x); }

// ---- Memory that is asked for before its turn: the line of an address, which need not be anybody's. For the library.
void $prefetch(const __global float*, metal::size_t) __asm__("_Z20__spirv_ocl_prefetchPU3AS1Kfm");
inline void $ahead(const device void* line) { $prefetch((const __global float*)line, 1); }
