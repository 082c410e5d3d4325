// An NVIDIA GPU as a target of the MSL headers: defines what msl/target/declarations.h declares.
#pragma once
#include "$scalars"
#define $TARGET "nvptx.h"

#define $pure __attribute__((overloadable, const))
#define $together __attribute__((overloadable, convergent))
#define $any_lanes inline __attribute__((convergent))
#define $register(name) __nvvm_read_ptx_sreg_##name()

// ---- Values whose range the analysis of a checked kernel (engine/robust) knows by the function's name: cuda_entry.py.
// In the second compilation step these functions return their argument.
#ifdef $CHECKED
#define $known(name, x) metalnb_##name(x)
#define $KNOWN(name) extern "C" unsigned metalnb_##name(unsigned) __attribute__((const));
$KNOWN(grid_x) $KNOWN(grid_y) $KNOWN(grid_z) $KNOWN(local_x) $KNOWN(local_y) $KNOWN(local_z)
$KNOWN(group_x) $KNOWN(group_y) $KNOWN(group_z) $KNOWN(index) $KNOWN(simdgroup)
#undef $KNOWN
#else
#define $known(name, x) (x)
#endif

// ---- Mathematics: libdevice, accurate to a few ulp, and linked as bitcode, so that the functions used are inlined.
#define $math(name) $nv_##name
#define $MATH1(name) \
    extern "C" float __nv_##name##f(float) __attribute__((const)); \
    inline float $nv_##name(float x) { return __nv_##name##f(x); }
#define $MATH2(name) \
    extern "C" float __nv_##name##f(float, float) __attribute__((const)); \
    inline float $nv_##name(float x, float y) { return __nv_##name##f(x, y); }
$MATH1(acos) $MATH1(acosh) $MATH1(asin) $MATH1(asinh) $MATH1(atan) $MATH1(atanh) $MATH1(cos) $MATH1(cosh)
$MATH1(cospi) $MATH1(exp) $MATH1(exp10) $MATH1(exp2) $MATH1(log) $MATH1(log10) $MATH1(log2) $MATH1(rsqrt)
$MATH1(sin) $MATH1(sinh) $MATH1(sinpi) $MATH1(tan) $MATH1(tanh)
$MATH2(atan2) $MATH2(fmod) $MATH2(nextafter) $MATH2(pow)
#undef $MATH1
#undef $MATH2
extern "C" float __nv_ldexpf(float, int) __attribute__((const));
inline float $nv_ldexp(float x, int k) { return __nv_ldexpf(x, k); }
/// Its zeros and poles have the signs of IEEE 754's tanPi, which a plain quotient would not give.
inline float $nv_tanpi(float x) { return __nv_sinpif(x) / __nv_cospif(x); }
/// exp(y log x), which is NaN where that formula is, unlike pow (IEEE 754, 9.2.1).
inline float $nv_powr(float x, float y) {
    const float infinity = __builtin_inff(), result = __nv_powf(x, y);
    const bool undefined = x < 0 || x != x || y != y || (x == 0 && y == 0) || (x == infinity && y == 0) ||
        (x == 1 && __builtin_elementwise_abs(y) == infinity);
    return undefined ? __builtin_nanf("") : x == 0 ? __builtin_elementwise_abs(result) : result;
}
inline float $rsqrt_rounded(float x) { return float(1 / __builtin_elementwise_sqrt(double(x))); }

// ---- Integers.
inline long $mul_high(long x, long y) { return __nvvm_mulhi_ll(x, y); }
inline metal::ulong $mul_high(metal::ulong x, metal::ulong y) { return __nvvm_mulhi_ull(x, y); }

// ---- A thread's position in a block; the entry point's version is in grid_position.h.
inline metal::size_t $index_here() {
    return ($register(tid_z) * $register(ntid_y) + $register(tid_y)) * $register(ntid_x) + $register(tid_x);
}
inline metal::size_t $threads_here() { return $register(ntid_x) * $register(ntid_y) * $register(ntid_z); }
inline metal::uint $simd_lane() { return $register(laneid); }
inline metal::uint $simd_group() { return $known(simdgroup, metal::uint($index_here()) / 32); }

// ---- Threadgroup memory. C++ for OpenCL allows a `__local` variable only in a kernel, or in a lambda at namespace
// scope, so every threadgroup variable of a cell is a reference to its own storage, by number. A parameter's storage
// follows the kernel's variables, at an offset passed by the launch. Only assembly can name memory whose size a launch
// sets.
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
__asm__(".extern .shared .align 16 .b8 metalnb_dynamic[];");
#ifdef $CHECKED
extern "C" __local void* metalnb_shared(metal::uint offset) __attribute__((const));
#define $dynamic_storage metalnb_shared
#else
inline __local void* $dynamic_storage(metal::uint offset) {
    __local char* all;
    asm("mov.u64 %0, metalnb_dynamic;" : "=l"(all));
    return all + offset;
}
#endif

// ---- Barriers. A threadgroup barrier orders all memory for the threadgroup's threads, a SIMD-group barrier for the
// SIMD-group's.
enum { $device_scope = 1, $threadgroup_scope = 2, $simdgroup_scope = 3 };
enum { $acquire_release = 0x8, $sequential = 0x10, $threadgroup_memory = 0x100, $device_memory = 0x200 };
$any_lanes void $threadgroup_barrier(metal::uint) { __nvvm_bar_sync(0); }
inline void $memory_fence(metal::uint scope, metal::uint) {
    if (scope == $device_scope) __nvvm_membar_gl();
    else __nvvm_membar_cta();
}
$any_lanes void $simd_barrier(metal::uint) { __nvvm_bar_warp_sync(__nvvm_activemask()); }

