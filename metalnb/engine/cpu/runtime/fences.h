// The happens-before order that fences establish: part of validation.c.
//
// A thread that executes a fence and then writes an atomic publishes everything that it did before the fence, and
// everything that was visible to it. A thread that reads that atomic and then executes a fence sees all of this. A
// barrier makes everything visible to one thread of a threadgroup visible to all.
#pragma once

enum { DEVICE_SCOPE = 1, THREADGROUP_SCOPE, SIMDGROUP_SCOPE };

typedef struct known known;
typedef struct release release;
typedef struct {
    u64 moment, group_start, interval_start, since;
    u32 thread, scope, shared, device;  // shared, device: which memory
    const known *heard, *group_heard;     // what is visible to the thread, and to its entire threadgroup
    u64 asked;                          // the last query that visited this fence
} fence;
struct release { fence* by; const release* earlier; };  // a write of an atomic, and the one before it
struct known { const release* what; const known* next; u32 scope, shared, device; };

static u32 fenced, lost;  // whether there was a fence; whether memory for the order of fences ran out
static fence* last_fence[SIMDGROUPS * LANES];
static const known *pending[SIMDGROUPS * LANES];  // what a thread has read from atomics since its last fence
static const known *heard[SIMDGROUPS * LANES], *group_heard;

static char fence_pool[32 << 20] __attribute__((aligned(16)));
static u64 pool_used, question;
static struct { u64 at; const release* head; } released[1 << 16];  // a hash table: by the atomic's address
static u32 released_count;

static void* taken(u64 bytes) {
    if (pool_used + bytes > sizeof fence_pool) {
        lost = 1;
        return 0;
    }
    void* at = fence_pool + pool_used;
    pool_used += bytes;
    return at;
}
static void begin_fences(void) {
    if (fenced) for (u32 i = 0; i < sizeof released / sizeof *released; ++i) released[i].at = 0;
    fenced = lost = released_count = 0;
    pool_used = 0;
}
/// A threadgroup begins.
static void forget(const worker* w) {
    for (u32 i = 0; i < w->simdgroups * LANES; ++i) {
        since[i] = 0;
        last_fence[i] = 0;
        pending[i] = heard[i] = 0;
    }
    group_heard = 0;
}
static const known* with(const known* list, const release* what, u32 scope, u32 shared, u32 device) {
    known* k = taken(sizeof(known));
    if (k) *k = (known){what, list, scope, shared, device};
    return k ? k : list;
}
static void told_all(const worker* w) {
    if (!fenced) return;
    for (u32 i = 0; i < w->simdgroups * LANES; ++i) {
        for (const known* k = heard[i]; k; k = k->next) {
            group_heard = with(group_heard, k->what, k->scope, k->shared, k->device);
        }
        heard[i] = 0;
    }
}

/// A fence in the kernel: host.h.
HIDDEN void metalnb_fence(u32 scope, u32 shared, u32 device) {
    const u32 thread = index_in_group(self());
    for (const known* k = pending[thread]; k; k = k->next) {
        heard[thread] = with(heard[thread], k->what, scope, shared, device);
    }
    pending[thread] = 0;
    fence* f = last_fence[thread] = taken(sizeof(fence));
    if (f) {
        *f = (fence){passed(), group_start, interval_start, since[thread], thread, scope, shared, device, heard[thread],
                     group_heard, 0};
    }
    fenced = 1;
}

/// An atomic operation: a read, a write, or both.
static void at_atomic(u64 at, u32 reads, u32 writes) {
    if (!fenced || lost) return;
    const u32 thread = index_in_group(self());
    fence* mine = writes ? last_fence[thread] : 0;
    u64 i = (at >> 2) * 0x9e3779b97f4a7c15ull >> 48;
    while (released[i].at && released[i].at != at) i = (i + 1) & 0xffff;
    if (!released[i].at) {
        if (!mine) return;
        if (++released_count > 0xe000) {
            lost = 1;
            return;
        }
        released[i].at = at;
        released[i].head = 0;
    }
    const release* head = released[i].head;
    if (reads && head && !(pending[thread] && pending[thread]->what == head)) {
        pending[thread] = with(pending[thread], head, 0, 0, 0);
    }
    if (!writes) return;
    release* r = mine ? taken(sizeof(release)) : 0;
    if (r) *r = (release){mine, reads ? head : 0};
    if (r || !reads) released[i].head = r;
}

/// Whether fences have made a mark's access visible to a thread.
static int told_of(mark m, u32 thread, u32 shared) {
    if (lost) return 1;  // prefer a missed finding to a false one
    static const known* left[1 << 14];
    u32 count = 0;
    const u64 moment = moment_of(m);
    const u32 who = thread_of(m);
    ++question;
    left[count++] = heard[thread];
    left[count++] = group_heard;
    while (count) {
        for (const known* k = left[--count]; k; k = k->next) {
            for (const release* r = k->what; r; r = r->earlier) {
                fence* f = r->by;
                if (f->moment <= moment || f->asked == question) continue;
                if (!(shared ? f->shared && k->shared : f->device && k->device)) continue;
                const u32 scope = f->scope > k->scope ? f->scope : k->scope;
                if (scope != DEVICE_SCOPE && f->group_start != group_start) continue;
                if (scope == SIMDGROUP_SCOPE && f->thread / LANES != thread / LANES) continue;
                f->asked = question;
                const int together = f->thread / LANES == who / LANES && moment < f->since;
                if (moment >= f->group_start && (f->thread == who || moment < f->interval_start || together)) return 1;
                if (count + 2 > sizeof left / sizeof *left) return 1;
                left[count++] = f->heard;
                left[count++] = f->group_heard;
            }
        }
    }
    return 0;
}
