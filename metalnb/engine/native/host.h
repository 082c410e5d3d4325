// What the MSL headers need of a target, on the host: another file with the names of msl/target/opencl.h.
//
// Mathematics is the C library's, whose float functions are within a few ulp; clang calls them for many threads at once
// where the library has vector forms (glibc's libmvec). Exponentials and logarithms are in logarithms.h. Where threads
// meet, they call the runtime (runtime/fibers.c).
#pragma once
#include "$scalars"

#define $pure __attribute__((overloadable, const))
#define $together __attribute__((overloadable, convergent))
#define $equal __attribute__((const))

// ---- Mathematics.
#define $math(name) $h_##name
// In the checked build what makes an infinity must be seen as a call: watched_code.py.
#ifdef METALNB_CHECKED
#define $LOGARITHMS $MATH1(exp) $MATH1(exp2) $MATH1(log) $MATH1(log10) $MATH1(log2)
#else
#define $LOGARITHMS
#endif
extern "C" {
#define $MATH1(name) __attribute__((const)) float name##f(float);
#define $MATH2(name) __attribute__((const)) float name##f(float, float);
$MATH1(acos) $MATH1(acosh) $MATH1(asin) $MATH1(asinh) $MATH1(atan) $MATH1(atanh) $MATH1(cos) $MATH1(cosh)
$MATH1(sin) $MATH1(sinh) $MATH1(tan) $MATH1(tanh)
$LOGARITHMS
$MATH2(atan2) $MATH2(fmod) $MATH2(nextafter) $MATH2(pow)
#undef $MATH1
#undef $MATH2
__attribute__((const)) float ldexpf(float, int);
__attribute__((const)) double sin(double);
}
#define $MATH1(name) inline float $h_##name(float x) { return name##f(x); }
#define $MATH2(name) inline float $h_##name(float x, float y) { return name##f(x, y); }
$MATH1(acos) $MATH1(acosh) $MATH1(asin) $MATH1(asinh) $MATH1(atan) $MATH1(atanh) $MATH1(cos) $MATH1(cosh)
$MATH1(sin) $MATH1(sinh) $MATH1(tan) $MATH1(tanh)
$LOGARITHMS
$MATH2(atan2) $MATH2(fmod) $MATH2(nextafter) $MATH2(pow)
#undef $MATH1
#undef $MATH2
#undef $LOGARITHMS
#include "logarithms.h"
inline double $sin_of(double x) { return sin(x); }  // of double, out of the way of MSL's names
inline float $h_ldexp(float x, int k) { return ldexpf(x, k); }
inline float $h_rsqrt(float x) { return 1 / __builtin_elementwise_sqrt(x); }
// Of x = n + r with |r| <= 1/2, exactly; a double has room for what multiplying by pi loses.
inline double $sin_of_pi(double r) { return $sin_of(r * double(0x1.921fb54442d18p+1L)); }
inline float $turned(double value, float n) {
    const float halved = n * 0.5f;
    return float(halved == __builtin_elementwise_floor(halved) ? value : -value);
}
inline float $h_sinpi(float x) {
    const float n = __builtin_elementwise_rint(x);
    const float value = $turned($sin_of_pi(x - n), n);
    return value == 0 ? __builtin_elementwise_copysign(0.0f, x) : value;
}
inline float $h_cospi(float x) {
    const float n = __builtin_elementwise_rint(x);
    return $turned($sin_of_pi(0.5 - double(__builtin_elementwise_abs(x - n))), n);
}
inline float $h_tanpi(float x) { return $h_sinpi(x) / $h_cospi(x); }
inline float $h_powr(float x, float y) {
    const float infinity = __builtin_inff();
    const bool undefined = x < 0 || (y == 0 && (x == 0 || x == infinity)) ||
        (x == 1 && __builtin_elementwise_abs(y) == infinity) || x != x || y != y;
    return undefined ? __builtin_nanf("") : powf(__builtin_elementwise_abs(x), y);
}
// Correctly rounded, by way of a wider type.
inline float $rsqrt_rounded(float x) { return float(1 / __builtin_elementwise_sqrt(double(x))); }

// ---- Integers.
inline long $mul_high(long x, long y) { return (long)(((__int128)x * y) >> 64); }
inline metal::ulong $mul_high(metal::ulong x, metal::ulong y) {
    return (metal::ulong)(((unsigned __int128)x * y) >> 64);
}

// ---- What the runtime gives. A kernel that asks for any of these runs as fibers, one for each thread of a threadgroup;
// any other as a loop over its threads.
extern "C" {
typedef void $resolve(const metal::ulong* given, const metal::ulong* more, metal::ulong* results, metal::uint active);
__attribute__((const, visibility("hidden"))) metal::uint metalnb_lane();
__attribute__((const, visibility("hidden"))) metal::uint metalnb_index();    // in the threadgroup
__attribute__((const, visibility("hidden"))) metal::uint metalnb_threads_here();  // of the threadgroup
struct $slot { metal::uint size, alignment, id; };
__attribute__((const, visibility("hidden"))) metal::ulong metalnb_storage(const __global $slot* variable);
__attribute__((convergent, visibility("hidden"))) void metalnb_barrier();
__attribute__((convergent, visibility("hidden"))) metal::ulong metalnb_meet(
    metal::ulong given, metal::ulong more, $resolve* how);
}
// What a kernel prints (include/$printing), by the format's address.
#define METALNB_PRINTS
struct $printed { metal::ulong value[4]; metal::uint kind, lanes; };  // kind: 0 float, 1 signed, 2 unsigned, 3 pointer
extern "C" __attribute__((visibility("hidden"))) void metalnb_print(
    metal::ulong format, metal::uint count, const $printed* given);
