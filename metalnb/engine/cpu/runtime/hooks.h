// The functions that the validated build calls: part of validation.c.
#pragma once

// ---- Called by clang's thread sanitizer.

#define FROM ((address)__builtin_return_address(0))
HIDDEN void __tsan_init(void) {}
HIDDEN void __tsan_func_entry(void* p) {}
HIDDEN void __tsan_func_exit(void) {}
#define SLOW_ACCESS(p, n, written, natural) record_access((u64)(p), n, written, 0, natural, FROM, 0)
// The caller keeps its registers, as most accesses do not call these functions.
#define KEEPS_REGISTERS __attribute__((preserve_most))
#define ACCESS(n) \
    HIDDEN void __tsan_volatile_read##n(void* p) { SLOW_ACCESS(p, n, 0, 1); } \
    HIDDEN void __tsan_volatile_write##n(void* p) { SLOW_ACCESS(p, n, 1, 1); } \
    HIDDEN void __tsan_unaligned_volatile_read##n(void* p) { SLOW_ACCESS(p, n, 0, 0); } \
    HIDDEN void __tsan_unaligned_volatile_write##n(void* p) { SLOW_ACCESS(p, n, 1, 0); } \
    HIDDEN void __tsan_read_write##n(void* p) { SLOW_ACCESS(p, n, 0, 0), SLOW_ACCESS(p, n, 1, 0); } \
    HIDDEN void __tsan_unaligned_read_write##n(void* p) { SLOW_ACCESS(p, n, 0, 0), SLOW_ACCESS(p, n, 1, 0); } \
    HIDDEN KEEPS_REGISTERS void metalnb_look##n(void* p, site* s) { \
        if (!try_fast_path((u64)p, n, 0, FROM, s)) record_access((u64)p, n, 0, 0, 1, FROM, s); \
    } \
    HIDDEN KEEPS_REGISTERS void metalnb_look_unaligned##n(void* p, site* s) { \
        record_access((u64)p, n, 0, 0, 0, FROM, s); \
    } \
    HIDDEN KEEPS_REGISTERS void metalnb_store##n(void* p, site* s) { \
        if (!try_fast_path((u64)p, n, 1, FROM, s)) record_access((u64)p, n, 1, 0, 1, FROM, s); \
    } \
    HIDDEN KEEPS_REGISTERS void metalnb_store_unaligned##n(void* p, site* s) { \
        record_access((u64)p, n, 1, 0, 0, FROM, s); \
    }
ACCESS(1) ACCESS(2) ACCESS(4) ACCESS(8) ACCESS(16)
HIDDEN void __tsan_read_range(void* p, u64 n) { SLOW_ACCESS(p, (u32)n, 0, 0); }
HIDDEN void __tsan_write_range(void* p, u64 n) { SLOW_ACCESS(p, (u32)n, 1, 0); }

HIDDEN void* __tsan_memcpy(char* to, const char* from, u64 n) {
    if (n) SLOW_ACCESS(from, (u32)n, 0, 0), SLOW_ACCESS(to, (u32)n, 1, 0);
    for (u64 i = 0; i < n; ++i) ((volatile char*)to)[i] = from[i];
    return to;
}
HIDDEN void* __tsan_memmove(char* to, const char* from, u64 n) {
    if (n) SLOW_ACCESS(from, (u32)n, 0, 0), SLOW_ACCESS(to, (u32)n, 1, 0);
    if (to < from) for (u64 i = 0; i < n; ++i) ((volatile char*)to)[i] = from[i];
    else for (u64 i = n; i-- > 0;) ((volatile char*)to)[i] = from[i];
    return to;
}
HIDDEN void* __tsan_memset(char* to, int value, u64 n) {
    if (n) SLOW_ACCESS(to, (u32)n, 1, 0);
    for (u64 i = 0; i < n; ++i) ((volatile char*)to)[i] = (char)value;
    return to;
}

/// A thread that polls the same atomic may be waiting for another thread: let others run.
static void yield_if_polling(u64 at) {
    static u64 polled;
    static u32 poller, polls;
    worker* w = self();
    const u32 thread = index_in_group(w);
    if (polled != at || poller != thread) polls = 0;
    polled = at, poller = thread;
    if (++polls < 64 || state->stopped) return;
    polls = 0;
    simdgroup* g = w->current;
    const u32 lane = w->lane;
    g->ready &= ~(1u << lane);
    g->yielding |= 1u << lane;
    switch_lane(w, g, lane);
}

/// An atomic operation that reads and then writes.
static void record_update(u64 at, u32 size, address from) {
    check_atomic_read(at, size, position_at(from));
    record_access(at, size, 1, 1, 1, from, 0);
}

#define MODIFY(bits, T, name) \
    HIDDEN T __tsan_atomic##bits##_##name(volatile T* p, T v, int order) { \
        record_update((u64)p, bits / 8, FROM); \
        record_atomic((u64)p, 1, 1); \
        return __atomic_##name(p, v, __ATOMIC_SEQ_CST); \
    }
