// Where a thread stands in a dispatch: CUDA's grids are of whole blocks, Metal's are exact (MSL 5.2.3.6).
#pragma once

// What the launch says of the dispatch. A dispatch whose last threadgroups are smaller is several launches: in each all
// threadgroups have one size, and the first of them stands at `first`. `cut` is 1 where the launch has more threads than
// the grid.
struct $launch { $uint3 first, nominal, grid, groups, size; unsigned cut; };

/// `row`: the threadgroup is launched as one row of threads, since a block has at most 64 layers.
template <bool row> $always_inline $place $here(const $launch& l) {
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

/// Whether a thread is beyond the grid: where a kernel cannot tell, its last threadgroups are launched whole.
$always_inline bool $beyond($uint3 at, const $launch& l) {
    return l.cut && (at.x >= l.grid.x || at.y >= l.grid.y || at.z >= l.grid.z);
}
