// SIMD functions of threads that are fibers: part of host.h.
#pragma once

// Every lane passes a value; once all active lanes have arrived, one of them computes every result.
#define $each_active(i, active) \
    for (metal::uint $rest = active, i; $rest && (i = __builtin_ctz($rest), true); $rest &= $rest - 1)
template <class T> inline metal::ulong $widened(T x) {
    if constexpr (sizeof(T) == 8) return __builtin_bit_cast(metal::ulong, x);
    else return __builtin_bit_cast(metal::uint, x);
}
template <class T> inline T $narrowed(metal::ulong bits) {
    if constexpr (sizeof(T) == 8) return __builtin_bit_cast(T, bits);
    else return __builtin_bit_cast(T, metal::uint(bits));
}
#define $RULE(name) \
    inline void $resolve_##name( \
        const metal::ulong* values, const metal::ulong* operands, metal::ulong* results, metal::uint active)
$RULE(nothing) {}
$RULE(ballot) {
    metal::uint votes = 0;
    $each_active(i, active) votes |= metal::uint(values[i] != 0) << i;
    $each_active(i, active) results[i] = votes;
}
/// The value of a lane; for an inactive lane, the caller's own value.
$RULE(shuffle) {
    $each_active(i, active) {
        const metal::ulong lane = operands[i];
        results[i] = values[lane < 32 && active >> lane & 1 ? lane : i];
    }
}
/// The value of the lane `operand` lanes further, wrapping around at 32.
$RULE(rotate) {
    $each_active(i, active) {
        const metal::uint lane = (i + metal::uint(operands[i])) & 31;
        results[i] = values[active >> lane & 1 ? lane : i];
    }
}
inline __attribute__((convergent)) void $simd_barrier(metal::uint) {
#ifdef METALNB_VALIDATED
    metalnb_converge(0, 0, metalnb_ordered);
#else
    metalnb_converge(0, 0, $resolve_nothing);
#endif
}
#ifdef METALNB_VALIDATED
extern "C" __attribute__((visibility("hidden"))) void metalnb_reads_lane(metal::uint lane, metal::uint active);
#define $reads_lane(lane) metalnb_reads_lane(lane, $simd_ballot(true))
#endif
inline __attribute__((convergent)) metal::uint $simd_ballot(bool x) { return metalnb_converge(x, 0, $resolve_ballot); }
template <class T> __attribute__((convergent)) inline T $simd_shuffle(T x, metal::uint lane) {
    return $narrowed<T>(metalnb_converge($widened(x), lane, $resolve_shuffle));
}
template <class T> __attribute__((convergent)) inline T $simd_broadcast(T x, metal::uint lane) {
    return $simd_shuffle(x, lane);
}
template <class T> __attribute__((convergent)) inline T $simd_rotate(T x, int distance) {
    return $narrowed<T>(metalnb_converge($widened(x), metal::ulong(long(distance)), $resolve_rotate));
}
#define $REDUCE(name, ...) \
    template <class T> $RULE(name) { \
        T a = $narrowed<T>(values[__builtin_ctz(active)]); \
        $each_active(i, active & (active - 1)) { const T b = $narrowed<T>(values[i]); a = __VA_ARGS__; } \
        $each_active(i, active) results[i] = $widened(a); \
    } \
    template <class T> __attribute__((convergent)) inline T $simd_##name(T x) { \
        return $narrowed<T>(metalnb_converge($widened(x), 0, $resolve_##name<T>)); \
    }
$REDUCE(add, a + b) $REDUCE(min, __builtin_elementwise_min(a, b)) $REDUCE(max, __builtin_elementwise_max(a, b))
$REDUCE(and, a & b) $REDUCE(or, a | b) $REDUCE(xor, a ^ b)
#undef $REDUCE
#undef $RULE
#undef $each_active

// The end of a loop's iteration (iteration_ends.py). Its line number exceeds all others, so that it comes last even in
// a macro, where all call sites have the macro's position.
#line 1000000
inline __attribute__((convergent)) void $iteration_end() { metalnb_converge(0, 0, $resolve_nothing); }
