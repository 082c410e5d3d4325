// A histogram of bytes: each threadgroup counts in threadgroup memory and adds its counts to device memory at the end.
#include <metal_stdlib>
#include <metal_atomic>
using namespace metal;

constant constexpr uint BINS = 256;

kernel void histogram(device const uchar4 *pixels [[buffer(0)]],
                      device atomic_uint *bins [[buffer(1)]],   // BINS for each of the four channels
                      constant uint &count [[buffer(2)]],
                      uint tid [[thread_index_in_threadgroup]],
                      uint threads [[threads_per_threadgroup]],
                      uint i [[thread_position_in_grid]],
                      uint stride [[threads_per_grid]]) {
    threadgroup atomic_uint local_bins[4][BINS];
    for (uint b = tid; b < 4 * BINS; b += threads)
        atomic_store_explicit(&local_bins[b / BINS][b % BINS], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    for (uint p = i; p < count; p += stride) {
        const uchar4 c = pixels[p];
        #pragma unroll
        for (ushort k = 0; k < 4; k++)
            atomic_fetch_add_explicit(&local_bins[k][c[k]], 1, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    for (uint b = tid; b < 4 * BINS; b += threads) {
        const uint n = atomic_load_explicit(&local_bins[b / BINS][b % BINS], memory_order_relaxed);
        if (n) atomic_fetch_add_explicit(&bins[b], n, memory_order_relaxed);
    }
}
