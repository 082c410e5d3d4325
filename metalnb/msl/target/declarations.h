// What the MSL headers need from a target, declared for libclang, which reads every cell. Each engine that compiles
// with clang has its own file that defines these names: engine/cpu/host.h, engine/cuda/nvptx.h.
#pragma once
#include "$scalars"

#define $pure __attribute__((overloadable, const))
#define $together __attribute__((overloadable, convergent))
#define $equal __attribute__((const))  // the same result for the same values in one block

// ---- Mathematics.
#define $math(name) $math_##name
#define $MATH1(name) float $math_##name(float) $pure;
#define $MATH2(name) float $math_##name(float, float) $pure;
$MATH1(acos) $MATH1(acosh) $MATH1(asin) $MATH1(asinh) $MATH1(atan) $MATH1(atanh) $MATH1(cos) $MATH1(cosh)
$MATH1(cospi) $MATH1(exp) $MATH1(exp10) $MATH1(exp2) $MATH1(log) $MATH1(log10) $MATH1(log2) $MATH1(rsqrt)
$MATH1(sin) $MATH1(sinh) $MATH1(sinpi) $MATH1(tan) $MATH1(tanh) $MATH1(tanpi)
$MATH2(atan2) $MATH2(fmod) $MATH2(nextafter) $MATH2(pow) $MATH2(powr)
#undef $MATH1
#undef $MATH2
float $math_ldexp(float, int) $pure;
float $rsqrt_rounded(float) $pure;

// ---- Integers: the upper half of a product.
long $mul_high(long, long) $pure;
metal::ulong $mul_high(metal::ulong, metal::ulong) $pure;

// ---- A thread's position.
metal::size_t $threads_here() $pure;  // of the threadgroup
metal::size_t $index_here() $pure;    // in it
metal::uint $simd_lane() $pure;

// ---- Threadgroup memory: every threadgroup variable of a cell is a reference to its own storage, by number.
template <int id, metal::size_t... aligned> struct $threadgroup_storage {
    template <class T> operator __local T&() const { return *(__local T*)0; }
};

// ---- Barriers and fences.
enum { $device_scope = 1, $threadgroup_scope = 2, $simdgroup_scope = 3 };
enum { $acquire_release = 0x8, $sequential = 0x10, $threadgroup_memory = 0x100, $device_memory = 0x200 };
void $threadgroup_barrier(metal::uint semantics) $together;
void $memory_fence(metal::uint scope, metal::uint semantics) $together;
void $simd_barrier(metal::uint semantics) $together;

// ---- SIMD-groups of 32 threads. Only active ones participate.
metal::uint $simd_ballot(bool) $together;
template <class T> T $simd_broadcast(T, metal::uint lane);      // from one lane, the same for all threads
template <class T> T $simd_shuffle(T, metal::uint lane);        // from a lane that each thread chooses
template <class T> T $simd_rotate(T, int distance);             // from `distance` lanes further, wrapping around
template <class T> T $simd_add(T);
template <class T> T $simd_min(T);
template <class T> T $simd_max(T);
template <class T> T $simd_and(T);
template <class T> T $simd_or(T);
template <class T> T $simd_xor(T);