#ifdef METALNB_CHECKED
extern "C" {
// A SIMD-group's threads see each other's memory.
__attribute__((visibility("hidden"))) void metalnb_ordered(
    const metal::ulong* given, const metal::ulong* more, metal::ulong* results, metal::uint active);
__attribute__((visibility("hidden"))) void metalnb_fence(metal::uint scope, metal::uint of_shared, metal::uint of_device);
}
#endif
inline metal::uint $simd_lane() { return metalnb_lane(); }

// For `entry_point.h`, which declares what OpenCL's entry points use; no entry point here does.
#define $INDEX(name) metal::size_t name(metal::uint) $pure;
$INDEX($get_global_id) $INDEX($get_local_id) $INDEX($get_group_id) $INDEX($get_global_size)
$INDEX($get_enqueued_local_size) $INDEX($get_num_groups)
#undef $INDEX
metal::uint $get_sub_group_local_id() $pure;
metal::uint $get_sub_group_id() $pure;
// Of a threadgroup that is taken for one row.
inline metal::size_t $get_local_linear_id() { return metalnb_index(); }
inline metal::size_t $get_local_size(metal::uint axis) { return axis ? 1 : metalnb_threads_here(); }

// ---- Threadgroup memory: each variable that a kernel uses leaves its size in a section of the object file, from which
// the runtime lays them out when the kernel is loaded (runtime/fibers.c).
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

// ---- Barriers and fences. Fibers of a threadgroup share one core, so that they meet without fences.
enum { $device_scope = 1, $threadgroup_scope = 2, $simdgroup_scope = 3 };
enum { $acquire_release = 0x8, $sequential = 0x10, $threadgroup_memory = 0x100, $device_memory = 0x200 };
inline __attribute__((convergent)) void __spirv_ControlBarrier(metal::uint, metal::uint, metal::uint) {
    metalnb_barrier();
}
inline void __spirv_MemoryBarrier(metal::uint scope, metal::uint semantics) {
#ifdef METALNB_CHECKED
    metalnb_fence(scope, semantics & $threadgroup_memory, semantics & $device_memory);
#endif
    if (scope == $device_scope) __atomic_thread_fence(__ATOMIC_SEQ_CST);
    else __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

// ---- SIMD-groups. Every lane hands in a value; when all that take part have come, one of them computes every result.
#define $each_active(i, active) \
    for (metal::uint $left = active, i; $left && (i = __builtin_ctz($left), true); $left &= $left - 1)
template <class T> inline metal::ulong $widened(T x) {
    if constexpr (sizeof(T) == 8) return __builtin_bit_cast(metal::ulong, x);
    else return __builtin_bit_cast(metal::uint, x);
}
template <class T> inline T $narrowed(metal::ulong bits) {
    if constexpr (sizeof(T) == 8) return __builtin_bit_cast(T, bits);
    else return __builtin_bit_cast(T, metal::uint(bits));
}
#define $RULE(name) \
    inline void $by_##name(const metal::ulong* given, const metal::ulong* more, metal::ulong* results, metal::uint active)
$RULE(nothing) {}
$RULE(ballot) {
    metal::uint votes = 0;
    $each_active(i, active) votes |= metal::uint(given[i] != 0) << i;
    $each_active(i, active) results[i] = votes;
}
/// From a lane; one that takes no part gives its caller's own value.
$RULE(shuffle) { $each_active(i, active) results[i] = given[more[i] < 32 && active >> more[i] & 1 ? more[i] : i]; }
/// From `more` lanes on, around the 32.
$RULE(rotate) {
    $each_active(i, active) {
        const metal::uint lane = (i + metal::uint(more[i])) & 31;
        results[i] = given[active >> lane & 1 ? lane : i];
    }
}
inline __attribute__((convergent)) void $simd_barrier(metal::uint) {
#ifdef METALNB_CHECKED
    metalnb_meet(0, 0, metalnb_ordered);
#else
    metalnb_meet(0, 0, $by_nothing);
#endif
}
inline __attribute__((convergent)) metal::uint $simd_ballot(bool x) { return metalnb_meet(x, 0, $by_ballot); }
template <class T> __attribute__((convergent)) inline T $simd_shuffle(T x, metal::uint lane) {
    return $narrowed<T>(metalnb_meet($widened(x), lane, $by_shuffle));
}
template <class T> __attribute__((convergent)) inline T $simd_broadcast(T x, metal::uint lane) {
    return $simd_shuffle(x, lane);
}
template <class T> __attribute__((convergent)) inline T $simd_rotate(T x, int distance) {
    return $narrowed<T>(metalnb_meet($widened(x), metal::ulong(long(distance)), $by_rotate));
}
#define $REDUCE(name, ...) \
    template <class T> $RULE(name) { \
        T a = $narrowed<T>(given[__builtin_ctz(active)]); \
        $each_active(i, active & (active - 1)) { const T b = $narrowed<T>(given[i]); a = __VA_ARGS__; } \
        $each_active(i, active) results[i] = $widened(a); \
    } \
    template <class T> __attribute__((convergent)) inline T $simd_##name(T x) { \
        return $narrowed<T>(metalnb_meet($widened(x), 0, $by_##name<T>)); \
    }
$REDUCE(add, a + b) $REDUCE(min, __builtin_elementwise_min(a, b)) $REDUCE(max, __builtin_elementwise_max(a, b))
$REDUCE(and, a & b) $REDUCE(or, a | b) $REDUCE(xor, a ^ b)
#undef $REDUCE
#undef $RULE
#undef $each_active

// The end of a loop's turn (turns.py). Its line is beyond all others': in a macro, where every place is the macro's, it
// comes last.
#line 1000000
inline __attribute__((convergent)) void $turned() { metalnb_meet(0, 0, $by_nothing); }
