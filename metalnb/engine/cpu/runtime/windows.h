// system.h for Windows, with the locks and condition variables that are as small as a pointer.
#pragma once

typedef struct { void* word; } mutex;  // SRWLOCK, CONDITION_VARIABLE: 0 is ready for use
typedef struct { void* word; } condition;
void AcquireSRWLockExclusive(mutex*);
u8 TryAcquireSRWLockExclusive(mutex*);
void ReleaseSRWLockExclusive(mutex*);
int SleepConditionVariableSRW(condition*, mutex*, u32 milliseconds, u32 flags);
void WakeConditionVariable(condition*);
void WakeAllConditionVariable(condition*);
void* CreateThread(void* security, u64 stack, u32 (*start)(void*), void* argument, u32 flags, u32* id);
int CloseHandle(void*);
int QueryPerformanceCounter(u64*);
int QueryPerformanceFrequency(u64*);
void* VirtualAlloc(void* start, u64 bytes, u32 how, u32 protection);
int VirtualFree(void* start, u64 bytes, u32 how);

static inline void init_lock(mutex* m) { m->word = 0; }
static inline void lock(mutex* m) { AcquireSRWLockExclusive(m); }
static inline int lock_if_free(mutex* m) { return TryAcquireSRWLockExclusive(m); }
static inline void unlock(mutex* m) { ReleaseSRWLockExclusive(m); }
static inline void init_condition(condition* c) { c->word = 0; }
static inline void wait_for(condition* c, mutex* m) { SleepConditionVariableSRW(c, m, ~0u, 0); }
static inline void wake_one(condition* c) { WakeConditionVariable(c); }
static inline void wake_all(condition* c) { WakeAllConditionVariable(c); }

#define THREAD(name) static u32 name(void* unused)
#define AS_A_RESERVATION 0x10000  // STACK_SIZE_PARAM_IS_A_RESERVATION
static inline int start_thread(u32 (*start)(void*)) {
    void* thread = CreateThread(0, 8 << 20, start, 0, AS_A_RESERVATION, 0);  // as much stack as on Linux
    if (!thread) return 0;
    CloseHandle(thread);
    return 1;
}

/// The time in nanoseconds.
static inline u64 now(void) {
    u64 ticks, frequency;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&frequency);
    return ticks / frequency * 1000000000 + ticks % frequency * 1000000000 / frequency;
}

enum { COMMIT = 0x1000, RESERVE = 0x2000, RELEASE = 0x8000, NO_ACCESS = 1, READ_WRITE = 4 };
/// A region's addresses, aligned to its size; 0 if there are none.
static inline char* reserve_region(void) {
    for (int attempt = 0; attempt < 16; ++attempt) {
        char* range = VirtualAlloc(0, 2 * REGION, RESERVE, NO_ACCESS);
        if (!range) return 0;
        VirtualFree(range, 0, RELEASE);  // parts cannot be released; another thread may take the addresses first
        char* aligned = (char*)(((address)range + REGION - 1) & ~(address)(REGION - 1));
        char* region = VirtualAlloc(aligned, REGION, RESERVE, NO_ACCESS);
        if (region) return region;
    }
    return 0;
}
static inline void release_region(char* region) { VirtualFree(region, 0, RELEASE); }
/// Windows does not overcommit memory, so only what a dispatch needs is committed.
static inline int commit_memory(char* start, u64 bytes) { return VirtualAlloc(start, bytes, COMMIT, READ_WRITE) != 0; }
