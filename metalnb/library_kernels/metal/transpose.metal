// Copying with the axes exchanged: adjacent elements of the source are far apart in the result. A threadgroup reads a
// square tile along the source's memory, transposes it in threadgroup memory, and writes it along the result's: both
// accesses are contiguous, which a GPU coalesces and a CPU's caches need as much. Source: Ruetsch and Micikevicius,
// "Optimizing Matrix Transpose in CUDA", 2009.
#include <metalnb/elementwise.h>

constant constexpr uint TILE = 32;
constant constexpr uint ROWS = 8;  // of threads: each moves TILE / ROWS elements

// FROM and TO, the two dtypes, are macros. In the walk, axis 0 is contiguous in the result and axis 1 in the source;
// p.z counts through the others.
inline long corner(constant Walk& walk, uint which, uint z) {
    constant Layout& operand = walk.operands[which];
    long start = operand.offset;
    for (uint d = 2; d < walk.rank; ++d) {
        start += long(z % walk.sizes[d]) * operand.strides[d];
        z /= walk.sizes[d];
    }
    return start;
}

kernel void transpose(
    device const memory_of<FROM>* x,
    device memory_of<TO>* out,
    constant Walk& walk,
    uint3 group [[threadgroup_position_in_grid]],
    uint3 t [[thread_position_in_threadgroup]]) {
    threadgroup memory_of<FROM> tile[TILE][TILE + 1];  // one more, so that columns avoid bank conflicts
    uint left = group.x * TILE, top = group.y * TILE;
    x += corner(walk, 0, group.z);
    out += corner(walk, 1, group.z);
    long of = walk.operands[0].strides[0], to = walk.operands[1].strides[1];
    x += left * of + top;
    out += top * to + left;
    uint wide = walk.sizes[0] - left, tall = walk.sizes[1] - top;
    if (wide >= TILE && tall >= TILE) {  // a tile that is not at an edge, in which no thread needs a bounds check
        for (uint k = 0; k < TILE; k += ROWS)
            tile[k + t.y][t.x] = x[(k + t.y) * of + t.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = 0; k < TILE; k += ROWS)
            out[(k + t.y) * to + t.x] = storage<TO>::store(storage<FROM>::load(tile[t.x][k + t.y]));
        return;
    }
    for (uint k = t.y; k < TILE; k += ROWS)
        if (k < wide && t.x < tall)
            tile[k][t.x] = x[k * of + t.x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = t.y; k < TILE; k += ROWS)
        if (k < tall && t.x < wide)
            out[k * to + t.x] = storage<TO>::store(storage<FROM>::load(tile[t.x][k]));
}
