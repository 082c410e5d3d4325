// Kernels whose threads converge: each thread of a threadgroup is a fiber with its own stack. All fibers of a
// threadgroup run on one core, one at a time, until they converge or end.
//
// How the lanes of a SIMD function are chosen: a SIMD-group's lanes run one after another, each up to a SIMD function,
// a barrier or its end. Then, of the calls at which lanes wait, the first in program order (call_sites.py) is executed
// for the lanes that wait at it: these are the active threads. So the lanes in a branch converge before those that
// skipped it, and those in a loop before those that have left it. A barrier is passed when every thread of the
// threadgroup is at one, or has ended.
#include "faults.h"

#define LANES 32
#define SIMDGROUPS 32

typedef void resolve(const u64* values, const u64* operands, u64* results, u32 active);

typedef struct {
    u32 ready, converging, waiting;  // lanes: able to run, at a SIMD function, at a barrier
    u32 unstarted;                   // lanes able to run that have not started and have no stack yet
    u32 yielding;                    // lanes that wait for another thread's write: they run if no other can
    u32 first;                       // the index of lane 0 in the threadgroup
    u64 values[LANES], operands[LANES], results[LANES];
    address site[LANES];
    resolve* functions[LANES];
    void* stack[LANES];  // where each lane continues
} simdgroup;

typedef struct {
    simdgroup* current;  // the running lane's SIMD-group
    u32 lane, simdgroups;
    void* caller_stack;
    u64 arguments[64];
    region group;
    address arena;
    simdgroup all[SIMDGROUPS];
} worker;

// Used by the validated build (validation.c).
#ifndef INSTRUMENTED
#define AT_BARRIER(worker)
#define AT_START(worker, index)
#define GAP 0
#endif

// Lanes run in rising order, unless a test asks for another order.
#ifndef NEXT_LANE
#define NEXT_LANE(ready) (u32)__builtin_ctz(ready)
#endif

HIDDEN void metalnb_thread(const u64* arguments, const region* r, u32 index);

#include "switching.h"

/// The ranks of the calls of `metalnb_converge`, by their return address from the image's start (call_sites.py).
/// Without them the addresses are used, which are nearly in that order.
static const u32* ranks;
#if __APPLE__
extern const char image[] __asm("__mh_dylib_header") HIDDEN;
#elif _WIN32
extern const char image[] __asm("__ImageBase") HIDDEN;
#else
extern const char image[] __asm("__ehdr_start") HIDDEN;
#endif
__attribute__((visibility("default"))) void metalnb_call_sites(const u32* new_ranks) { ranks = new_ranks; }

/// The current stack identifies the fiber.
static inline worker* self(void) { return (worker*)((address)__builtin_frame_address(0) & ~(address)(REGION - 1)); }

/// Execute the first SIMD function at which lanes wait.
static void converge_first(simdgroup* g) {
    address first = ~(address)0;
    u32 active = 0, lane = 0;
    for (u32 rest = g->converging; rest; rest &= rest - 1) {
        const u32 i = (u32)__builtin_ctz(rest);
        if (g->site[i] < first) {
            first = g->site[i];
            lane = i;
            active = 0;
        }
        if (g->site[i] == first && g->functions[i] == g->functions[lane]) active |= 1u << i;
    }
    g->functions[lane](g->values, g->operands, g->results, active);
    g->converging &= ~active;
    g->ready |= active;
}

/// Let yielding lanes run; return false if there are none.
static int wake_yielding(worker* w) {
    u32 any = 0;
    for (u32 i = 0; i < w->simdgroups; ++i) {
        simdgroup* g = &w->all[i];
        if (!g->yielding) continue;
        g->ready |= g->yielding;
        any |= g->yielding;
        g->yielding = 0;
        w->current = g;
    }
    return any != 0;
}

