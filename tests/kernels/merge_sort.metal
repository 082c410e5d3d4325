// Sort each row in one threadgroup: a thread sorts its own eight elements in registers, then sorted stretches are
// merged pairwise; each thread finds the start of its part of the output by a binary search along the merge path. NaN
// sorts last; argsort carries the indices along and is stable.
#include <metal_stdlib>

using namespace metal;

template <typename T>
struct Init {
  static constexpr constant T v = metal::numeric_limits<T>::max();
};
template <>
struct Init<float> {
  static constexpr constant float v = NAN;
};

template <typename T, typename = void>
struct LessThan {
  METAL_FUNC bool operator()(T a, T b) const { return a < b; }
};

template <typename T>
struct LessThan<T, metal::enable_if_t<metal::is_floating_point_v<T>>> {
  METAL_FUNC bool operator()(T a, T b) const {
    const bool an = metal::isnan(a);
    const bool bn = metal::isnan(b);
    if (an | bn) {
      return !an & bn;
    }
    return a < b;
  }
};

template <typename ValT, typename IdxT, bool ARG_SORT, short N_PER_THREAD>
struct ThreadSort {
  // Odd-even transposition: no data-dependent indices, so everything stays in registers.
  static METAL_FUNC void sort(thread ValT (&vals)[N_PER_THREAD], thread IdxT (&idxs)[N_PER_THREAD]) {
    LessThan<ValT> op;
    #pragma clang loop unroll(full)
    for (short i = 0; i < N_PER_THREAD; ++i) {
      #pragma clang loop unroll(full)
      for (short j = i & 1; j < N_PER_THREAD - 1; j += 2) {
        if (op(vals[j + 1], vals[j])) {
          const ValT v = vals[j];
          vals[j] = vals[j + 1];
          vals[j + 1] = v;
          if (ARG_SORT) {
            const IdxT x = idxs[j];
            idxs[j] = idxs[j + 1];
            idxs[j + 1] = x;
          }
        }
      }
    }
  }
};

template <typename T>
METAL_FUNC short merge_partition(const threadgroup T* A, const threadgroup T* B, short a_size, short b_size, short diagonal) {
  LessThan<T> op;
  short lo = max(0, diagonal - b_size);
  short hi = min(diagonal, a_size);
  while (lo < hi) {
    const short mid = (lo + hi) / 2;
    if (op(B[diagonal - 1 - mid], A[mid])) {
      hi = mid;
    } else {
      lo = mid + 1;
    }
  }
  return hi;
}

template <typename T, typename OutT, bool ARG_SORT, short BLOCK, short N_PER_THREAD>
[[kernel, max_total_threads_per_threadgroup(BLOCK)]] void block_sort(
    const device T* in [[buffer(0)]],
    device OutT* out [[buffer(1)]],
    const constant int& size [[buffer(2)]],
    uint row [[threadgroup_position_in_grid]],
    uint lid [[thread_index_in_threadgroup]]) {
  constexpr short TILE = BLOCK * N_PER_THREAD;
  threadgroup T vals[TILE];
  threadgroup uint idxs[ARG_SORT ? TILE : 1];

  for (short i = lid; i < TILE; i += BLOCK) {
    vals[i] = i < size ? in[row * size + i] : T(Init<T>::v);
    if (ARG_SORT) {
      idxs[i] = i;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  thread T v[N_PER_THREAD];
  thread uint x[N_PER_THREAD];
  const short base = lid * N_PER_THREAD;
  for (short i = 0; i < N_PER_THREAD; ++i) {
    v[i] = vals[base + i];
    if constexpr (ARG_SORT) {
      x[i] = idxs[base + i];
    }
  }
  ThreadSort<T, uint, ARG_SORT, N_PER_THREAD>::sort(v, x);

  LessThan<T> op;
  for (short threads = 2; threads <= BLOCK; threads *= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (short i = 0; i < N_PER_THREAD; ++i) {
      vals[base + i] = v[i];
      if (ARG_SORT) {
        idxs[base + i] = x[i];
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const short half_size = N_PER_THREAD * (threads / 2);
    const short group = lid / threads;
    const short lane = lid % threads;
    const short a0 = group * 2 * half_size, b0 = a0 + half_size;
    const short diagonal = lane * N_PER_THREAD;
    const short split = merge_partition(vals + a0, vals + b0, half_size, half_size, diagonal);

    short a = a0 + split;
    short b = b0 + diagonal - split;
    const short a_end = b0, b_end = b0 + half_size;
    for (short i = 0; i < N_PER_THREAD; ++i) {
      const bool take_b = b < b_end && (a >= a_end || op(vals[b], vals[a]));
      const short from = take_b ? b++ : a++;
      v[i] = vals[from];
      if (ARG_SORT) {
        x[i] = idxs[from];
      }
    }
  }

  for (short i = 0; i < N_PER_THREAD; ++i) {
    if (base + i < size) {
      if constexpr (ARG_SORT) {
        out[row * size + base + i] = x[i];
      } else {
        out[row * size + base + i] = v[i];
      }
    }
  }
}

#define instantiate_block_sort(name, itname, itype, otype, arg, bn, tn) \
  template [[host_name(#name "_" #itname "_bn" #bn)]] [[kernel]]        \
  decltype(block_sort<itype, otype, arg, bn, tn>) block_sort<itype, otype, arg, bn, tn>;

#define instantiate_sorts(itname, itype, bn)                      \
  instantiate_block_sort(sort, itname, itype, itype, false, bn, 8) \
  instantiate_block_sort(argsort, itname, itype, uint, true, bn, 8)

instantiate_sorts(float32, float, 64)
instantiate_sorts(int8, int8_t, 32)
