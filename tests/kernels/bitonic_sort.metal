// Bitonic sort of keys with their values. Stages whose distance fits into a threadgroup run in one dispatch; wider
// stages take one dispatch each. The number of keys is a power of two.
#include <metal_stdlib>
using namespace metal;

struct Pair {
    uint key;
    uint value;
};

template <typename T>
METAL_FUNC void swap_if(thread T &a, thread T &b, bool condition) {
    const T t = a;
    a = condition ? b : a;
    b = condition ? t : b;
}

// All stages up to sequences of `block` keys, each threadgroup on its own stretch.
kernel void bitonic_local(device Pair *data [[buffer(0)]],
                          constant uint &first [[buffer(1)]],   // length of the first sequences to merge
                          constant uint &last [[buffer(2)]],    // and of the last ones
                          threadgroup Pair *shared [[threadgroup(0)]],
                          ushort tid [[thread_index_in_threadgroup]],
                          ushort threads [[threads_per_threadgroup]],
                          uint group [[threadgroup_position_in_grid]]) {
    const uint start = group * 2 * threads;
    shared[tid] = data[start + tid];
    shared[tid + threads] = data[start + tid + threads];
    for (uint size = first; size <= last; size <<= 1) {
        for (uint stride = min(size / 2, uint(threads)); stride > 0; stride >>= 1) {
            threadgroup_barrier(mem_flags::mem_threadgroup);
            const uint i = 2 * tid - (tid & (stride - 1));
            const bool descending = ((start + i) & size) != 0;
            Pair a = shared[i], b = shared[i + stride];
            swap_if(a, b, (a.key > b.key) != descending && a.key != b.key);
            shared[i] = a;
            shared[i + stride] = b;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    data[start + tid] = shared[tid];
    data[start + tid + threads] = shared[tid + threads];
}

kernel void bitonic_step(device Pair *data [[buffer(0)]],
                         constant uint2 &size_stride [[buffer(1)]],
                         uint tid [[thread_position_in_grid]]) {
    const uint stride = size_stride.y;
    const uint i = 2 * tid - (tid & (stride - 1));
    Pair a = data[i], b = data[i + stride];
    swap_if(a, b, (a.key > b.key) != ((i & size_stride.x) != 0) && a.key != b.key);
    data[i] = a;
    data[i + stride] = b;
}
