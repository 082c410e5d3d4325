#include <metal_stdlib>
using namespace metal;

kernel void histogram(device const uint* a, device atomic_uint* counts, uint i [[thread_position_in_grid]]) {
    atomic_fetch_add_explicit(&counts[a[i]], 1, memory_order_relaxed);
}
