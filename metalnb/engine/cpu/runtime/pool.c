// The process's thread pool, which runs a dispatch's threadgroups on this machine's cores.
// The caller starts immediately and alone; it shares the rest with the workers if that is enough work. So a small
// dispatch wakes no worker, and no dispatch waits for workers that never come. A sleeping thread takes about 50 µs to
// wake, which is as long as many dispatches run. So a worker spins for a while, waiting for the next dispatch, before
// it sleeps; the caller likewise spins before it sleeps until the last workers are done.
#include "system.h"

typedef void groups(const dispatch* d, void* scratch, u64 first, u64 count);

// All times are in nanoseconds.
#define ESTIMATE_AFTER 2000      // before this the caller does not estimate a dispatch's time
#define SHARE_IF_SPINNING 6000   // share the rest with spinning workers if it would take the caller this long alone,
#define SHARE_IF_SLEEPING 30000  // and with sleeping workers if it would take this long:
#define WORK_PER_WORKER 10000    // one worker for each part of this length
#define SPIN_TIME 100000         // how long a thread spins before it sleeps
#define MAX_WORKERS 256

// ---- Regions for fibers: reserved, and backed by memory only where a dispatch needs it. Unused ones are kept.
// `stacks`, `memory`: bytes backed by memory, after `start` and after ARENA.
typedef struct { char* start; u64 stacks, memory; } fiber_region;
static mutex regions_lock;
static fiber_region free_regions[MAX_WORKERS];
static u32 free_count;

/// A region for a dispatch; its start is 0 if there is no memory.
static fiber_region acquire_region(const dispatch* d) {
    fiber_region region = {0, 0, 0};
    lock(&regions_lock);
    if (free_count) region = free_regions[--free_count];
    unlock(&regions_lock);
    if (!region.start && !(region.start = reserve_region())) return region;
    const u64 stacks = backed_stacks(d);
    const u64 memory = (u64)d->memory + d->static_memory + 4096;
    if (stacks > region.stacks && commit_memory(region.start, stacks)) region.stacks = stacks;
    if (memory > region.memory && commit_memory(region.start + ARENA, memory)) region.memory = memory;
    if (stacks <= region.stacks && memory <= region.memory) return region;
    release_region(region.start);
    return (fiber_region){0, 0, 0};
}

static void give_back_region(fiber_region region) {
    lock(&regions_lock);
    const int is_full = free_count == MAX_WORKERS;
    if (!is_full) free_regions[free_count++] = region;
    unlock(&regions_lock);
    if (is_full) release_region(region.start);
}

// ---- The current work.
static mutex dispatch_lock;  // held by the thread whose dispatch uses the workers
static mutex work_lock;
static condition work_begun, work_ended;
static u32 workers, running;
static u64 dispatch_number;  // the dispatch's number: each worker joins it once
static u32 active;  // workers working on it
static u32 spinning;  // workers that spin, waiting for the next dispatch
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
static void spin_for_work(u64 seen) {
    for (const u64 until = now() + SPIN_TIME; now() < until;)
        for (int i = 0; i < 32; ++i) {
            if (__atomic_load_n(&dispatch_number, __ATOMIC_ACQUIRE) != seen) return;
            pause_briefly();
        }
}

/// Spin until the last worker is done, or until the spinning time is over.
static void spin_for_end(void) {
    for (const u64 until = now() + SPIN_TIME; count_of(&active) && now() < until;)
        for (int i = 0; i < 32 && count_of(&active); ++i) pause_briefly();
}

/// Run pieces of the work until none remains; return 0 if there is no memory for the fibers.
static int run_pieces(void) {
    const fiber_region region = work.fibers ? acquire_region(work.d) : (fiber_region){0, 0, 0};
    if (work.fibers && !region.start) return 0;
    for (;;) {
        const u64 first = __atomic_fetch_add(&work.next, work.step, __ATOMIC_RELAXED);
        if (first >= work.end) break;
        const u64 remaining = work.end - first;
        work.run(work.d, region.start, first, remaining < work.step ? remaining : work.step);
    }
    if (region.start) give_back_region(region);
    return 1;
}

