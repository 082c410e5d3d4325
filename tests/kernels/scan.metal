// Inclusive scan of any length in three dispatches: each threadgroup scans its stretch and keeps the total, one threadgroup
// scans the totals, and they are added back. The operation is a functor with its identity.
#include <metal_stdlib>
using namespace metal;

constant constexpr uint ITEMS = 4;

template <typename U>
struct CumSum {
  static constexpr constant U init = static_cast<U>(0);

  template <typename T>
  U operator()(U a, T b) { return a + b; }

  U simd_scan(U x) { return simd_prefix_inclusive_sum(x); }
};

template <typename U>
struct CumMax {
  static constexpr constant U init = numeric_limits<U>::lowest();

  template <typename T>
  U operator()(U a, T b) { return a >= static_cast<U>(b) ? a : static_cast<U>(b); }

  U simd_scan(U x) {
    for (ushort i = 1; i <= 16; i *= 2) {
      U other = simd_shuffle_and_fill_up(x, init, i);
      x = operator()(x, other);
    }
    return x;
  }
};

template <typename T, typename U, typename Op>
[[kernel]] void scan_blocks(
    const device T* in [[buffer(0)]],
    device U* out [[buffer(1)]],
    device U* totals [[buffer(2)]],
    constant uint& size [[buffer(3)]],
    uint group [[threadgroup_position_in_grid]],
    uint lid [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simd_id [[simdgroup_index_in_threadgroup]],
    uint simd_groups [[simdgroups_per_threadgroup]]) {
  Op op;
  threadgroup U simd_totals[32];

  const uint base = (group * threads + lid) * ITEMS;
  U values[ITEMS];
  for (uint i = 0; i < ITEMS; i++) {
    values[i] = base + i < size ? static_cast<U>(in[base + i]) : Op::init;
  }
  for (uint i = 1; i < ITEMS; i++) {
    values[i] = op(values[i - 1], values[i]);
  }

  const U inclusive = op.simd_scan(values[ITEMS - 1]);
  const U before = simd_shuffle_and_fill_up(inclusive, U(Op::init), 1);
  if (lane == 31) {
    simd_totals[simd_id] = inclusive;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simd_id == 0) {
    const U total = lane < simd_groups ? simd_totals[lane] : Op::init;
    simd_totals[lane] = op.simd_scan(total);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  const U prefix = op(simd_id > 0 ? simd_totals[simd_id - 1] : Op::init, before);
  for (uint i = 0; i < ITEMS; i++) {
    if (base + i < size) {
      out[base + i] = op(prefix, values[i]);
    }
  }
  if (lid == 0) {
    totals[group] = simd_totals[simd_groups - 1];
  }
}

template <typename U, typename Op>
[[kernel]] void add_totals(
    device U* out,
    const device U* totals,  // scanned
    constant uint& stretch_size,
    uint index [[thread_position_in_grid]]) {
  Op op;
  const uint stretch = index / stretch_size;
  if (stretch > 0) {
    out[index] = op(totals[stretch - 1], out[index]);
  }
}

#define instantiate_scan(tname, itype, otype, opname, op)                             \
  template [[host_name("scan_" #opname "_" #tname)]] [[kernel]]                       \
  decltype(scan_blocks<itype, otype, op<otype>>) scan_blocks<itype, otype, op<otype>>; \
  template [[host_name("add_" #opname "_" #tname)]] [[kernel]]                        \
  decltype(add_totals<otype, op<otype>>) add_totals<otype, op<otype>>;

instantiate_scan(int32, int32_t, int32_t, sum, CumSum)
instantiate_scan(float32, float, float, sum, CumSum)
instantiate_scan(float32, float, float, max, CumMax)
instantiate_scan(uint32, uint32_t, uint32_t, sum, CumSum)
template [[host_name("scan_sum_uint8")]] [[kernel]]
decltype(scan_blocks<uint8_t, uint32_t, CumSum<uint32_t>>) scan_blocks<uint8_t, uint32_t, CumSum<uint32_t>>;
