// The function that a kernel calls when a check finds an access out of bounds (engine/robust).
#pragma once
#include "dispatch.h"

// The records that a checked kernel writes (engine/robust), one per check. Loops end when `stop` is not 0.
typedef struct { u32 recorded, index; triple group; u32 unused; u64 offset; } fault_record;
typedef struct { u64 stop; fault_record faults[]; } fault_watch;

/// Record a check's first fault: the offset of the access, its thread and its threadgroup.
HIDDEN __attribute__((cold, noinline)) void metalnb_faulted(fault_watch* w, const region* r, u32 check, u64 offset, u32 index) {
    fault_record* f = &w->faults[check];
    if (__atomic_exchange_n(&f->recorded, 1, __ATOMIC_RELAXED)) return;
    f->index = index;
    f->group = r->first;
    f->offset = offset;
}
