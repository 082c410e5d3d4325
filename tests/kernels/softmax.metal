// Softmax of each row, one threadgroup per row: a maximum and a sum, each first within a SIMD-group, then across the
// SIMD-groups through threadgroup memory.
#include <metal_common>
#include <metal_simdgroup>
#include <metal_stdlib>

using namespace metal;

template <typename T, typename AccT = float, int N_READS = 4>
[[kernel]] void softmax(
    const device T* in,
    device T* out,
    constant int& axis_size,
    uint gid [[threadgroup_position_in_grid]],
    uint lid [[thread_position_in_threadgroup]],
    uint lsize [[threads_per_threadgroup]],
    uint simd_lane_id [[thread_index_in_simdgroup]],
    uint simd_group_id [[simdgroup_index_in_threadgroup]]) {
  constexpr int SIMD_SIZE = 32;
  in += gid * size_t(axis_size);
  out += gid * size_t(axis_size);

  threadgroup AccT local_max[SIMD_SIZE];
  threadgroup AccT local_normalizer[SIMD_SIZE];

  AccT maxval = -numeric_limits<AccT>::infinity();
  for (int r = lid * N_READS; r < axis_size; r += lsize * N_READS) {
    for (int i = 0; i < N_READS && r + i < axis_size; i++) {
      maxval = metal::max(maxval, AccT(in[r + i]));
    }
  }
  maxval = simd_max(maxval);
  if (simd_group_id == 0) {
    local_max[simd_lane_id] = -INFINITY;
    local_normalizer[simd_lane_id] = 0;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simd_lane_id == 0) {
    local_max[simd_group_id] = maxval;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  maxval = simd_max(local_max[simd_lane_id]);

  AccT normalizer = 0;
  for (int r = lid * N_READS; r < axis_size; r += lsize * N_READS) {
    for (int i = 0; i < N_READS && r + i < axis_size; i++) {
      normalizer += fast::exp(AccT(in[r + i]) - maxval);
    }
  }
  normalizer = simd_sum(normalizer);
  if (simd_lane_id == 0) {
    local_normalizer[simd_group_id] = normalizer;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  normalizer = 1 / simd_sum(local_normalizer[simd_lane_id]);

  for (int r = lid * N_READS; r < axis_size; r += lsize * N_READS) {
    for (int i = 0; i < N_READS && r + i < axis_size; i++) {
      out[r + i] = T(fast::exp(AccT(in[r + i]) - maxval) * normalizer);
    }
  }
}

#define instantiate_softmax(name, itype) \
  template [[host_name("softmax_" #name)]] [[kernel]] decltype(softmax<itype>) softmax<itype>;

instantiate_softmax(float32, float)
instantiate_softmax(float16, half)
#if __METAL_VERSION__ >= 310
instantiate_softmax(bfloat16, bfloat)
#endif
