// Arg-reduce along the last axis, one threadgroup per row: each thread reads a stretch, then shuffles, then one slot
// per SIMD-group. The operation is a type with a static reduce; ties go to the lower index.
#include <metal_simdgroup>
#include <metal_stdlib>

using namespace metal;

template <typename U>
struct IndexValPair {
  uint32_t index;
  U val;
};

template <typename U>
struct ArgMin {
  static constexpr constant U init = metal::numeric_limits<U>::max();
  IndexValPair<U> reduce(IndexValPair<U> best, IndexValPair<U> current) {
    if (best.val > current.val || (best.val == current.val && best.index > current.index)) {
      return current;
    }
    return best;
  }
};

template <typename U>
struct ArgMax {
  static constexpr constant U init = metal::numeric_limits<U>::lowest();
  IndexValPair<U> reduce(IndexValPair<U> best, IndexValPair<U> current) {
    if (best.val < current.val || (best.val == current.val && best.index > current.index)) {
      return current;
    }
    return best;
  }
};

// Metal cannot shuffle 64-bit values; shuffle their halves.
inline int64_t simd_shuffle_down(int64_t data, uint16_t delta) {
  return as_type<int64_t>(metal::simd_shuffle_down(as_type<uint2>(data), delta));
}

template <typename U>
IndexValPair<U> simd_shuffle_down(IndexValPair<U> data, uint16_t delta) {
  return IndexValPair<U>{simd_shuffle_down(data.index, delta), simd_shuffle_down(data.val, delta)};
}

inline uint ceildiv_uint(size_t a, size_t b) {
  return (a + b - 1) / b;
}

template <typename T, template <typename> class Op, int N_READS = 4>
[[kernel]] void arg_reduce_general(
    const device T* in [[buffer(0)]],
    device uint32_t* out [[buffer(1)]],
    const constant size_t& axis_size [[buffer(2)]],
    uint gid [[threadgroup_position_in_grid]],
    uint lid [[thread_position_in_threadgroup]],
    uint lsize [[threads_per_threadgroup]],
    uint simd_lane_id [[thread_index_in_simdgroup]],
    uint simd_group_id [[simdgroup_index_in_threadgroup]]) {
  Op<T> op;
  in += size_t(gid) * axis_size;
  threadgroup IndexValPair<T> local_data[32];

  IndexValPair<T> best{0xffffffff, Op<T>::init};
  for (uint r = 0; r < ceildiv_uint(axis_size, N_READS * lsize); r++) {
    const uint32_t offset = r * lsize * N_READS + lid * N_READS;
    for (uint i = offset; i < min(size_t(offset) + N_READS, axis_size); i++) {
      best = op.reduce(best, IndexValPair<T>{i, in[i]});
    }
  }

  for (uint offset = 16; offset > 0; offset /= 2) {
    best = op.reduce(best, simd_shuffle_down(best, offset));
  }
  if (simd_lane_id == 0) {
    local_data[simd_group_id] = best;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simd_group_id != 0) {
    return;
  }
  const uint simd_groups = lsize / 32;
  if (simd_lane_id < simd_groups) {
    best = local_data[simd_lane_id];
  }
  for (uint offset = simd_groups / 2; offset > 0; offset /= 2) {
    best = op.reduce(best, simd_shuffle_down(best, offset));
  }
  if (lid == 0) {
    out[gid] = best.index;
  }
}

#define instantiate_arg_reduce(name, itype)                       \
  template [[host_name("argmin_" #name)]] [[kernel]]              \
  decltype(arg_reduce_general<itype, ArgMin>) arg_reduce_general<itype, ArgMin>; \
  template [[host_name("argmax_" #name)]] [[kernel]]              \
  decltype(arg_reduce_general<itype, ArgMax>) arg_reduce_general<itype, ArgMax>;

instantiate_arg_reduce(float32, float)
instantiate_arg_reduce(int64, int64_t)
instantiate_arg_reduce(uint8, uint8_t)
