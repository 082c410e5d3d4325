// Conway's game of life on a torus: one generation, one byte per cell.
#include <metal_stdlib>
using namespace metal;

kernel void life(device const bool *now, device bool *next, constant ushort2 &size, ushort2 at [[thread_position_in_grid]]) {
    ushort neighbors = 0;
    for (short dy = -1; dy <= 1; ++dy) {
        for (short dx = -1; dx <= 1; ++dx) {
            const ushort2 there = (at + size + ushort2(short2(dx, dy))) % size;
            if (dx != 0 || dy != 0) neighbors += now[there.y * size.x + there.x];
        }
    }
    const uint cell = at.y * size.x + at.x;
    next[cell] = neighbors == 3 || (neighbors == 2 && now[cell]);
}
