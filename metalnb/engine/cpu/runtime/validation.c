// The validated build. The threads are fibers; clang's thread sanitizer reports each of their accesses, its other
// sanitizers report indices and conversions, and the calls of validating_code.py report values, shifts and loops.
// Threadgroups run one after another, on one core.
//
// Time is counted in moments: a new one begins with each threadgroup, after each barrier of a threadgroup or a
// SIMD-group, and after each fence. Each unit of watched memory records its last writer, and two threads that have read
// it since (marks.h).
#define INSTRUMENTED
#define AT_BARRIER(w) end_interval(w)
#define AT_START(w, i) begin_group(w, i)
#define GAP 4096  // between threadgroup variables
#include "dispatch.h"
static void end_interval(void* worker);
static void begin_group(void* worker, u64 index);
#include "fibers.c"

enum kind {
    BEYOND, RACE, UNWRITTEN, BARRIER, WILD, INDEX, CONVERSION, SHIFT, MISALIGNED, TWICE, ENDLESS, OWN_UNWRITTEN, NEVER_SET,
    DIVISION, LANE
};

typedef u64 mark;  // from the highest bit: 28 for the moment, 10 the thread in its group, 1 atomics, 25 the position
typedef struct { mark writer, reader, later; } unit;  // later: a thread other than the reader
static unit placeholder_unit;  // a unit that counts as read in every moment

typedef struct {  // a buffer or a threadgroup variable
    u64 start, size;    // the address, and the size in bytes
    u64 before, after;  // guard bytes around it, for harmless accesses out of bounds
    u32 shift;          // a unit has 2^shift bytes
    u32 shared;         // 1 for threadgroup memory: each threadgroup has separate memory
    unit* units;
    u8* overwritten;    // for each unit, 1 if it was overwritten before any thread had read it
    u64 reads, writes, strays, atomics;
    u64 constant;       // 1 while no thread may write it, so that it needs no marks
} watched;

typedef struct {  // a logged access; the thread is numbered within its threadgroup
    unsigned short thread, access;  // access: the region's number; last two bits: 1 for a write, 2 out of bounds
    u32 group;
    long long offset;
} event;

typedef struct {  // where a thread first computed a NaN or an infinity
    u32 position, operation;  // operation: its number, and its operand count in the last two bits
    float result, operands[3];
} origin;

typedef struct {
    u32 kind, written, size, count;
    u32 thread, group, position, region;
    long long offset;  // bytes from the region's start; for an index, the index
    u32 other, other_group, other_position, other_written;
    float value;  // for a conversion, the value that does not fit, NaN if unknown; for a race, 1 if a barrier with mem_none
                  // is between the accesses
    u32 extra;    // for a variable that was never set, its number
    u64 before, after;  // for a race, 8 bytes at a multiple of 8, before the access and after it
} finding;

typedef struct { u32 moment, group; } group_record;  // when a threadgroup began

#define FINDINGS 256
typedef struct {  // the watched regions, and memory for the findings: validated_run.py fills it
    watched* regions;
    finding* findings;
    event* events;
    origin* origins;  // two for each thread of the grid
    group_record* group_records;
    u64 count, max_events, max_origins, max_groups;
    u64 found, events_found, accesses, groups;
    u64 now;      // the moment before the first; marks of earlier moments are from earlier runs
    u64 stopped;  // 1: the time is up, and loops look for the thread that uses it; 2: every thread ends
} watch;
static watch* state;
static u32 group_number, ended_threads;
HIDDEN u64 metalnb_now;  // the current moment
static u64 group_start;      // the moment at which the threadgroup began
static u64 interval_start;   // when it passed its last barrier that orders memory
static u64 execution_start;  // when it passed its last barrier, perhaps with mem_none
static u32 orders_memory;    // whether a thread at the current barrier asks for memory to be ordered
static u64 run_start;
static u64 simdgroup_start[SIMDGROUPS * LANES];  // per thread: when its SIMD-group passed its last barrier

extern const char image_end[] __asm("_end") HIDDEN;

__attribute__((visibility("default"))) u32 metalnb_slots(u32* into) {
    u32 n = 0;
    for (; slots + n != slots_end; ++n) {
        into[4 * n] = offsets[n];
        into[4 * n + 1] = slots[n].size;
        into[4 * n + 2] = slots[n].alignment;
        into[4 * n + 3] = slots[n].id;
    }
    return n;
}
__attribute__((visibility("default"))) u64 metalnb_image(void) { return (u64)image; }
__attribute__((visibility("default"))) u64 metalnb_arena_of(u64 worker) { return worker + ARENA; }
HIDDEN u64* metalnb_stopping;        // read by the kernel's loops
static u32 late_thread, late_turns;  // the thread in a loop when the time is up, and its iterations since

static inline u32 index_in_group(const worker* w) { return w->current->first + w->lane; }
static inline u64 moment_of(mark m) { return m >> 36; }
static inline u32 thread_of(mark m) { return m >> 26 & 1023; }
static inline u32 is_atomic(mark m) { return m >> 25 & 1; }
static inline u32 position_of(mark m) { return m & 0x1ffffff; }
static inline u32 position_at(address from) { return (u32)(from - (address)image); }

