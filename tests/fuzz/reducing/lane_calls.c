// The calls that the vectorizer replaces (engine/cpu/collectives.h), for threads that are fibers: each thread's
// position, and SIMD functions of the active lanes. Here the LLVM IR of one thread runs as it is.
#include "fibers.c"

#define CALLED HIDDEN __attribute__((noinline))

static inline triple place(void) {
    const triple size = self()->group.size;
    const u32 i = metalnb_index();
    return (triple){i % size.x, i / size.x % size.y, i / (size.x * size.y)};
}
#define POSITION(axis) \
    CALLED u32 metalnb_group_##axis(void) { return place().axis; } \
    CALLED u32 metalnb_grid_##axis(void) { \
        const region* r = &self()->group; \
        return r->first.axis * r->nominal.axis + place().axis; \
    }
POSITION(x) POSITION(y) POSITION(z)
CALLED u32 metalnb_simdgroup(void) { return metalnb_index() / LANES; }
CALLED _Bool metalnb_never(void) { return 0; }

#define SITE ((address)__builtin_return_address(0))

#define RULE(name) static void name(const u64* values, const u64* operands, u64* results, u32 active)
#define EACH(i, active) for (u32 rest = active, i; rest && (i = (u32)__builtin_ffs((int)rest) - 1, 1); rest &= rest - 1)
RULE(resolve_nothing) {}
RULE(resolve_ballot) {
    u32 votes = 0;
    EACH(i, active) votes |= (u32)(values[i] != 0) << i;
    EACH(i, active) results[i] = votes;
}
RULE(resolve_shuffle) {
    EACH(i, active) {
        const u64 lane = operands[i];
        results[i] = values[lane < LANES && active >> lane & 1 ? lane : i];
    }
}
CALLED void metalnb_simd_barrier(void) { wait_for_lanes(SITE, 0, 0, resolve_nothing); }
CALLED u32 metalnb_ballot(_Bool x) { return (u32)wait_for_lanes(SITE, x, 0, resolve_ballot); }
CALLED u32 metalnb_shuffle_u32(u32 x, u32 lane) { return (u32)wait_for_lanes(SITE, x, lane, resolve_shuffle); }
CALLED u64 metalnb_shuffle_u64(u64 x, u32 lane) { return wait_for_lanes(SITE, x, lane, resolve_shuffle); }

#define REDUCE(name, suffix, T, ...) \
    typedef union { u64 bits; T value; } name##_##suffix; \
    RULE(resolve_##name##_##suffix) { \
        int first = 1; \
        T a = 0; \
        EACH(i, active) { \
            const T b = ((name##_##suffix){values[i]}).value; \
            a = first ? b : (T)(__VA_ARGS__); \
            first = 0; \
        } \
        EACH(i, active) results[i] = ((name##_##suffix){.value = a}).bits; \
    } \
    CALLED T metalnb_##name##_##suffix(T x) { \
        const u64 bits = ((name##_##suffix){.value = x}).bits; \
        return ((name##_##suffix){wait_for_lanes(SITE, bits, 0, resolve_##name##_##suffix)}).value; \
    }
#define NUMBERS(suffix, T) \
    REDUCE(add, suffix, T, a + b) \
    REDUCE(min, suffix, T, __builtin_elementwise_min(a, b)) REDUCE(max, suffix, T, __builtin_elementwise_max(a, b))
NUMBERS(f32, float) NUMBERS(f16, _Float16) NUMBERS(i8, __INT8_TYPE__) NUMBERS(u8, u8) NUMBERS(i16, __INT16_TYPE__)
NUMBERS(u16, __UINT16_TYPE__) NUMBERS(i32, __INT32_TYPE__) NUMBERS(u32, u32) NUMBERS(i64, __INT64_TYPE__)
NUMBERS(u64, u64)
#define BITS(suffix, T) REDUCE(and, suffix, T, a & b) REDUCE(or, suffix, T, a | b) REDUCE(xor, suffix, T, a ^ b)
BITS(u32, u32) BITS(u64, u64)

typedef union { u64 bits; float values[2]; } matrix_part;
/// An element of sum + a b, as in metal_simdgroup_matrix: bits 1, 2 and 4 of a lane are its row, 0 and 3 its columns.
CALLED float metalnb_multiply_matrices(u32 element, float a0, float a1, float b0, float b1, float sum0, float sum1) {
    const address site = SITE;
    const u32 lane = self()->lane;
    const matrix_part a = {.values = {a0, a1}}, b = {.values = {b0, b1}};
    float sum = element ? sum1 : sum0;
    for (u32 k = 0; k < 8; ++k) {
        const u32 in_row = (lane & 0x16) | (k >> 2) << 3 | (k >> 1 & 1);
        const u32 in_column = (lane & 0x9) | (k >> 2) << 4 | (k >> 1 & 1) << 2 | (k & 1) << 1;
        const matrix_part left = {wait_for_lanes(site, a.bits, in_row, resolve_shuffle)};
        const matrix_part right = {wait_for_lanes(site, b.bits, in_column, resolve_shuffle)};
        sum = __builtin_fmaf(left.values[k & 1], right.values[element], sum);
    }
    return sum;
}
