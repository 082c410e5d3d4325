// The process's thread pool, which runs a dispatch's threadgroups on this machine's cores.
// The caller starts immediately and alone; it shares the rest with the workers if that is enough work. So a small
// dispatch wakes no worker, and no dispatch waits for workers that never come (a forked process has none). A sleeping
// thread takes about 50 µs to wake, as long as many dispatches run. So a worker spins for a while, waiting for
// the next dispatch, before it sleeps; the caller likewise spins before it sleeps until the last workers are done.
#include "system.h"

typedef void groups(const dispatch* d, void* scratch, u64 first, u64 count);

// Nanoseconds.
#define SOON 2000       // before this the caller does not estimate a dispatch's time
#define SHARED 6000     // share the rest with spinning workers if it would take the caller this long alone,
#define WOKEN 30000     // and with sleeping workers if it would take this long:
#define EACH 10000      // one worker for each such part
#define WATCHED 100000  // how long a thread spins before it sleeps
#define MOST 256        // workers

// ---- Regions for fibers: reserved, and backed by memory only where a dispatch needs it. Unused ones are kept.
typedef struct { char* start; u64 stacks, memory; } place;  // bytes backed by memory, after `start` and after ARENA
static mutex keeping;
static place kept[MOST];
static u32 kept_count;

/// A region for a dispatch; its start is 0 if there is no memory.
static place taken(const dispatch* d) {
    place p = {0, 0, 0};
    lock(&keeping);
    if (kept_count) p = kept[--kept_count];
    unlock(&keeping);
    if (!p.start && !(p.start = reserved())) return p;
    const u64 stacks = backed_stacks(d);
    const u64 memory = (u64)d->memory + d->static_memory + 4096;
    if (stacks > p.stacks && backed(p.start, stacks)) p.stacks = stacks;
    if (memory > p.memory && backed(p.start + ARENA, memory)) p.memory = memory;
    if (stacks <= p.stacks && memory <= p.memory) return p;
    released(p.start);
    return (place){0, 0, 0};
}

static void given_back(place p) {
    lock(&keeping);
    const int full = kept_count == MOST;
    if (!full) kept[kept_count++] = p;
    unlock(&keeping);
    if (full) released(p.start);
}

// ---- The current work.
static mutex one_dispatch;  // held by the thread whose dispatch uses the workers
static mutex changing;
static condition begun, ended;
static u32 workers, started;
static u64 number;  // the dispatch's number: each worker joins it once
static u32 joined;  // workers working on it
static u32 watching;  // workers that spin, waiting for the next dispatch
static struct { groups* run; const dispatch* d; u64 next, end, step; int fibers, open; } work;

static u32 count_of(const u32* n) { return __atomic_load_n(n, __ATOMIC_ACQUIRE); }

static inline void pause_briefly(void) {
#if __x86_64__
    __builtin_ia32_pause();
#elif __aarch64__
    __asm__ volatile("yield");
#endif
}

/// Spin until a dispatch other than `seen` arrives, or until the spinning time is over.
static void watch_for_work(u64 seen) {
    for (const u64 until = now() + WATCHED; now() < until;)
        for (int i = 0; i < 32; ++i) {
            if (__atomic_load_n(&number, __ATOMIC_ACQUIRE) != seen) return;
            pause_briefly();
        }
}

/// Spin until the last worker is done, or until the spinning time is over.
static void watch_for_end(void) {
    for (const u64 until = now() + WATCHED; count_of(&joined) && now() < until;)
        for (int i = 0; i < 32 && count_of(&joined); ++i) pause_briefly();
}

/// Run pieces of the work until none is left; return 0 if there is no memory for the fibers.
static int helped(void) {
    const place p = work.fibers ? taken(work.d) : (place){0, 0, 0};
    if (work.fibers && !p.start) return 0;
    for (;;) {
        const u64 first = __atomic_fetch_add(&work.next, work.step, __ATOMIC_RELAXED);
        if (first >= work.end) break;
        const u64 left = work.end - first;
        work.run(work.d, p.start, first, left < work.step ? left : work.step);
    }
    if (p.start) given_back(p);
    return 1;
}

