// The pool: what runs the threadgroups of a dispatch over this machine's cores. One for the process.
//
// The caller begins at once, alone; what is not done after some microseconds is shared with the workers. So a small
// dispatch wakes nobody, and none depends on workers that never come (in a process that was forked there are none).
#include "dispatch.h"

typedef void groups(const dispatch* d, void* scratch, u64 first, u64 count);

#define REGION (512ull << 20)  // as in fibers.c
#define ALONE 15000            // nanoseconds
#define MOST 256               // workers

// ---- The system: declared here, since no headers of the C library come with the compiler.
#if __APPLE__
typedef struct { long signature; char rest[56]; } mutex;
typedef struct { long signature; char rest[40]; } condition;
#define ANONYMOUS (0x2 | 0x1000 | 0x40)  // MAP_PRIVATE, MAP_ANON, MAP_NORESERVE
#define CLOCK 6                          // CLOCK_MONOTONIC
#else
typedef struct { long words[16]; } mutex;  // at least as large as the C library's own
typedef struct { long words[16]; } condition;
#define ANONYMOUS (0x2 | 0x20 | 0x4000)
#define CLOCK 1
#endif
typedef struct { long seconds, nanoseconds; } timespec;
int pthread_mutex_init(mutex*, const void*);
int pthread_mutex_lock(mutex*);
int pthread_mutex_trylock(mutex*);
int pthread_mutex_unlock(mutex*);
int pthread_cond_init(condition*, const void*);
int pthread_cond_wait(condition*, mutex*);
int pthread_cond_signal(condition*);
int pthread_cond_broadcast(condition*);
int pthread_create(void** thread, const void* attributes, void* (*start)(void*), void* argument);
int pthread_detach(void* thread);
int clock_gettime(int clock, timespec*);
void* mmap(void*, u64 bytes, int protection, int flags, int file, long offset);
int munmap(void*, u64 bytes);

static u64 now(void) {
    timespec t;
    clock_gettime(CLOCK, &t);
    return (u64)t.seconds * 1000000000 + (u64)t.nanoseconds;
}

// ---- Regions, for fibers: reserved, and backed by memory only where they are touched. Those not in use are kept.
static mutex keeping;
static void* kept[MOST];
static u32 kept_count;

static void* taken(void) {
    void* region = 0;
    pthread_mutex_lock(&keeping);
    if (kept_count) region = kept[--kept_count];
    pthread_mutex_unlock(&keeping);
    if (region) return region;
    char* whole = mmap(0, 2 * REGION, 3, ANONYMOUS, -1, 0);
    if (whole == (char*)-1) return 0;
    char* aligned = (char*)(((address)whole + REGION - 1) & ~(address)(REGION - 1));
    if (aligned != whole) munmap(whole, (u64)(aligned - whole));
    munmap(aligned + REGION, (u64)(whole + REGION - aligned));
    return aligned;
}

static void given_back(void* region) {
    pthread_mutex_lock(&keeping);
    const int full = kept_count == MOST;
    if (!full) kept[kept_count++] = region;
    pthread_mutex_unlock(&keeping);
    if (full) munmap(region, REGION);
}

// ---- The work at hand.
static mutex one_dispatch;  // held by the thread whose dispatch has the workers
static mutex changing;
static condition begun, ended;
static u32 workers, started;
static u64 number;  // of the dispatch, so that each worker joins it once
static u32 joined;  // workers at it
static struct { groups* run; const dispatch* d; u64 next, end, step; int fibers, open; } work;

/// Do pieces of the work until none is left; 0 when there is no memory for the fibers.
static int helped(void) {
    void* scratch = work.fibers ? taken() : 0;
    if (work.fibers && !scratch) return 0;
    for (;;) {
        const u64 first = __atomic_fetch_add(&work.next, work.step, __ATOMIC_RELAXED);
        if (first >= work.end) break;
        const u64 left = work.end - first;
        work.run(work.d, scratch, first, left < work.step ? left : work.step);
    }
    if (scratch) given_back(scratch);
    return 1;
}

static void* working(void* unused) {
    u64 seen = 0;
    pthread_mutex_lock(&changing);
    for (;;) {
        while (!work.open || number == seen) pthread_cond_wait(&begun, &changing);
        seen = number;
        ++joined;
        pthread_mutex_unlock(&changing);
        helped();
        pthread_mutex_lock(&changing);
        if (!--joined) pthread_cond_signal(&ended);
    }
    return unused;
}

/// Get ready for `count` workers beside the caller. Called once.
__attribute__((visibility("default"))) void metalnb_open(u32 count) {
    pthread_mutex_init(&keeping, 0);
    pthread_mutex_init(&one_dispatch, 0);
    pthread_mutex_init(&changing, 0);
    pthread_cond_init(&begun, 0);
    pthread_cond_init(&ended, 0);
    workers = count < MOST ? count : MOST;
}

static int shared(groups* run, const dispatch* d, u64 first, u64 end, int fibers) {
    pthread_mutex_lock(&changing);
    for (; started < workers; ++started) {
        void* thread;
        if (pthread_create(&thread, 0, working, 0)) break;
        pthread_detach(thread);
    }
    work.run = run;
    work.d = d;
    work.next = first;
    work.end = end;
    work.step = (end - first) / (8 * (started + 1)) + 1;
    work.fibers = fibers;
    work.open = 1;
    ++number;
    pthread_cond_broadcast(&begun);
    pthread_mutex_unlock(&changing);
    const int done = helped();
    pthread_mutex_lock(&changing);
    work.open = 0;
    while (joined) pthread_cond_wait(&ended, &changing);
    const int whole = work.next >= end;
    pthread_mutex_unlock(&changing);
    return done || whole;
}

/// Run a dispatch to its end; 0 when there is no memory for its fibers.
__attribute__((visibility("default"))) int metalnb_run(groups* run, const dispatch* d, int fibers) {
    const u64 end = (u64)d->groups.x * d->groups.y * d->groups.z;
    void* scratch = fibers ? taken() : 0;
    if (fibers && !scratch) return 0;
    const u64 start = now();
    int done = 1;
    for (u64 first = 0, step = 1; first < end;) {
        const u64 count = end - first < step ? end - first : step;
        run(d, scratch, first, count);
        first += count;
        const u64 elapsed = first < end ? now() - start : 0;
        if (elapsed > ALONE && workers && !pthread_mutex_trylock(&one_dispatch)) {
            done = shared(run, d, first, end, fibers);
            pthread_mutex_unlock(&one_dispatch);
            break;
        }
        if (elapsed < ALONE / 2) step *= 2;  // so that a dispatch of many small threadgroups asks the time seldom
    }
    if (scratch) given_back(scratch);
    return done;
}
