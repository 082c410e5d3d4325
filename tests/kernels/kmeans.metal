// One step of k-means on points in space: assign each point to its nearest center, and add its coordinates to the
// center's sum, first in threadgroup memory, by fixed-point atomics so that any order gives the same sum.
#include <metal_stdlib>
using namespace metal;

constant constexpr int MAX_CENTERS = 32;
constant constexpr float FIXED = 65536;

kernel void assign(device const packed_float3 *points [[buffer(0)]],
                   constant packed_float3 *centers [[buffer(1)]],
                   device uchar *nearest [[buffer(2)]],
                   device atomic_int *sums [[buffer(3)]],       // x, y, z, count for each center
                   constant ushort &k [[buffer(4)]],
                   uint i [[thread_position_in_grid]],
                   ushort lid [[thread_index_in_threadgroup]],
                   ushort threads [[threads_per_threadgroup]])
{
    threadgroup atomic_int local_sums[MAX_CENTERS][4];
    for (ushort j = lid; j < 4 * k; j += threads) atomic_store_explicit(&local_sums[j / 4][j % 4], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const float3 p = points[i];
    float best = HUGE_VALF;
    ushort which = 0;
    for (ushort j = 0; j < k; ++j) {
        const float d = distance_squared(p, float3(centers[j]));
        which = select(which, j, d < best);
        best = fmin(best, d);
    }
    nearest[i] = which;

    const int3 fixed = int3(rint(p * FIXED));
    threadgroup atomic_int *sum = local_sums[which];
    atomic_fetch_add_explicit(&sum[0], fixed.x, memory_order_relaxed);
    atomic_fetch_add_explicit(&sum[1], fixed.y, memory_order_relaxed);
    atomic_fetch_add_explicit(&sum[2], fixed.z, memory_order_relaxed);
    atomic_fetch_add_explicit(&sum[3], 1, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    for (ushort j = lid; j < 4 * k; j += threads)
        atomic_fetch_add_explicit(&sums[j], atomic_load_explicit(&local_sums[j / 4][j % 4], memory_order_relaxed), memory_order_relaxed);
}
