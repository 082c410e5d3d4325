// The system's functions that the pool uses: locks, threads, a clock, memory. They are declared here because the
// compiler comes without the C library's headers.
#pragma once
#include "dispatch.h"

#if _WIN32
#include "windows.h"
#else

#if __APPLE__
typedef struct { long signature; char rest[56]; } mutex;
typedef struct { long signature; char rest[40]; } condition;
#define ANONYMOUS (0x2 | 0x1000 | 0x40)  // MAP_PRIVATE, MAP_ANON, MAP_NORESERVE
#define CLOCK 6                          // CLOCK_MONOTONIC
#else
typedef struct { long words[16]; } mutex;  // at least as large as the C library's
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

static inline void init_lock(mutex* m) { pthread_mutex_init(m, 0); }
static inline void lock(mutex* m) { pthread_mutex_lock(m); }
static inline int lock_if_free(mutex* m) { return !pthread_mutex_trylock(m); }
static inline void unlock(mutex* m) { pthread_mutex_unlock(m); }
static inline void init_condition(condition* c) { pthread_cond_init(c, 0); }
static inline void wait_for(condition* c, mutex* m) { pthread_cond_wait(c, m); }
static inline void wake_one(condition* c) { pthread_cond_signal(c); }
static inline void wake_all(condition* c) { pthread_cond_broadcast(c); }

#define THREAD(name) static void* name(void* unused)
static inline int start_thread(void* (*start)(void*)) {
    void* thread;
    if (pthread_create(&thread, 0, start, 0)) return 0;
    pthread_detach(thread);
    return 1;
}

/// The time in nanoseconds.
static inline u64 now(void) {
    timespec t;
    clock_gettime(CLOCK, &t);
    return (u64)t.seconds * 1000000000 + (u64)t.nanoseconds;
}

/// A region's addresses, aligned to its size and backed by memory where accessed; 0 if there are none.
static inline char* reserve_region(void) {
    char* range = mmap(0, 2 * REGION, 3, ANONYMOUS, -1, 0);
    if (range == (char*)-1) return 0;
    char* aligned = (char*)(((address)range + REGION - 1) & ~(address)(REGION - 1));
    if (aligned != range) munmap(range, (u64)(aligned - range));
    munmap(aligned + REGION, (u64)(range + REGION - aligned));
    return aligned;
}
static inline void release_region(char* region) { munmap(region, REGION); }
static inline int commit_memory(char* start, u64 bytes) { return 1; }
#endif
