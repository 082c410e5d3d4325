// The entry point's tools: from OpenCL's work-item functions to MSL's kernel inputs (MSL 5.2.3.6).
#pragma once

// The I-th parameter type of a kernel function, and it as a pointer.
template <int I, class F> struct $parameter;
template <class R, class A, class... B> struct $parameter<0, R(A, B...)> { typedef A type; };
template <int I, class R, class A, class... B> struct $parameter<I, R(A, B...)> : $parameter<I - 1, R(B...)> {};
template <int I, class R, class... A> struct $parameter<I, R (&)(A...)> : $parameter<I, R(A...)> {};

template <class T> struct $pointer;
template <class T> struct $pointer<T*> { typedef T* type; };
template <class T> struct $pointer<T&> { typedef T* type; };

#define $always_inline inline __attribute__((always_inline))

struct $uint3 { unsigned x, y, z; };

// Where a thread stands in its dispatch.
struct $place {
  $uint3 position_in_grid, position_in_threadgroup, threadgroup_position;
  $uint3 threads_per_threadgroup;           // of this threadgroup: fewer at the grid's far edges
  $uint3 dispatch_threads_per_threadgroup;  // of a whole one
  $uint3 threads_per_grid, threadgroups_per_grid;
  unsigned index_in_threadgroup, threads;   // threads: in this threadgroup
};

// An id, which the launcher keeps below 2^31 unless the dispatch is wide. Knowing that, the device's compiler sees that
// neighbouring threads touch neighbouring elements through an index of 32 bits, and loads vectors where it would gather.
template <bool wide> $always_inline unsigned $id(unsigned long i) {
  if (!wide) __builtin_assume(i < (1ul << 31));
  return (unsigned)i;
}
#define $IDS(name) {$id<wide>(name(0)), $id<wide>(name(1)), $id<wide>(name(2))}

// A threadgroup dispatched with its own shape: OpenCL's ids are Metal's.
template <bool wide> $always_inline $place $here() {
  $uint3 size = $IDS($get_local_size);
  return {$IDS($get_global_id), $IDS($get_local_id), $IDS($get_group_id), size, $IDS($get_enqueued_local_size),
          $IDS($get_global_size), $IDS($get_num_groups), $id<wide>($get_local_linear_id()), size.x * size.y * size.z};
}

// A threadgroup dispatched as one row, so that its SIMD-groups are cut from it in order as Metal cuts them.
// The launcher tells where the row's threadgroups stand. Where a line of the threadgroup is of whole SIMD-groups (even),
// the place is written so that the device's compiler sees: it is the same for all lanes, but for the lane along x.
struct $region { $uint3 first, size, nominal, grid, groups; };
template <bool wide, bool even> $always_inline $place $here(const __global $region* r) {
  unsigned i = $id<wide>($get_local_id(0)), lane = even ? $get_sub_group_local_id() : 0;
  unsigned start = even ? $get_sub_group_id() * 32 : i;
  $uint3 n = r->size, t = r->nominal, group = $IDS($get_group_id);
  $uint3 g = {group.x + r->first.x, group.y + r->first.y, group.z + r->first.z};
  $uint3 l = {start % n.x + lane, start / n.x % n.y, start / (n.x * n.y)};
  return {{g.x * t.x + l.x, g.y * t.y + l.y, g.z * t.z + l.z}, l, g, n, t, r->grid, r->groups, i, n.x * n.y * n.z};
}
#undef $IDS

// An input as the type that the kernel gives it: uint or ushort, one to three of them.
template <class T> struct $input {
  static T from($uint3 v) { return (T)v.x; }
  static T from(unsigned v) { return (T)v; }
};
template <class T> struct $input<metal::vec<T, 2>> {
  static metal::vec<T, 2> from($uint3 v) { return metal::vec<T, 2>((T)v.x, (T)v.y); }
};
template <class T> struct $input<metal::vec<T, 3>> {
  static metal::vec<T, 3> from($uint3 v) { return metal::vec<T, 3>((T)v.x, (T)v.y, (T)v.z); }
};
