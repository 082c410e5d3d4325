// The happens-before order that fences establish: part of validation.c.
//
// A thread that executes a fence and then writes an atomic publishes everything that it did before the fence, and
// everything that was visible to it. A thread that reads that atomic and then executes a fence sees all of this. A
// barrier makes everything visible to one thread of a threadgroup visible to all.
#pragma once

enum { DEVICE_SCOPE = 1, THREADGROUP_SCOPE, SIMDGROUP_SCOPE };

typedef struct release_list release_list;
typedef struct release release;
typedef struct {
    u64 moment, group_start, interval_start, simdgroup_start;
    u32 thread, scope, shared, device;  // shared, device: which memory it orders
    const release_list *visible, *group_visible;  // writes visible to the thread, and to its entire threadgroup
    u64 last_query;                               // the last query that visited this fence
} fence;
struct release { fence* source; const release* earlier; };  // a write of an atomic, and the previous one
struct release_list { const release* write; const release_list* next; u32 scope, shared, device; };

static u32 has_fences, is_incomplete;  // whether there was a fence; whether memory for the order of fences ran out
static fence* last_fence[SIMDGROUPS * LANES];
static const release_list *pending[SIMDGROUPS * LANES];  // writes that a thread has read since its last fence
static const release_list *visible[SIMDGROUPS * LANES], *group_visible;

static char fence_pool[32 << 20] __attribute__((aligned(16)));
static u64 pool_used, query;
static struct { u64 at; const release* head; } releases[1 << 16];  // a hash table: by the atomic's address
static u32 release_count;

static void* allocate(u64 bytes) {
    if (pool_used + bytes > sizeof fence_pool) {
        is_incomplete = 1;
        return 0;
    }
    void* at = fence_pool + pool_used;
    pool_used += bytes;
    return at;
}
static void begin_fences(void) {
    if (has_fences) for (u32 i = 0; i < sizeof releases / sizeof *releases; ++i) releases[i].at = 0;
    has_fences = is_incomplete = release_count = 0;
    pool_used = 0;
}
/// A threadgroup begins.
static void reset_threads(const worker* w) {
    for (u32 i = 0; i < w->simdgroups * LANES; ++i) {
        simdgroup_start[i] = 0;
        last_fence[i] = 0;
        pending[i] = visible[i] = 0;
    }
    group_visible = 0;
}
static const release_list* prepend(const release_list* list, const release* write, u32 scope, u32 shared, u32 device) {
    release_list* k = allocate(sizeof(release_list));
    if (k) *k = (release_list){write, list, scope, shared, device};
    return k ? k : list;
}
static void merge_visible(const worker* w) {
    if (!has_fences) return;
    for (u32 i = 0; i < w->simdgroups * LANES; ++i) {
        for (const release_list* k = visible[i]; k; k = k->next) {
            group_visible = prepend(group_visible, k->write, k->scope, k->shared, k->device);
        }
        visible[i] = 0;
    }
}

/// Called for a fence in the kernel (host.h).
HIDDEN void metalnb_fence(u32 scope, u32 shared, u32 device) {
    const u32 thread = index_in_group(self());
    for (const release_list* k = pending[thread]; k; k = k->next) {
        visible[thread] = prepend(visible[thread], k->write, scope, shared, device);
    }
    pending[thread] = 0;
    fence* f = last_fence[thread] = allocate(sizeof(fence));
    if (f) {
        const u64 moment = begin_moment();
        *f = (fence){moment, group_start, interval_start, simdgroup_start[thread], thread, scope, shared, device,
                     visible[thread], group_visible, 0};
    }
    has_fences = 1;
}

/// An atomic operation: a read, a write, or both.
static void record_atomic(u64 at, u32 reads, u32 writes) {
    if (!has_fences || is_incomplete) return;
    const u32 thread = index_in_group(self());
    fence* mine = writes ? last_fence[thread] : 0;
    u64 i = (at >> 2) * 0x9e3779b97f4a7c15ull >> 48;
    while (releases[i].at && releases[i].at != at) i = (i + 1) & 0xffff;
    if (!releases[i].at) {
        if (!mine) return;
        if (++release_count > 0xe000) {
            is_incomplete = 1;
            return;
        }
        releases[i].at = at;
        releases[i].head = 0;
    }
    const release* head = releases[i].head;
    if (reads && head && !(pending[thread] && pending[thread]->write == head)) {
        pending[thread] = prepend(pending[thread], head, 0, 0, 0);
    }
    if (!writes) return;
    release* r = mine ? allocate(sizeof(release)) : 0;
    if (r) *r = (release){mine, reads ? head : 0};
    if (r || !reads) releases[i].head = r;
}

/// Whether fences have made a mark's access visible to a thread.
static int is_visible(mark m, u32 thread, u32 shared) {
    if (is_incomplete) return 1;  // prefer a missed finding to a false one
    static const release_list* worklist[1 << 14];
    u32 count = 0;
    const u64 moment = moment_of(m);
    const u32 writer = thread_of(m);
    ++query;
    worklist[count++] = visible[thread];
    worklist[count++] = group_visible;
    while (count) {
        for (const release_list* k = worklist[--count]; k; k = k->next) {
            for (const release* r = k->write; r; r = r->earlier) {
                fence* f = r->source;
                if (f->moment <= moment || f->last_query == query) continue;
                if (!(shared ? f->shared && k->shared : f->device && k->device)) continue;
                const u32 scope = f->scope > k->scope ? f->scope : k->scope;
                if (scope != DEVICE_SCOPE && f->group_start != group_start) continue;
                if (scope == SIMDGROUP_SCOPE && f->thread / LANES != thread / LANES) continue;
                f->last_query = query;
                const int same_simdgroup = f->thread / LANES == writer / LANES && moment < f->simdgroup_start;
                const int is_ordered = f->thread == writer || moment < f->interval_start || same_simdgroup;
                if (moment >= f->group_start && is_ordered) return 1;
                if (count + 2 > sizeof worklist / sizeof *worklist) return 1;
                worklist[count++] = f->visible;
                worklist[count++] = f->group_visible;
            }
        }
    }
    return 0;
}
