// Repeating each element: thread i writes element i of the result, which is element i / times of the source.
// So adjacent threads write adjacent elements, and a SIMD-group reads few elements, all adjacent.
// With a thread for each element of the source, adjacent threads would write far apart. Source: NumPy's repeat.
#include <metal_stdlib>
using namespace metal;

// The macro BITS is an unsigned integer as large as an element.
kernel void repeat(
    device const BITS* x,
    device BITS* out,
    constant uint& times,
    uint i [[thread_position_in_grid]]) {
    out[i] = x[i / times];
}