THREAD(working) {
    u64 seen = 0;
    lock(&changing);
    for (;;) {
        if (!work.open) seen = number;
        if (number == seen) {
            __atomic_add_fetch(&watching, 1, __ATOMIC_RELAXED);
            unlock(&changing);
            watch_for_work(seen);
            lock(&changing);
            __atomic_sub_fetch(&watching, 1, __ATOMIC_RELAXED);
            while (number == seen) wait_for(&begun, &changing);
            continue;
        }
        seen = number;
        __atomic_add_fetch(&joined, 1, __ATOMIC_RELAXED);
        unlock(&changing);
        helped();
        lock(&changing);
        if (!__atomic_sub_fetch(&joined, 1, __ATOMIC_RELEASE)) wake_one(&ended);
    }
    return 0;
}

/// Prepare for `count` workers besides the caller. Called once.
__attribute__((visibility("default"))) void metalnb_open(u32 count) {
    begin_lock(&keeping);
    begin_lock(&one_dispatch);
    begin_lock(&changing);
    begin_condition(&begun);
    begin_condition(&ended);
    workers = count < MOST ? count : MOST;
}

/// Wake as many workers as the caller's remaining time calls for; spinning ones join on their own.
static void wake_for(u64 nanoseconds) {
    const u64 wanted = nanoseconds / EACH, ready = count_of(&watching);
    if (wanted >= started) wake_all(&begun);
    else
        for (u64 n = ready; n < wanted; ++n) wake_one(&begun);
}

static int shared(groups* run, const dispatch* d, u64 first, u64 end, int fibers, u64 left) {
    lock(&changing);
    for (; started < workers; ++started) if (!thread_begun(working)) break;
    work.run = run;
    work.d = d;
    work.next = first;
    work.end = end;
    work.step = (end - first) / (8 * (started + 1)) + 1;
    work.fibers = fibers;
    work.open = 1;
    __atomic_add_fetch(&number, 1, __ATOMIC_RELEASE);
    wake_for(left);
    unlock(&changing);
    const int done = helped();
    lock(&changing);
    work.open = 0;
    unlock(&changing);
    watch_for_end();
    lock(&changing);
    while (joined) wait_for(&ended, &changing);
    const int whole = work.next >= end;
    unlock(&changing);
    return done || whole;
}

/// Lend a region to a dispatch that does not use the pool's threads.
__attribute__((visibility("default"))) int metalnb_lend(const dispatch* d, place* into) {
    *into = taken(d);
    return into->start != 0;
}
__attribute__((visibility("default"))) void metalnb_return(const place* lent) { given_back(*lent); }

/// Run a dispatch to its end; return 0 if there is no memory for its fibers.
__attribute__((visibility("default"))) u64 metalnb_run(groups* run, const dispatch* d, int fibers) {
    const u64 end = (u64)d->groups.x * d->groups.y * d->groups.z;
    const place p = fibers ? taken(d) : (place){0, 0, 0};
    if (fibers && !p.start) return 0;
    const u64 start = now();
    int done = 1;
    for (u64 first = 0, step = 1; first < end;) {
        const u64 count = end - first < step ? end - first : step;
        run(d, p.start, first, count);
        first += count;
        if (first == end) break;
        const u64 elapsed = now() - start, left = elapsed * (end - first) / first;
        const int worth = left > WOKEN || (left > SHARED && count_of(&watching));
        if (elapsed > SOON && worth && workers && lock_if_free(&one_dispatch)) {
            done = shared(run, d, first, end, fibers, left);
            unlock(&one_dispatch);
            break;
        }
        if (elapsed < SOON) step *= 2;  // so that a dispatch of many small threadgroups rarely reads the clock
    }
    const u64 took = now() - start;
    if (p.start) given_back(p);
    return done ? took + !took : 0;
}
