// Interleaving arrays: thread i writes the i-th element of each, as one vector. So a SIMD-group's reads and writes are
// contiguous. If it wrote one array at a time, it would write every second, third or fourth element. Source: Metal's
// vector types (MSL 2.2). No vector has three elements in memory, so groups of three are written one by one.
#include <metal_stdlib>
using namespace metal;

// The macro BITS is an unsigned integer as large as an element.
kernel void interleave_2(device const BITS* a, device const BITS* b, device vec<BITS, 2>* out,
                         uint i [[thread_position_in_grid]]) {
    out[i] = vec<BITS, 2>(a[i], b[i]);
}

kernel void interleave_3(device const BITS* a, device const BITS* b, device const BITS* c, device BITS* out,
                         uint i [[thread_position_in_grid]]) {
    out[3 * i] = a[i];
    out[3 * i + 1] = b[i];
    out[3 * i + 2] = c[i];
}

kernel void interleave_4(device const BITS* a, device const BITS* b, device const BITS* c, device const BITS* d,
                         device vec<BITS, 4>* out, uint i [[thread_position_in_grid]]) {
    out[i] = vec<BITS, 4>(a[i], b[i], c[i], d[i]);
}