#define ATOMICS(bits, T) \
    HIDDEN T __tsan_atomic##bits##_load(const volatile T* p, int order) { \
        yield_if_polling((u64)p); \
        record_access((u64)p, bits / 8, 0, 1, 1, FROM, 0); \
        record_atomic((u64)p, 1, 0); \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST); \
    } \
    HIDDEN void __tsan_atomic##bits##_store(volatile T* p, T v, int order) { \
        record_access((u64)p, bits / 8, 1, 1, 1, FROM, 0); \
        record_atomic((u64)p, 0, 1); \
        __atomic_store_n(p, v, __ATOMIC_SEQ_CST); \
    } \
    HIDDEN T __tsan_atomic##bits##_exchange(volatile T* p, T v, int order) { \
        yield_if_polling((u64)p); \
        record_update((u64)p, bits / 8, FROM); \
        record_atomic((u64)p, 1, 1); \
        return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); \
    } \
    HIDDEN T __tsan_atomic##bits##_compare_exchange_val(volatile T* p, T expected, T v, int order, int failure) { \
        yield_if_polling((u64)p); \
        record_update((u64)p, bits / 8, FROM); \
        const int done = __atomic_compare_exchange_n(p, &expected, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
        record_atomic((u64)p, 1, (u32)done); \
        return expected; \
    } \
    MODIFY(bits, T, fetch_add) MODIFY(bits, T, fetch_sub) MODIFY(bits, T, fetch_and) MODIFY(bits, T, fetch_or) \
    MODIFY(bits, T, fetch_xor) MODIFY(bits, T, fetch_nand)
ATOMICS(8, u8) ATOMICS(16, __UINT16_TYPE__) ATOMICS(32, u32) ATOMICS(64, u64)
HIDDEN void __tsan_atomic_thread_fence(int order) {}
HIDDEN void __tsan_atomic_signal_fence(int order) {}

// ---- Called by its other sanitizers, each with a source record.

static finding* report(u32 kind, address from, u64 value) {
    finding* f = record_finding(kind, (u32)(from - (address)image), 0, ~0u);
    if (f) f->offset = (long long)value;
    return f;
}
HIDDEN void __ubsan_handle_out_of_bounds(void* source, u64 index) {
    report(INDEX, FROM, index);
    ++ended_threads;
    end_thread(self());  // the thread is about to access memory outside an array
}
typedef struct { unsigned short kind, bits; } value_type;
typedef struct { const char* file; u32 line, column; const value_type *from, *to; } cast_data;
HIDDEN void __ubsan_handle_float_cast_overflow(const cast_data* source, u64 value) {
    finding* f = report(CONVERSION, FROM, value);
    if (f) f->value = source->from->bits == 32 ? __builtin_bit_cast(float, (u32)value) : __builtin_nanf("");
}

/// A shuffle takes a lane's value; `active` are the lanes that execute it together.
HIDDEN void metalnb_reads_lane(u32 lane, u32 active) {
    if (lane < LANES && active >> lane & 1) return;
    finding* f = report(LANE, FROM, lane);
    const worker* w = self();
    const triple size = w->group.size;
    if (f) f->other = least(LANES, size.x * size.y * size.z - w->current->first);  // the lanes of this SIMD-group
}

// ---- Inserted by validating_code.py, with inline tests whether there is anything to report.

/// Called in loops when the time is up. Reports a thread that runs many more iterations while no other thread can run.
#define MANY (1u << 20)
HIDDEN void metalnb_late(void) {
    worker* w = self();
    const u32 mine = index_in_group(w) + 1;
    if (state->stopped == 1) {
        const u32 previous = late_thread;
        late_thread = mine;
        if ((!previous || previous == mine) && ++late_turns < MANY) return;
        if (previous == mine) report(ENDLESS, FROM, MANY);
        state->stopped = 2;
    }
    end_thread(w);
}
HIDDEN void metalnb_modified(void* p, u64 size) {
    record_update((u64)p, (u32)size, FROM);
    record_atomic((u64)p, 1, 1);
}
HIDDEN void metalnb_by_zero(void) { report(DIVISION, FROM, 0); }
HIDDEN void metalnb_far_shifted(long long count) { report(SHIFT, FROM, (u64)count); }

static inline u32 bits_of(float x) { return __builtin_bit_cast(u32, x); }
static inline int finite(float x) { return (bits_of(x) & 0x7f800000) != 0x7f800000; }
/// A variable that was never set: clang gives it these bits, as a float or as a widened half.
static inline int unset(float x) { return bits_of(x) == 0xffffffff || bits_of(x) == 0xffffe000; }

/// A thread reads one of its variables that it has never set. The last bit marks an integer; a float is
/// reported only if its value is used.
static u32 never_set[SIMDGROUPS * LANES];  // the last such float of each thread, counted from 1
HIDDEN void metalnb_never_set(u32 code) {
    const u32 variable = (code >> 1) + 1;
    never_set[index_in_group(self())] = variable;
    finding* f = code & 1 ? report(NEVER_SET, FROM, 0) : 0;
    if (f) f->extra = variable;
}

HIDDEN void metalnb_not_finite(float result, float a, float b, float c, u32 operation) {
    const float operands[3] = {a, b, c};
    const u32 count = operation & 3, infinity = result == result;
    for (u32 i = 0; i < count; ++i) {
        if (operands[i] != operands[i]) {
            finding* f = unset(operands[i]) ? report(OWN_UNWRITTEN, FROM, 0) : 0;
            if (f) f->extra = never_set[index_in_group(self())];
            return;
        }
        if (infinity && !finite(operands[i])) return;  // an operand was already infinite
    }
    worker* w = self();
    const u64 at = 2 * (u64)grid_index(w, index_in_group(w)) + infinity;
    if (at >= state->max_origins || state->origins[at].position) return;
    state->origins[at] = (origin){(u32)(FROM - (address)image), operation, result, {a, b, c}};
}
