// Kernels whose threads never converge: a threadgroup is a loop in the kernel's object file.
#include "dispatch.h"

HIDDEN void metalnb_threads(const u64* arguments, const region* r);

__attribute__((visibility("default"))) u32 metalnb_prepare(void) { return 0; }

/// Run `count` threadgroups, starting at `first`.
__attribute__((visibility("default"))) void metalnb_groups(const dispatch* d, void** scratch, u64 first, u64 count) {
    for (u64 i = first; i < first + count; ++i) {
        const region r = threadgroup(d, i);
        metalnb_threads(d->arguments, &r);
    }
}
