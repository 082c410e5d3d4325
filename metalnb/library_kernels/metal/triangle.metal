// Triangles of matrices: thread (x, y, z) writes element (row y, column x) of matrix z: the source's element inside the
// triangle, 0 outside. Adjacent threads read and write adjacent elements. Source: NumPy's tril and triu.
#include <metal_stdlib>
using namespace metal;

// The macro BITS is an unsigned integer as large as an element. Nothing is computed: 0 is 0 in every dtype.
template <bool LOWER>
kernel void triangle(
    device const BITS* x,
    device BITS* out,
    constant long& k,
    uint3 p [[thread_position_in_grid]],
    uint3 n [[threads_per_grid]]) {
    const ulong i = (ulong(p.z) * n.y + p.y) * n.x + p.x;
    const long diagonal = long(p.y) + k;  // the column of the k-th diagonal
    const bool inside = LOWER ? long(p.x) <= diagonal : long(p.x) >= diagonal;
    out[i] = inside ? x[i] : BITS(0);
}

template [[host_name("lower")]] [[kernel]] decltype(triangle<true>) triangle<true>;
template [[host_name("upper")]] [[kernel]] decltype(triangle<false>) triangle<false>;