// ---- SIMD-groups: warps. Only active threads participate: each operation covers the lanes that execute it together.
#define $CHEAP_SHUFFLES 1  // any lane's value in one instruction
$any_lanes metal::uint $simd_ballot(bool x) { return __nvvm_vote_ballot_sync(__nvvm_activemask(), x); }

template <class T> $any_lanes T $shuffle_among(metal::uint lanes, T x, metal::uint from) {
    if constexpr (sizeof(T) == 8) {
        const metal::ulong bits = __builtin_bit_cast(metal::ulong, x);
        const metal::uint low = __nvvm_shfl_sync_idx_i32(lanes, int(bits), from, 31);
        const metal::uint high = __nvvm_shfl_sync_idx_i32(lanes, int(bits >> 32), from, 31);
        return __builtin_bit_cast(T, metal::ulong(high) << 32 | low);
    } else return __builtin_bit_cast(T, __nvvm_shfl_sync_idx_i32(lanes, __builtin_bit_cast(int, x), from, 31));
}
template <class T> $any_lanes T $simd_shuffle(T x, metal::uint lane) { return $shuffle_among(__nvvm_activemask(), x, lane); }
template <class T> $any_lanes T $simd_broadcast(T x, metal::uint lane) { return $simd_shuffle(x, lane); }
template <class T> $any_lanes T $simd_rotate(T x, int distance) { return $simd_shuffle(x, $simd_lane() + distance); }

/// The combination of the active lanes: in five steps if all are active, otherwise one after another.
template <class T, class F> $any_lanes T $combined_lanes(T x, F combine) {
    const metal::uint lanes = __nvvm_activemask();
    if (lanes == ~0u) {
#pragma unroll
        for (metal::uint distance = 16; distance; distance /= 2)
            x = combine(x, $shuffle_among(lanes, x, $simd_lane() ^ distance));
        return x;
    }
    metal::uint remaining = lanes;
    T result = $shuffle_among(lanes, x, __builtin_ctz(remaining));
#pragma clang loop unroll(disable)
    while (remaining &= remaining - 1) result = combine(result, $shuffle_among(lanes, x, __builtin_ctz(remaining)));
    return result;
}

/// Combine, in order, the values of the active lanes among `lanes`, the first few or all. Like the MSL headers'
/// `$folded`, but by a scan in five steps.
#define $OWN_FOLD 1
template <class T, class F> $any_lanes T $folded(T x, T neutral, metal::uint lanes, F combine) {
    const metal::uint active = __nvvm_activemask(), lane = $simd_lane(), chosen = active & lanes;
    T through = x;  // the combination of the lanes up to this one
    if (active == ~0u) {
#pragma unroll
        for (metal::uint distance = 1; distance < 32; distance *= 2) {
            const T before = $shuffle_among(active, through, lane - distance);
            through = lane >= distance ? combine(before, through) : through;
        }
    } else {
        T so_far = neutral;
#pragma clang loop unroll(disable)
        for (metal::uint remaining = active; remaining; remaining &= remaining - 1) {
            const metal::uint i = __builtin_ctz(remaining);
            so_far = combine(so_far, $shuffle_among(active, x, i));
            through = lane == i ? so_far : through;
        }
    }
    const T result = $shuffle_among(active, through, chosen ? 31 - __builtin_clz(chosen) : lane);
    return chosen ? result : neutral;
}

#define $REDUCE(name, ...) \
    template <class T> $any_lanes T $simd_##name(T x) { return $combined_lanes(x, [](T a, T b) { return T(__VA_ARGS__); }); }
$REDUCE(add, a + b) $REDUCE(and, a & b) $REDUCE(or, a | b) $REDUCE(xor, a ^ b)
// For floats, a number takes precedence over NaN.
$REDUCE(min, __builtin_elementwise_min(a, b)) $REDUCE(max, __builtin_elementwise_max(a, b))
#undef $REDUCE
#if $COMPUTE_CAPABILITY >= 80  // one instruction reduces any set of lanes
#define $REDUCE(T, name, instruction) \
    template <> $any_lanes T $simd_##name<T>(T x) { return __nvvm_redux_sync_##instruction(x, __nvvm_activemask()); }
#define $INTEGER(T, u) \
    $REDUCE(T, add, add) $REDUCE(T, and, and) $REDUCE(T, or, or) $REDUCE(T, xor, xor) $REDUCE(T, min, u##min) \
    $REDUCE(T, max, u##max)
$INTEGER(int, ) $INTEGER(metal::uint, u)
#undef $INTEGER
#undef $REDUCE
#endif

// ---- Copies into threadgroup memory: asynchronous from compute capability 8.0 on.
#if $COMPUTE_CAPABILITY >= 80
#define $ASYNC_COPIES "async_copies.h"
#endif

// ---- SIMD-group matrices: on tensor cores from compute capability 7.5 on; for bfloat from 8.0.
#if $COMPUTE_CAPABILITY >= 75
#define $MATRIX_FORMS "tensor_cores.h"
#endif
