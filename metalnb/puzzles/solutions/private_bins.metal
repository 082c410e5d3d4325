#include <metal_stdlib>
using namespace metal;

kernel void private_bins(device const uint* a, device atomic_uint* counts,
                         constant uint& n,
                         uint i [[thread_position_in_grid]],
                         uint t [[thread_position_in_threadgroup]]) {
    threadgroup atomic_uint own[16];
    if (t < 16) atomic_store_explicit(&own[t], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = i; k < n; k += 256) {
        atomic_fetch_add_explicit(&own[a[k]], 1, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t < 16) {
        uint count = atomic_load_explicit(&own[t], memory_order_relaxed);
        atomic_fetch_add_explicit(&counts[t], count, memory_order_relaxed);
    }
}
