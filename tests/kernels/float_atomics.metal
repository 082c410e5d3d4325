// Histograms of floats. Float atomics add the weights; compare-exchange keeps each bin's greatest float, since floats
// have no atomic maximum.
#include <metal_stdlib>
using namespace metal;

kernel void weighted_histogram(device const int *bin, device const float *weight, device atomic<float> *sums,
                               uint i [[thread_position_in_grid]]) {
    atomic_fetch_add_explicit(&sums[bin[i]], weight[i], memory_order_relaxed);
}

kernel void greatest(device const int *bin, device const float *value, device atomic_uint *greatest_bits,
                     uint i [[thread_position_in_grid]]) {
    device atomic_uint *slot = greatest_bits + bin[i];
    uint seen = atomic_load_explicit(slot, memory_order_relaxed);
    while (value[i] > as_type<float>(seen)) {
        if (atomic_compare_exchange_weak_explicit(slot, &seen, as_type<uint>(value[i]), memory_order_relaxed, memory_order_relaxed))
            break;
    }
}