/// Begin a new moment.
static u64 begin_moment(void) {
    if (++metalnb_now >> 28) state->stopped = 2;
    placeholder_unit.later = metalnb_now << 36;
    return metalnb_now;
}

static u32 group_at(u64 moment) {
    u64 low = 0, high = state->groups;
    while (high - low > 1) {
        const u64 middle = (low + high) / 2;
        *(state->group_records[middle].moment <= moment ? &low : &high) = middle;
    }
    return state->group_records[low].group;
}

static u32 grid_index(const worker* w, u32 i) {
    const region* r = &w->group;
    const u32 x = i % r->size.x, y = i / r->size.x % r->size.y, z = i / (r->size.x * r->size.y);
    return ((r->first.z * r->nominal.z + z) * r->grid.y + r->first.y * r->nominal.y + y) * r->grid.x +
           r->first.x * r->nominal.x + x;
}

static finding* record_finding(u32 kind, u32 position, u32 other_position, u32 region_number) {
    if (state->stopped > 1) return 0;
    for (u32 i = 0; i < state->found; ++i) {
        finding* f = &state->findings[i];
        const u32 is_same = f->position == position && f->other_position == other_position;
        if (is_same && f->kind == kind && f->region == region_number) {
            ++f->count;
            return 0;
        }
    }
    if (state->found == FINDINGS) return 0;
    finding* f = &state->findings[state->found++];
    *f = (finding){.kind = kind, .position = position, .other_position = other_position, .count = 1};
    f->region = region_number;
    worker* w = self();
    f->thread = grid_index(w, index_in_group(w));
    f->group = group_number;
    return f;
}

#include "fences.h"
#include "marks.h"

/// Called when all remaining threads are at barriers, or none remains.
static void end_interval(void* worker_) {
    worker* w = worker_;
    const u32 threads = w->group.size.x * w->group.size.y * w->group.size.z;
    u32 waiting = 0, missing = ~0u, at = 0;
    address site = 0, other = 0;
    for (u32 i = 0; i < w->simdgroups; ++i) {
        const simdgroup* g = &w->all[i];
        const u32 lanes = least(LANES, threads - i * LANES), every = lanes == LANES ? ~0u : (1u << lanes) - 1;
        if (g->waiting != every && missing == ~0u) missing = i * LANES + (u32)__builtin_ctz(~g->waiting);
        waiting += (u32)__builtin_popcount(g->waiting);
        if (!g->waiting) continue;
        if (!site) at = i * LANES + (u32)__builtin_ctz(g->waiting), site = g->site[at % LANES];
        address differing = 0;
        for (u32 k = 0; k < LANES; ++k) differing |= g->waiting >> k & 1 ? g->site[k] ^ site : 0;
        if (differing) other = site ^ differing;
        for (u32 k = 0; differing && k < LANES; ++k) if (g->waiting >> k & 1 && g->site[k] != site) other = g->site[k];
    }
    if (state->stopped) state->stopped = 2;
    if (state->stopped) return;
    if (waiting && waiting + ended_threads < threads) {
        finding* f = record_finding(BARRIER, position_at(site), 0, ~0u);
        if (f) f->thread = grid_index(w, missing), f->other = grid_index(w, at);
    } else if (other) {
        finding* f = record_finding(BARRIER, position_at(site), position_at(other), ~0u);
        if (f) f->thread = grid_index(w, at);
    }
    execution_start = begin_moment();
    if (orders_memory) {
        interval_start = execution_start;
        merge_visible(w);
    }
    orders_memory = 0;
}
HIDDEN void metalnb_orders_memory(void) { orders_memory = 1; }

static void begin_group(void* worker_, u64 index) {
    group_number = (u32)index;
    finish_race();
    if (state->stopped || state->groups == state->max_groups) state->stopped = 2;
    group_start = interval_start = execution_start = begin_moment();
    orders_memory = 0;
    if (state->stopped < 2) state->group_records[state->groups++] = (group_record){(u32)group_start, group_number};
    ended_threads = 0;
    reset_threads(worker_);
}

/// Called at a SIMD-group barrier, after which the participating threads see each other's writes.
HIDDEN void metalnb_ordered(const u64* values, const u64* operands, u64* results, u32 active) {
    const worker* w = self();
    const u64 now = begin_moment();
    for (u32 rest = active; rest; rest &= rest - 1) simdgroup_start[w->current->first + (u32)__builtin_ctz(rest)] = now;
}

__attribute__((visibility("default"))) void metalnb_watch(watch* new_state) {
    state = new_state;
    metalnb_stopping = &new_state->stopped;
    late_thread = late_turns = 0;
    metalnb_now = run_start = new_state->now;
    begin_fences();
    begin_sites();
}

/// Add up the sites' counts. Called after the threadgroups of a piece have run.
__attribute__((visibility("default"))) void metalnb_counted(void) {
    finish_race();
    count_sites();
    state->now = metalnb_now;
    state->accesses = 0;
    for (u64 i = 0; i < state->count; ++i) {
        const watched* r = &state->regions[i];
        state->accesses += r->reads + r->writes + r->strays;
    }
}

#include "hooks.h"
