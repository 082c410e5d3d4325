// A thread's position in a dispatch: CUDA's grids consist of whole blocks, Metal's are exact (MSL 5.2.3.6).
#pragma once

// A launch's position in its dispatch. A dispatch whose last threadgroups are smaller is split into launches with
// threadgroups of equal size, beginning with the one at `first`. `flags` has bit 0 set where the launch has more threads
// than the grid, and bit 1 where a threadgroup is launched as one row of threads, since a block has at most 64 layers.
struct $launch { $uint3 first, nominal, grid, groups, size; unsigned flags; };

/// `row`: whether bit 1 of `flags` is set.
$always_inline $thread_position $current_position(const $launch& l, bool row) {
    const $uint3 group = {$register(ctaid_x) + l.first.x, $register(ctaid_y) + l.first.y, $register(ctaid_z) + l.first.z};
    $uint3 at = {$register(tid_x), $register(tid_y), $register(tid_z)};
    const $uint3 n = l.size;
    unsigned index;
    if (row) {
        index = at.x;
        at = {index % n.x, index / n.x % n.y, index / (n.x * n.y)};
    } else index = (at.z * n.y + at.y) * n.x + at.x;
    return {{group.x * l.nominal.x + at.x, group.y * l.nominal.y + at.y, group.z * l.nominal.z + at.z},
            at, group, n, l.nominal, l.grid, l.groups, index, n.x * n.y * n.z};
}

/// Whether a thread is beyond the grid: if a kernel cannot tell, its last threadgroups are launched in full size.
$always_inline bool $beyond($uint3 at, const $launch& l) {
    return (l.flags & 1) && (at.x >= l.grid.x || at.y >= l.grid.y || at.z >= l.grid.z);
}

/// A thread's position, with ranges known to the analysis of a checked kernel.
$always_inline $thread_position $known_position($thread_position at) {
#define $KNOWN(name, v) {$known(name##_x, v.x), $known(name##_y, v.y), $known(name##_z, v.z)}
    at.position_in_grid = $KNOWN(grid, at.position_in_grid);
    at.position_in_threadgroup = $KNOWN(local, at.position_in_threadgroup);
    at.threadgroup_position = $KNOWN(group, at.threadgroup_position);
    at.index_in_threadgroup = $known(index, at.index_in_threadgroup);
#undef $KNOWN
    return at;
}
