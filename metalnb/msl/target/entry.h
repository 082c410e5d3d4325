// The entry point's tools: from OpenCL's work-item functions to MSL's kernel inputs (MSL 5.2.3.6).
#pragma once

// The I-th parameter type of a kernel function, and it as a pointer.
template <int I, class F> struct $parameter;
template <class R, class A, class... B> struct $parameter<0, R(A, B...)> { typedef A type; };
template <int I, class R, class A, class... B> struct $parameter<I, R(A, B...)> : $parameter<I - 1, R(B...)> {};

template <class T> struct $pointer;
template <class T> struct $pointer<T*> { typedef T* type; };
template <class T> struct $pointer<T&> { typedef T* type; };

struct $uint3 { unsigned x, y, z; };

// Where a thread stands in its dispatch.
struct $place {
  $uint3 position_in_grid, position_in_threadgroup, threadgroup_position;
  $uint3 threads_per_threadgroup;           // of this threadgroup: fewer at the grid's far edges
  $uint3 dispatch_threads_per_threadgroup;  // of a whole one
  $uint3 threads_per_grid, threadgroups_per_grid;
  unsigned index_in_threadgroup, threads;   // threads: in this threadgroup
};

// A threadgroup dispatched with its own shape: OpenCL's ids are Metal's.
inline $place $here() {
  $uint3 size = {(unsigned)get_local_size(0), (unsigned)get_local_size(1), (unsigned)get_local_size(2)};
  return {{(unsigned)get_global_id(0), (unsigned)get_global_id(1), (unsigned)get_global_id(2)},
          {(unsigned)get_local_id(0), (unsigned)get_local_id(1), (unsigned)get_local_id(2)},
          {(unsigned)get_group_id(0), (unsigned)get_group_id(1), (unsigned)get_group_id(2)},
          size,
          {(unsigned)get_enqueued_local_size(0), (unsigned)get_enqueued_local_size(1), (unsigned)get_enqueued_local_size(2)},
          {(unsigned)get_global_size(0), (unsigned)get_global_size(1), (unsigned)get_global_size(2)},
          {(unsigned)get_num_groups(0), (unsigned)get_num_groups(1), (unsigned)get_num_groups(2)},
          (unsigned)get_local_linear_id(), size.x * size.y * size.z};
}

// A threadgroup dispatched as one row, so that its SIMD-groups are cut from it in order as Metal cuts them.
// The launcher tells where the row's threadgroups stand.
struct $region { $uint3 first, size, nominal, grid, groups; };
inline $place $here(const __global $region* r) {
  unsigned i = (unsigned)get_local_id(0);
  $uint3 n = r->size, t = r->nominal;
  $uint3 g = {(unsigned)get_group_id(0) + r->first.x, (unsigned)get_group_id(1) + r->first.y, (unsigned)get_group_id(2) + r->first.z};
  $uint3 l = {i % n.x, i / n.x % n.y, i / (n.x * n.y)};
  return {{g.x * t.x + l.x, g.y * t.y + l.y, g.z * t.z + l.z}, l, g, n, t, r->grid, r->groups, i, n.x * n.y * n.z};
}

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
