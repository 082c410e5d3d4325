// The functions that the validated build calls: part of validation.c.
#pragma once

// ---- Called by clang's thread sanitizer.

#define FROM ((address)__builtin_return_address(0))
HIDDEN void __tsan_init(void) {}
HIDDEN void __tsan_func_entry(void* p) {}
HIDDEN void __tsan_func_exit(void) {}
#define SELDOM(p, n, written, natural) accessed((u64)(p), n, written, 0, natural, FROM, 0)
#define KEEPING __attribute__((preserve_most))  // the caller keeps its registers, as most accesses do not call this
#define ACCESS(n) \
    HIDDEN void __tsan_volatile_read##n(void* p) { SELDOM(p, n, 0, 1); } \
    HIDDEN void __tsan_volatile_write##n(void* p) { SELDOM(p, n, 1, 1); } \
    HIDDEN void __tsan_unaligned_volatile_read##n(void* p) { SELDOM(p, n, 0, 0); } \
    HIDDEN void __tsan_unaligned_volatile_write##n(void* p) { SELDOM(p, n, 1, 0); } \
    HIDDEN void __tsan_read_write##n(void* p) { SELDOM(p, n, 0, 0), SELDOM(p, n, 1, 0); } \
    HIDDEN void __tsan_unaligned_read_write##n(void* p) { SELDOM(p, n, 0, 0), SELDOM(p, n, 1, 0); } \
    HIDDEN KEEPING void metalnb_look##n(void* p, site* s) { \
        if (!quick((u64)p, n, 0, FROM, s)) accessed((u64)p, n, 0, 0, 1, FROM, s); \
    } \
    HIDDEN KEEPING void metalnb_look_unaligned##n(void* p, site* s) { accessed((u64)p, n, 0, 0, 0, FROM, s); } \
    HIDDEN KEEPING void metalnb_store##n(void* p, site* s) { \
        if (!quick((u64)p, n, 1, FROM, s)) accessed((u64)p, n, 1, 0, 1, FROM, s); \
    } \
    HIDDEN KEEPING void metalnb_store_unaligned##n(void* p, site* s) { accessed((u64)p, n, 1, 0, 0, FROM, s); }
ACCESS(1) ACCESS(2) ACCESS(4) ACCESS(8) ACCESS(16)
HIDDEN void __tsan_read_range(void* p, u64 n) { SELDOM(p, (u32)n, 0, 0); }
HIDDEN void __tsan_write_range(void* p, u64 n) { SELDOM(p, (u32)n, 1, 0); }

HIDDEN void* __tsan_memcpy(char* to, const char* from, u64 n) {
    if (n) SELDOM(from, (u32)n, 0, 0), SELDOM(to, (u32)n, 1, 0);
    for (u64 i = 0; i < n; ++i) ((volatile char*)to)[i] = from[i];
    return to;
}
HIDDEN void* __tsan_memmove(char* to, const char* from, u64 n) {
    if (n) SELDOM(from, (u32)n, 0, 0), SELDOM(to, (u32)n, 1, 0);
    if (to < from) for (u64 i = 0; i < n; ++i) ((volatile char*)to)[i] = from[i];
    else for (u64 i = n; i-- > 0;) ((volatile char*)to)[i] = from[i];
    return to;
}
HIDDEN void* __tsan_memset(char* to, int value, u64 n) {
    if (n) SELDOM(to, (u32)n, 1, 0);
    for (u64 i = 0; i < n; ++i) ((volatile char*)to)[i] = (char)value;
    return to;
}

/// A thread that polls the same atomic may be waiting for another thread: let others run.
static void patient(u64 at) {
    static u64 asked;
    static u32 asker, times;
    worker* w = self();
    const u32 thread = index_in_group(w);
    if (asked != at || asker != thread) times = 0;
    asked = at, asker = thread;
    if (++times < 64 || state->stopped) return;
    times = 0;
    simdgroup* g = w->here;
    const u32 lane = w->lane;
    g->ready &= ~(1u << lane);
    g->resting |= 1u << lane;
    pass(w, g, lane);
}

/// An atomic operation that reads and then writes.
static void updated(u64 at, u32 size, address from) {
    read_first(at, size, place_at(from));
    accessed(at, size, 1, 1, 1, from, 0);
}

#define MODIFY(bits, T, name) \
    HIDDEN T __tsan_atomic##bits##_##name(volatile T* p, T v, int order) { \
        updated((u64)p, bits / 8, FROM); \
        at_atomic((u64)p, 1, 1); \
        return __atomic_##name(p, v, __ATOMIC_SEQ_CST); \
    }
