// y = A x for a sparse matrix in CSR form, one SIMD-group per row; the function that reads x is a template parameter.
#include <metal_stdlib>

struct Csr {
  device const uint32_t* columns;
  device const half* values;
};

METAL_FUNC float plain(device const float* x, uint i) { return x[i]; }
METAL_FUNC float squared(device const float* x, uint i) { return x[i] * x[i]; }

template <float (*read)(device const float*, uint)>
[[kernel]] void spmv(device const uint64_t* starts [[buffer(0)]],   // rows + 1 offsets
                     device const uint32_t* columns [[buffer(1)]],
                     device const half* values [[buffer(2)]],
                     device const float* x [[buffer(3)]],
                     device float* y [[buffer(4)]],
                     constant uint32_t& rows [[buffer(5)]],
                     uint tgid [[threadgroup_position_in_grid]],
                     uint sgid [[simdgroup_index_in_threadgroup]],
                     uint sgs [[simdgroups_per_threadgroup]],
                     uint lane [[thread_index_in_simdgroup]],
                     uint width [[threads_per_simdgroup]]) {
  const uint row = tgid * sgs + sgid;
  if (row >= rows) return;
  const Csr a{columns, values};
  float sum = 0;
  for (uint64_t i = starts[row] + lane; i < starts[row + 1]; i += width) {
    sum = metal::fma(float(a.values[i]), read(x, a.columns[i]), sum);
  }
  for (ushort offset = width / 2; offset > 0; offset >>= 1) {
    sum += metal::simd_shuffle_down(sum, offset);
  }
  if (lane == 0) y[row] = sum;
}

template [[host_name("spmv_plain")]] [[kernel]] decltype(spmv<plain>) spmv<plain>;
template [[host_name("spmv_squared")]] [[kernel]] decltype(spmv<squared>) spmv<squared>;