/// Choose the lane that runs next; return false if all have ended.
static int choose_lane(worker* w) {
    for (;;) {
        simdgroup* g = w->current;
        if (g->ready) {
            w->lane = NEXT_LANE(g->ready);
            return 1;
        }
        if (g->converging && !g->yielding) {
            converge_first(g);
            continue;
        }
        u32 i = 0;
        while (i < w->simdgroups && !w->all[i].ready) ++i;
        if (i == w->simdgroups && wake_yielding(w)) continue;
        if (i == w->simdgroups) {  // every thread is at a barrier, or has ended
            AT_BARRIER(w);
            for (i = w->simdgroups; i-- > 0;) {
                simdgroup* other = &w->all[i];
                other->ready = other->waiting;
                other->waiting = 0;
                if (other->ready) w->current = other;
            }
            if (!w->current->ready) return 0;
            continue;
        }
        w->current = &w->all[i];
    }
}

static void fiber_main(void);

/// Return where the chosen lane continues; a lane that has not started receives a new stack.
static void* resume_point(worker* w) {
    simdgroup* g = w->current;
    const u32 lane = w->lane;
    if (!(g->unstarted >> lane & 1)) return g->stack[lane];
    g->unstarted &= ~(1u << lane);
    return new_stack((address)w + STACKS + (g->first + lane + 1) * (address)STACK, fiber_main);
}

/// Let other lanes run until this one is chosen again.
static void switch_lane(worker* w, simdgroup* g, u32 lane) {
    void* to = choose_lane(w) ? resume_point(w) : w->caller_stack;
    if (w->current != g || w->lane != lane || to == w->caller_stack) switch_stack(&g->stack[lane], to);
}

/// End the running thread, whatever it was about to do.
static __attribute__((noreturn)) void end_thread(worker* w) {
    w->current->ready &= ~(1u << w->lane);
    switch_lane(w, w->current, w->lane);
    __builtin_unreachable();
}

/// A thread that ends passes its stack to the next one, if that has not started yet.
static void fiber_main(void) {
    worker* w = self();
    for (;;) {
        metalnb_thread(w->arguments, &w->group, w->current->first + w->lane);
        simdgroup* g = w->current;
        const u32 lane = w->lane;
        g->ready &= ~(1u << lane);
        if (!choose_lane(w)) switch_stack(&g->stack[lane], w->caller_stack);
        if (!(w->current->unstarted >> w->lane & 1)) switch_stack(&g->stack[lane], w->current->stack[w->lane]);
        w->current->unstarted &= ~(1u << w->lane);
    }
}

// ---- Called by kernels.

HIDDEN u32 metalnb_lane(void) { return self()->lane; }
HIDDEN u32 metalnb_index(void) { return self()->current->first + self()->lane; }
HIDDEN u32 metalnb_threads_here(void) {
    const triple size = self()->group.size;
    return size.x * size.y * size.z;
}

/// Wait for the lanes that reach a call site.
static inline u64 wait_for_lanes(address site, u64 value, u64 operand, resolve* function) {
    worker* w = self();
    simdgroup* g = w->current;
    const u32 lane = w->lane;
    g->values[lane] = value;
    g->operands[lane] = operand;
    g->functions[lane] = function;
    g->site[lane] = site;
    g->ready &= ~(1u << lane);
    g->converging |= 1u << lane;
    switch_lane(w, g, lane);
    return g->results[lane];
}

HIDDEN __attribute__((noinline)) u64 metalnb_converge(u64 value, u64 operand, resolve* function) {
    const address site = (address)__builtin_return_address(0) - (address)image;
    return wait_for_lanes(ranks ? ranks[site] : site, value, operand, function);
}

HIDDEN __attribute__((noinline)) void metalnb_barrier(void) {
    worker* w = self();
    simdgroup* g = w->current;
    const u32 lane = w->lane;
    g->site[lane] = (address)__builtin_return_address(0);
    g->ready &= ~(1u << lane);
    g->waiting |= 1u << lane;
    switch_lane(w, g, lane);
}

// ---- Threadgroup memory: each variable has a slot (host.h), which gets its offset when the kernel is loaded.

typedef struct { u32 size, alignment, id; } slot;
#if __APPLE__
extern const slot slots[] __asm("section$start$__DATA$metalnb"), slots_end[] __asm("section$end$__DATA$metalnb");
#elif _WIN32  // sections of one name are sorted by the text after the dollar sign
__asm__(".section .slots$a,\"dr\"\n.p2align 2\n.long 0\nmetalnb_first_slot:\n"
        ".section .slots$c,\"dr\"\n.p2align 2\nmetalnb_end_of_slots:\n.long 0\n.text");  // empty ones would be dropped
