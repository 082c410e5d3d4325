// Kernels in vector registers: the kernel's object file runs an entire threadgroup on one core. SIMD-groups that wait
// for each other are coroutines, whose frames replace the stacks of fibers.
#include "faults.h"

HIDDEN u32 metalnb_threads(const u64* arguments, const region* r, address arena, address frames, u64 bytes);

/// Set, by any thread, if a threadgroup did not run for lack of memory for its frames.
__attribute__((visibility("default"))) u32 metalnb_out_of_memory = 0;

/// Run `count` threadgroups, starting at `first`, in a worker's region if the kernel needs one.
__attribute__((visibility("default"))) void metalnb_groups(const dispatch* d, void* scratch, u64 first, u64 count) {
    u64 arguments[64];
    const address arena = scratch ? (address)scratch + ARENA : 0, frames = scratch ? (address)scratch + STACKS : 0;
    const address argument_memory = arena + d->static_memory;
    for (u32 i = 0; i < d->count; ++i) {
        const u64 a = d->arguments[i];
        arguments[i] = a & IN_THREADGROUP ? argument_memory + (a & ~IN_THREADGROUP) : a;
    }
    const u64 bytes = backed_stacks(d) - STACKS;
    for (u64 i = first; i < first + count; ++i) {
        const region r = threadgroup(d, i);
        if (!metalnb_threads(arguments, &r, arena, frames, bytes))
            __atomic_store_n(&metalnb_out_of_memory, 1, __ATOMIC_RELAXED);
    }
}
