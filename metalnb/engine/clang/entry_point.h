// Helpers for entry points: from a thread's position to MSL's kernel inputs (MSL 5.2.3.6).
#pragma once

// The type of a kernel function's I-th parameter, and the same as a pointer.
template <int I, class F> struct $parameter;
template <class R, class A, class... B> struct $parameter<0, R(A, B...)> { typedef A type; };
template <int I, class R, class A, class... B> struct $parameter<I, R(A, B...)> : $parameter<I - 1, R(B...)> {};
template <int I, class R, class... A> struct $parameter<I, R (&)(A...)> : $parameter<I, R(A...)> {};

template <class T> struct $pointer;
template <class T> struct $pointer<T*> { typedef T* type; };
template <class T> struct $pointer<T&> { typedef T* type; };

#define $always_inline inline __attribute__((always_inline))

struct $uint3 { unsigned x, y, z; };

// A thread's position in its dispatch.
struct $thread_position {
  $uint3 position_in_grid, position_in_threadgroup, threadgroup_position;
  $uint3 threads_per_threadgroup;           // the size of this threadgroup, smaller at the grid's far edges
  $uint3 dispatch_threads_per_threadgroup;  // the size of a full threadgroup
  $uint3 threads_per_grid, threadgroups_per_grid;
  unsigned index_in_threadgroup, threads;   // threads: the number of threads in this threadgroup
};

// A threadgroup of a dispatch, for a target whose threadgroups may differ in size.
struct $region { $uint3 first, size, nominal, grid, groups; };

// An input as the type that the kernel declares: uint or ushort, with one to three components.
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
