// A histogram of bytes: each threadgroup counts in its own memory and adds its counts to the device's at the end.
// A second kernel makes a weighted one with float atomics, a third keeps each bin's greatest float by compare and exchange.
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

kernel void weighted_histogram(device const int *bin, device const float *weight, device atomic<float> *sums,
                               uint i [[thread_position_in_grid]]) {
    atomic_fetch_add_explicit(&sums[bin[i]], weight[i], memory_order_relaxed);
}

// Floats have no atomic maximum: exchange while the new value is greater.
kernel void greatest(device const int *bin, device const float *value, device atomic_uint *greatest_bits,
                     uint i [[thread_position_in_grid]]) {
    device atomic_uint *slot = greatest_bits + bin[i];
    uint seen = atomic_load_explicit(slot, memory_order_relaxed);
    while (value[i] > as_type<float>(seen)) {
        if (atomic_compare_exchange_weak_explicit(slot, &seen, as_type<uint>(value[i]), memory_order_relaxed, memory_order_relaxed))
            break;
    }
}
