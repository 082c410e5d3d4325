// The traced build: fibers that log each statement before they run it, with the values of the variables in scope, and
// each access of watched memory. One threadgroup runs, on one core.
#define INSTRUMENTED
#define AT_BARRIER(w) ++epoch
#define AT_START(w, i)
#define GAP 64
#include "dispatch.h"
static unsigned epoch;
#include "fibers.c"

typedef struct { u64 start, size, before, after; } watched;
typedef struct { const void* at; const char* type; u64 size; } variable;  // $variable in steps.h

// A record of the log, in units of 8 bytes: a head, then for a step each variable's head and bytes, for an access the
// bytes after it.
enum { STEP = 1, ENTER, LEAVE, READ_OF, WRITE_OF, WILD_AT };
typedef struct { u32 kind, thread, site, epoch; u64 at; u32 count, size; } record;
typedef struct { u64 at, type; u32 size, kept_bytes; } value;

#define MAX_BYTES 512  // per variable
static struct { char* log; u64 size, used; watched* regions; u32 count, full, first, end; } state;
static struct { u64 at, into; u32 size; } last_write;  // the last write, whose value is in memory at the next event

extern const char image_end[] __asm("_end") HIDDEN;

static void copy(char* to, const char* from, u64 n) {
    for (u64 i = 0; i < n; ++i) ((volatile char*)to)[i] = from[i];
}
static void copy_last_write(void) {
    if (last_write.size) copy(state.log + last_write.into, (const char*)last_write.at, last_write.size);
    last_write.size = 0;
}
static void* allocate(u64 bytes) {
    const u64 size = (bytes + 7) & ~7ull;
    if (state.used + size > state.size) {
        state.full = 1;
        return 0;
    }
    void* at = state.log + state.used;
    state.used += size;
    return at;
}
static u32 index_in_group(const worker* w) { return (u32)(w->current - w->all) * LANES + w->lane; }

static record* append_record(u32 kind, u32 site) {
    copy_last_write();
    worker* w = self();
    record* r = allocate(sizeof(record));
    if (!r) end_thread(w);  // the log is full: every thread ends at its next event
    *r = (record){.kind = kind, .thread = index_in_group(w), .site = site, .epoch = epoch};
    return r;
}

HIDDEN __attribute__((noinline)) void metalnb_step(u32 site, u32 count, const variable* variables) {
    record* r = append_record(STEP, site);
    if (r->thread < state.first || r->thread >= state.end) return;
    r->count = count;
    for (u32 i = 0; i < count; ++i) {
        const variable* v = &variables[i];
        const u32 kept_bytes = v->size <= MAX_BYTES ? (u32)v->size : 0;
        value* into = allocate(sizeof(value) + kept_bytes);
        if (!into) end_thread(self());
        *into = (value){(u64)v->at, (u64)v->type, (u32)v->size, kept_bytes};
        copy((char*)(into + 1), v->at, kept_bytes);
    }
}
HIDDEN __attribute__((noinline)) void metalnb_enter(u32 site) { append_record(ENTER, site); }
HIDDEN __attribute__((noinline)) void metalnb_leave(u32 site) { append_record(LEAVE, site); }

static void record_access(u64 at, u32 size, u32 is_write, u32 atomic, address from) {
    worker* w = self();
    for (u32 i = 0; i < state.count; ++i) {
        const watched* r = &state.regions[i];
        if (at - r->start >= r->size || at - r->start + size > r->size) continue;
        record* into = append_record(is_write ? WRITE_OF : READ_OF, i);
        into->at = at - r->start;
        into->size = size;
        char* bytes = allocate(size);
        if (!bytes) end_thread(w);
        copy(bytes, (const char*)at, size);
        if (is_write) last_write.at = at, last_write.into = (u64)(bytes - state.log), last_write.size = size;
        return;
    }
    const u64 region_start = (u64)w;
    if (at >= region_start && at < region_start + REGION) return;  // the thread's stack, or unnamed threadgroup memory
    if (at >= (u64)image && at < (u64)image_end) return;  // a constant of the program
    u32 in_reach = 0;
    for (u32 i = 0; i < state.count; ++i) {
        const watched* r = &state.regions[i];
        in_reach |= at >= r->start - r->before && at < r->start + r->size + r->after;
    }
    record* into = append_record(WILD_AT, 0);
    into->at = at;
    into->size = size;
    if (!in_reach) end_thread(w);
}
#include "sanitizer_calls.h"

__attribute__((visibility("default"))) void metalnb_record(
    char* log, u64 size, watched* regions, u32 count, u32 first, u32 end) {
    state.first = first;  // the first thread whose variables are kept
    state.end = end;
    state.log = log;
    state.size = size;
    state.used = 0;
    state.regions = regions;
    state.count = count;
    state.full = 0;
    epoch = 0;
    last_write.size = 0;
}
__attribute__((visibility("default"))) u64 metalnb_recorded(u32* full) {
    copy_last_write();
    *full = state.full;
    return state.used;
}
__attribute__((visibility("default"))) u64 metalnb_arena_of(u64 w) { return w + ARENA; }
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
