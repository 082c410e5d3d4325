// The entry points' helpers on the host: the position of thread (x, y, z) of a threadgroup. Here `first` is the
// threadgroup's own position, and the compiler removes what a kernel does not use.
#pragma once

$always_inline $thread_position $position_of(const $region& r, unsigned x, unsigned y, unsigned z) {
  const $uint3 g = r.first, t = r.nominal, n = r.size;
  return {{g.x * t.x + x, g.y * t.y + y, g.z * t.z + z}, {x, y, z}, g, n, t, r.grid, r.groups,
          (z * n.y + y) * n.x + x, n.x * n.y * n.z};
}
$always_inline $thread_position $position_of(const $region& r, unsigned i) {
  if (r.size.y == 1 && r.size.z == 1) return $position_of(r, i, 0, 0);
  return $position_of(r, i % r.size.x, i / r.size.x % r.size.y, i / (r.size.x * r.size.y));
}
#ifdef METALNB_LANES
$always_inline $thread_position $lane_position(const $region& r) {
  const $uint3 n = r.size;
  return {{metalnb_grid_x(), metalnb_grid_y(), metalnb_grid_z()}, {metalnb_group_x(), metalnb_group_y(), metalnb_group_z()},
          r.first, n, r.nominal, r.grid, r.groups, metalnb_index(), n.x * n.y * n.z};
}
#endif