extern const slot slots[] __asm("metalnb_first_slot") HIDDEN, slots_end[] __asm("metalnb_end_of_slots") HIDDEN;
#else
extern const slot slots[] __asm("__start_metalnb") __attribute__((weak)) HIDDEN;
extern const slot slots_end[] __asm("__stop_metalnb") __attribute__((weak)) HIDDEN;
#endif
#define VARIABLES 4096
static u32 offsets[VARIABLES];

HIDDEN address metalnb_storage(const slot* variable) { return self()->arena + offsets[variable - slots]; }

/// Place the kernel's threadgroup variables. Called once, before anything runs. Returns their size in bytes.
__attribute__((visibility("default"))) u32 metalnb_prepare(void) {
    u32 end = 0;
    for (u32 i = 0; i < VARIABLES && slots + i != slots_end; ++i) {
        offsets[i] = (end + slots[i].alignment - 1) / slots[i].alignment * slots[i].alignment;
        end = offsets[i] + slots[i].size + GAP;
    }
    return end;
}

// ---- Running.

static void begin_threadgroup(worker* w) {
    const u32 threads = w->group.size.x * w->group.size.y * w->group.size.z;
    w->simdgroups = (threads + LANES - 1) / LANES;
    w->current = &w->all[0];
    w->lane = 0;
    for (u32 i = 0; i < w->simdgroups; ++i) {
        simdgroup* g = &w->all[i];
        const u32 lanes = least(LANES, threads - i * LANES);
        g->ready = g->unstarted = lanes == LANES ? ~0u : (1u << lanes) - 1;
        g->converging = g->waiting = g->yielding = 0;
        g->first = i * LANES;
    }
}

/// Run `count` threadgroups, starting at `first`, in a worker's region.
__attribute__((visibility("default"))) void metalnb_groups(const dispatch* d, void* scratch, u64 first, u64 count) {
    worker* w = scratch;
    BEGIN_STACKS((address)w);
    w->arena = (address)w + ARENA;
    const address argument_memory = w->arena + ((d->static_memory + 15) & ~15u);
    for (u32 i = 0; i < d->count; ++i) {
        const u64 a = d->arguments[i];
        w->arguments[i] = a & IN_THREADGROUP ? argument_memory + (a & ~IN_THREADGROUP) : a;
    }
    for (u64 i = first; i < first + count; ++i) {
        w->group = threadgroup(d, i);
        begin_threadgroup(w);
        AT_START(w, i);
        switch_stack(&w->caller_stack, resume_point(w));
    }
    END_STACKS();
}

// ---- Printing: a kernel's output goes, unformatted, to memory that the dispatch's caller provides (printed_lines.py).

typedef struct { u64 value[4]; u32 kind, lanes; } printed_value;
typedef struct { u64 format; u32 x, y, z, count; } line;
static struct { char* at; u64 room, lines; } printing;

HIDDEN __attribute__((noinline)) void metalnb_print(u64 format, u32 count, const printed_value* values) {
    const u64 bytes = sizeof(line) + count * sizeof(printed_value);
    ++printing.lines;
    if (bytes > printing.room) {
        printing.room = 0;
        return;
    }
    worker* w = self();
    const region* r = &w->group;
    const u32 i = (u32)(w->current - w->all) * LANES + w->lane;
    const u32 x = i % r->size.x, y = i / r->size.x % r->size.y, z = i / (r->size.x * r->size.y);
    *(line*)printing.at = (line){format, r->first.x * r->nominal.x + x, r->first.y * r->nominal.y + y,
                                 r->first.z * r->nominal.z + z, count};
    printed_value* into = (printed_value*)(printing.at + sizeof(line));
    for (u32 k = 0; k < count; ++k) into[k] = values[k];
    printing.at += bytes;
    printing.room -= bytes;
}
__attribute__((visibility("default"))) void metalnb_print_to(char* memory, u64 bytes) {
    printing.at = memory;
    printing.room = bytes;
    printing.lines = 0;
}
__attribute__((visibility("default"))) u64 metalnb_print_count(char** end) {
    *end = printing.at;
    return printing.lines;
}
