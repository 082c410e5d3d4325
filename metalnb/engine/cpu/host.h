// The CPU's definitions of the primitives that msl/target/declarations.h declares.
//
// The math functions (mathematics/) are branch-free, so that they are inlined and vectorized with the author's code, and
// give the same results on every machine. Barriers and SIMD-group functions call the runtime (runtime/fibers.c).
#pragma once
#include "$scalars"

#define $pure __attribute__((overloadable, const))
#define $together __attribute__((overloadable, convergent))
#define $equal __attribute__((const))

// ---- Mathematics.
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
#include "mathematics/arcs.h"
#include "mathematics/circular.h"
#include "mathematics/hyperbolic.h"
#include "mathematics/exp_log_pow.h"
#include "mathematics/remainders.h"
#include "mathematics/roots.h"
#pragma clang attribute pop
#ifdef METALNB_VALIDATED
#include "mathematics/validated.h"
#define $math(name) $c_##name
#elif defined(METALNB_COUNTED)
// The counted build (profiled/counted_build.py) passes each function's result through a marker that returns it unchanged.
extern "C" __attribute__((const, nomerge, visibility("hidden"))) metal::uint metalnb_special_u32(metal::uint);
template <class T> inline T $special_result(T x) {
    static_assert(sizeof(T) == 4, "one word");
    return __builtin_bit_cast(T, metalnb_special_u32(__builtin_bit_cast(metal::uint, x)));
}
#define $math(name) [](auto... x) { return $special_result($h_##name(x...)); }
#else
#define $math(name) $h_##name
#endif
#if !defined(METALNB_VALIDATED) && !defined(METALNB_LANES) && !defined(__FMA__) && !defined(__aarch64__)
#define $fused $h_fma
#endif
#ifdef METALNB_COUNTED
inline float $rsqrt_rounded(float x) { return $math(rsqrt_rounded)(x); }
// Called before and after an atomic operation, so that clang does not merge two of them on opposite sides of a branch.
extern "C" __attribute__((nomerge, visibility("hidden"))) void metalnb_apart();
struct $apart {
    inline $apart() { metalnb_apart(); }
    inline ~$apart() { metalnb_apart(); }
};
#define $unmerged(...) ($apart(), __VA_ARGS__)
#else
inline float $rsqrt_rounded(float x) { return $h_rsqrt_rounded(x); }
#endif

// ---- Integers.
// The upper half of the product of two 64-bit integers, from 32-bit products, which every vector unit computes. LLVM 22
// miscompiles vectors of __int128. Source: H. S. Warren, "Hacker's Delight", 2nd ed., 8-2.
inline metal::ulong $mul_high(metal::ulong x, metal::ulong y) {
    const metal::ulong low = 0xffffffff, x0 = x & low, x1 = x >> 32, y0 = y & low, y1 = y >> 32;
    const metal::ulong middle = x1 * y0 + (x0 * y0 >> 32), other = x0 * y1 + (middle & low);
    return x1 * y1 + (middle >> 32) + (other >> 32);
}
inline long $mul_high(long x, long y) {
    return (long)($mul_high((metal::ulong)x, (metal::ulong)y) - (x >> 63 & y) - (y >> 63 & x));
}

// ---- The runtime's functions. A kernel that calls any of them runs as fibers, one per thread of a threadgroup; any
// other kernel runs as a loop over the threads.
extern "C" {
typedef void $resolve(
    const metal::ulong* values, const metal::ulong* operands, metal::ulong* results, metal::uint active);
__attribute__((const, visibility("hidden"))) metal::uint metalnb_lane();
__attribute__((const, visibility("hidden"))) metal::uint metalnb_index();    // the thread's index in its threadgroup
__attribute__((const, visibility("hidden"))) metal::uint metalnb_threads_here();  // the threads of its threadgroup
struct $slot { metal::uint size, alignment, id; };
__attribute__((const, visibility("hidden"))) metal::ulong metalnb_storage(const __global $slot* variable);
__attribute__((convergent, visibility("hidden"))) void metalnb_barrier();
__attribute__((convergent, visibility("hidden"))) metal::ulong metalnb_converge(
    metal::ulong value, metal::ulong operand, $resolve* function);
}
// Output of a kernel (include/$printing); the format is identified by its address.
#define METALNB_PRINTS
struct $printed { metal::ulong value[4]; metal::uint kind, lanes; };  // kind: 0 float, 1 signed, 2 unsigned, 3 pointer
extern "C" __attribute__((visibility("hidden"))) void metalnb_print(
    metal::ulong format, metal::uint count, const $printed* values);
#ifdef METALNB_VALIDATED
extern "C" {
// Makes writes of a SIMD-group's threads visible to each other.
__attribute__((visibility("hidden"))) void metalnb_ordered(
    const metal::ulong* values, const metal::ulong* operands, metal::ulong* results, metal::uint active);
__attribute__((visibility("hidden"))) void metalnb_orders_memory();  // the next barrier orders memory
__attribute__((visibility("hidden"))) void metalnb_fence(metal::uint scope, metal::uint of_shared, metal::uint of_device);
}
#endif
inline metal::uint $simd_lane() { return metalnb_lane(); }

inline metal::size_t $index_here() { return metalnb_index(); }
inline metal::size_t $threads_here() { return metalnb_threads_here(); }

// ---- Threadgroup memory: each variable in use records its size in a section of the object file, which the runtime reads
// to lay the variables out when it loads the kernel (runtime/fibers.c).
#if __APPLE__
#define $SLOTS "__DATA,metalnb"
#elif _WIN32
#define $SLOTS ".slots$b"
#else
#define $SLOTS "metalnb"
#endif
template <int id, metal::size_t size, metal::size_t alignment>
__attribute__((section($SLOTS), visibility("hidden"))) inline const __global $slot $storage = {size, alignment, id};
template <int id, metal::size_t... aligned> struct $threadgroup_storage {
    template <class T> operator __local T&() const {
        return *(__local T*)metalnb_storage(&$storage<id, sizeof(T), $strictest(alignof(T), aligned...)>);
    }
};

// ---- Barriers and fences. Fibers of a threadgroup share one core, so they converge without fences.
enum { $device_scope = 1, $threadgroup_scope = 2, $simdgroup_scope = 3 };
enum { $acquire_release = 0x8, $sequential = 0x10, $threadgroup_memory = 0x100, $device_memory = 0x200 };
inline __attribute__((convergent)) void $threadgroup_barrier(metal::uint semantics) {
#ifdef METALNB_VALIDATED
    if (semantics & ($threadgroup_memory | $device_memory)) metalnb_orders_memory();
#endif
    metalnb_barrier();
}
inline void $memory_fence(metal::uint scope, metal::uint semantics) {
#ifdef METALNB_VALIDATED
    metalnb_fence(scope, semantics & $threadgroup_memory, semantics & $device_memory);
#endif
    if (scope == $device_scope) __atomic_thread_fence(__ATOMIC_SEQ_CST);
    else __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

// ---- SIMD-groups: 32 threads in vector registers (engine/vectorizer), or one fiber per thread.
#ifdef METALNB_LANES
#include "collectives.h"
#else
#include "fiber_collectives.h"
#endif
