// A dispatch as Python passes it (cpu_engine.py writes it), and the declarations that all forms of kernels share.
#pragma once

typedef __UINT8_TYPE__ u8;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;
typedef __UINTPTR_TYPE__ address;

typedef struct { u32 x, y, z; } triple;

typedef struct {
    triple grid, size, groups;  // threads, threads of a threadgroup, threadgroups
    u32 count;                  // the number of arguments
    u32 memory;                 // bytes of threadgroup memory among the arguments
    u32 static_memory;          // bytes of threadgroup memory that the kernel declares
    u64 arguments[];            // addresses, or with the highest bit set offsets in the threadgroup memory
} dispatch;

#define IN_THREADGROUP (1ull << 63)

// One threadgroup, as $region in engine/clang/entry_point.h declares it.
typedef struct { triple first, size, nominal, grid, groups; } region;

#define HIDDEN __attribute__((visibility("hidden")))

// The memory of a core that runs fibers: a record, the stacks, threadgroup memory. It is aligned to its size.
#define REGION (512ull << 20)
#define STACKS (1ull << 20)
#define STACK (256 * 1024 + 9 * 64)  // not a multiple of a page, so that the tops of the stacks share no cache set
#define ARENA (STACKS + 1024 * (u64)STACK)

/// Bytes from a region's start that a dispatch needs: a stack for each thread, rounded up to full SIMD-groups.
static inline u64 backed_stacks(const dispatch* d) {
    const u64 threads = ((u64)d->size.x * d->size.y * d->size.z + 31) / 32 * 32;
    return STACKS + (threads < 1024 ? threads : 1024) * STACK;
}

static inline u32 least(u32 a, u32 b) { return a < b ? a : b; }

static inline region threadgroup(const dispatch* d, u64 i) {
    const triple n = d->groups, t = d->size, all = d->grid;
    const triple g = {(u32)(i % n.x), (u32)(i / n.x % n.y), (u32)(i / ((u64)n.x * n.y))};
    const triple size = {least(t.x, all.x - g.x * t.x), least(t.y, all.y - g.y * t.y), least(t.z, all.z - g.z * t.z)};
    return (region){g, size, t, all, n};
}