#define ATOMICS(bits, T) \
    HIDDEN T __tsan_atomic##bits##_load(const volatile T* p, int order) { \
        patient((u64)p); \
        accessed((u64)p, bits / 8, 0, 1, 1, FROM, 0); \
        at_atomic((u64)p, 1, 0); \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST); \
    } \
    HIDDEN void __tsan_atomic##bits##_store(volatile T* p, T v, int order) { \
        accessed((u64)p, bits / 8, 1, 1, 1, FROM, 0); \
        at_atomic((u64)p, 0, 1); \
        __atomic_store_n(p, v, __ATOMIC_SEQ_CST); \
    } \
    HIDDEN T __tsan_atomic##bits##_exchange(volatile T* p, T v, int order) { \
        patient((u64)p); \
        updated((u64)p, bits / 8, FROM); \
        at_atomic((u64)p, 1, 1); \
        return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); \
    } \
    HIDDEN T __tsan_atomic##bits##_compare_exchange_val(volatile T* p, T expected, T v, int order, int failure) { \
        patient((u64)p); \
        updated((u64)p, bits / 8, FROM); \
        const int done = __atomic_compare_exchange_n(p, &expected, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
        at_atomic((u64)p, 1, (u32)done); \
        return expected; \
    } \
    MODIFY(bits, T, fetch_add) MODIFY(bits, T, fetch_sub) MODIFY(bits, T, fetch_and) MODIFY(bits, T, fetch_or) \
    MODIFY(bits, T, fetch_xor) MODIFY(bits, T, fetch_nand)
ATOMICS(8, u8) ATOMICS(16, __UINT16_TYPE__) ATOMICS(32, u32) ATOMICS(64, u64)
HIDDEN void __tsan_atomic_thread_fence(int order) {}
HIDDEN void __tsan_atomic_signal_fence(int order) {}

// ---- Called by its other sanitizers, each with a source record.

static finding* told(u32 kind, address from, u64 value) {
    finding* f = noted(kind, (u32)(from - (address)image), 0, ~0u);
    if (f) f->offset = (long long)value;
    return f;
}
HIDDEN void __ubsan_handle_out_of_bounds(void* source, u64 index) {
    told(INDEX, FROM, index);
    ++killed;
    end(self());  // the thread is about to access memory outside an array
}
typedef struct { unsigned short kind, bits; } value_type;
typedef struct { const char* file; u32 line, column; const value_type *from, *to; } cast_data;
HIDDEN void __ubsan_handle_float_cast_overflow(const cast_data* source, u64 value) {
    finding* f = told(CONVERSION, FROM, value);
    if (f) f->given = source->from->bits == 32 ? __builtin_bit_cast(float, (u32)value) : __builtin_nanf("");
}

/// A shuffle takes a lane's value; `active` are the lanes that execute it together.
HIDDEN void metalnb_reads_lane(u32 lane, u32 active) {
    if (lane < LANES && active >> lane & 1) return;
    finding* f = told(LANE, FROM, lane);
    const worker* w = self();
    const triple size = w->group.size;
    if (f) f->other = least(LANES, size.x * size.y * size.z - w->here->first);  // the lanes of this SIMD-group
}

// ---- Inserted by validating_code.py, with inline tests whether there is anything to report.

/// Called in loops when the time is up. Reports a thread that runs many more iterations while no other thread can run.
#define MANY (1u << 20)
HIDDEN void metalnb_late(void) {
    worker* w = self();
    const u32 mine = index_in_group(w) + 1;
    if (state->stopped == 1) {
        const u32 before = late_thread;
        late_thread = mine;
        if ((!before || before == mine) && ++late_turns < MANY) return;
        if (before == mine) told(ENDLESS, FROM, MANY);
        state->stopped = 2;
    }
    end(w);
}
HIDDEN void metalnb_modified(void* p, u64 size) {
    updated((u64)p, (u32)size, FROM);
    at_atomic((u64)p, 1, 1);
}
HIDDEN void metalnb_by_zero(void) { told(DIVISION, FROM, 0); }
HIDDEN void metalnb_far_shifted(long long count) { told(SHIFT, FROM, (u64)count); }

static inline u32 bits_of(float x) { return __builtin_bit_cast(u32, x); }
static inline int finite(float x) { return (bits_of(x) & 0x7f800000) != 0x7f800000; }
/// A variable that was never set: clang gives it these bits, as a float or as a widened half.
static inline int unset(float x) { return bits_of(x) == 0xffffffff || bits_of(x) == 0xffffe000; }

/// A thread reads one of its variables that it has never set. The last bit marks an integer; a float is
/// reported only if its value is used.
static u32 never_set[SIMDGROUPS * LANES];  // the last such float of each thread, counted from 1
HIDDEN void metalnb_never_set(u32 what) {
    const u32 variable = (what >> 1) + 1;
    never_set[index_in_group(self())] = variable;
    finding* f = what & 1 ? told(NEVER_SET, FROM, 0) : 0;
    if (f) f->extra = variable;
}

HIDDEN void metalnb_not_finite(float made, float a, float b, float c, u32 operation) {
    const float given[3] = {a, b, c};
    const u32 count = operation & 3, infinity = made == made;
    for (u32 i = 0; i < count; ++i) {
        if (given[i] != given[i]) {
            finding* f = unset(given[i]) ? told(OWN_UNWRITTEN, FROM, 0) : 0;
            if (f) f->extra = never_set[index_in_group(self())];
            return;
        }
        if (infinity && !finite(given[i])) return;  // an operand was already infinite
    }
    worker* w = self();
    const u64 at = 2 * (u64)in_grid(w, index_in_group(w)) + infinity;
    if (at >= state->most_origins || state->origins[at].place) return;
    state->origins[at] = (origin){(u32)(FROM - (address)image), operation, made, {a, b, c}};
}