THREAD(worker_main) {
    u64 seen = 0;
    lock(&work_lock);
    for (;;) {
        if (!work.open) seen = dispatch_number;
        if (dispatch_number == seen) {
            __atomic_add_fetch(&spinning, 1, __ATOMIC_RELAXED);
            unlock(&work_lock);
            spin_for_work(seen);
            lock(&work_lock);
            __atomic_sub_fetch(&spinning, 1, __ATOMIC_RELAXED);
            while (dispatch_number == seen) wait_for(&work_begun, &work_lock);
            continue;
        }
        seen = dispatch_number;
        __atomic_add_fetch(&active, 1, __ATOMIC_RELAXED);
        unlock(&work_lock);
        run_pieces();
        lock(&work_lock);
        if (!__atomic_sub_fetch(&active, 1, __ATOMIC_RELEASE)) wake_one(&work_ended);
    }
    return 0;
}

/// Prepare for `count` workers besides the caller. Called once, and in a forked process, which has no workers, and where
/// the parent's other threads may have held the locks or a region.
__attribute__((visibility("default"))) void metalnb_open(u32 count) {
    running = active = spinning = free_count = 0;
    work.open = 0;
    init_lock(&regions_lock);
    init_lock(&dispatch_lock);
    init_lock(&work_lock);
    init_condition(&work_begun);
    init_condition(&work_ended);
    workers = count < MAX_WORKERS ? count : MAX_WORKERS;
}

/// Wake as many workers as the caller's remaining time calls for; spinning ones join on their own.
static void wake_for(u64 nanoseconds) {
    const u64 needed = nanoseconds / WORK_PER_WORKER, ready = count_of(&spinning);
    if (needed >= running) wake_all(&work_begun);
    else
        for (u64 n = ready; n < needed; ++n) wake_one(&work_begun);
}

static int run_shared(groups* run, const dispatch* d, u64 first, u64 end, int fibers, u64 remaining) {
    lock(&work_lock);
    for (; running < workers; ++running) if (!start_thread(worker_main)) break;
    work.run = run;
    work.d = d;
    work.next = first;
    work.end = end;
    work.step = (end - first) / (8 * (running + 1)) + 1;
    work.fibers = fibers;
    work.open = 1;
    __atomic_add_fetch(&dispatch_number, 1, __ATOMIC_RELEASE);
    wake_for(remaining);
    unlock(&work_lock);
    const int done = run_pieces();
    lock(&work_lock);
    work.open = 0;
    unlock(&work_lock);
    spin_for_end();
    lock(&work_lock);
    while (active) wait_for(&work_ended, &work_lock);
    const int is_complete = work.next >= end;
    unlock(&work_lock);
    return done || is_complete;
}

/// Lend a region to a dispatch that does not use the pool's threads.
__attribute__((visibility("default"))) int metalnb_lend(const dispatch* d, fiber_region* into) {
    *into = acquire_region(d);
    return into->start != 0;
}
__attribute__((visibility("default"))) void metalnb_return(const fiber_region* borrowed) {
    give_back_region(*borrowed);
}

/// Run a dispatch to its end; return 0 if there is no memory for its fibers.
__attribute__((visibility("default"))) u64 metalnb_run(groups* run, const dispatch* d, int fibers) {
    const u64 end = (u64)d->groups.x * d->groups.y * d->groups.z;
    const fiber_region region = fibers ? acquire_region(d) : (fiber_region){0, 0, 0};
    if (fibers && !region.start) return 0;
    const u64 start = now();
    int done = 1;
    for (u64 first = 0, step = 1; first < end;) {
        const u64 count = end - first < step ? end - first : step;
        run(d, region.start, first, count);
        first += count;
        if (first == end) break;
        const u64 elapsed = now() - start, remaining = elapsed * (end - first) / first;
        const int pays_off = remaining > SHARE_IF_SLEEPING || (remaining > SHARE_IF_SPINNING && count_of(&spinning));
        if (elapsed > ESTIMATE_AFTER && pays_off && workers && lock_if_free(&dispatch_lock)) {
            done = run_shared(run, d, first, end, fibers, remaining);
            unlock(&dispatch_lock);
            break;
        }
        if (elapsed < ESTIMATE_AFTER) step *= 2;  // so that a dispatch of many small threadgroups rarely reads the clock
    }
    const u64 nanoseconds_taken = now() - start;
    if (region.start) give_back_region(region);
    return done ? nanoseconds_taken + !nanoseconds_taken : 0;
}
