// Kernels in vector registers: the kernel's own object file runs a threadgroup, all of it on one core. Where its
// SIMD-groups wait for each other they are coroutines, whose frames lie where fibers have their stacks.
#include "faults.h"

HIDDEN u32 metalnb_threads(const u64* arguments, const region* r, address arena, address frames, u64 bytes);

/// Set where a threadgroup's frames had no room: it did not run.
__attribute__((visibility("default"))) u32 metalnb_full = 0;

/// Run `count` threadgroups from the `first` one on, in a worker's region if the kernel has use for one.
__attribute__((visibility("default"))) void metalnb_groups(const dispatch* d, void* scratch, u64 first, u64 count) {
    u64 arguments[64];
    const address arena = scratch ? (address)scratch + ARENA : 0, frames = scratch ? (address)scratch + STACKS : 0;
    const address given = arena + d->static_memory;
    for (u32 i = 0; i < d->count; ++i) {
        const u64 a = d->arguments[i];
        arguments[i] = a & IN_THREADGROUP ? given + (a & ~IN_THREADGROUP) : a;
    }
    const u64 bytes = backed_stacks(d) - STACKS;
    for (u64 i = first; i < first + count; ++i) {
        const region r = threadgroup(d, i);
        if (!metalnb_threads(arguments, &r, arena, frames, bytes)) metalnb_full = 1;
    }
}
