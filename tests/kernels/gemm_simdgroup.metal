// C = relu(A B + bias) with 8x8 SIMD-group matrices: each SIMD-group owns a 16x16 block of C as 2x2 fragments in
// registers. The bias is added to the fragments, by the lane's position in them.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>

using namespace metal;

template <typename T>
kernel void gemm_simdgroup(device const T     *A    [[buffer(0)]],   // M x K
                           device const T     *B    [[buffer(1)]],   // K x N
                           device const float *bias [[buffer(2)]],   // N
                           device float       *C    [[buffer(3)]],   // M x N
                           constant uint3     &mnk  [[buffer(4)]],
                           uint2  group [[threadgroup_position_in_grid]],
                           ushort sgid  [[simdgroup_index_in_threadgroup]],
                           ushort lane  [[thread_index_in_simdgroup]])
{
    const uint M = mnk.x, N = mnk.y, K = mnk.z;
    const uint row = group.y * 32 + (sgid / 2) * 16;
    const uint col = group.x * 32 + (sgid % 2) * 16;
    if (row >= M || col >= N) return;

    simdgroup_matrix<T, 8, 8> a[2], b[2];
    simdgroup_float8x8 c[2][2];
    for (short i = 0; i < 2; i++)
        for (short j = 0; j < 2; j++)
            c[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.f);

    for (uint k = 0; k < K; k += 8) {
        #pragma unroll
        for (short i = 0; i < 2; i++) {
            simdgroup_load(a[i], A + (row + 8 * i) * K + k, K);
            simdgroup_load(b[i], B, N, ulong2(col + 8 * i, k));
        }
        simdgroup_barrier(mem_flags::mem_none);
        #pragma unroll
        for (short i = 0; i < 2; i++)
            #pragma unroll
            for (short j = 0; j < 2; j++)
                simdgroup_multiply_accumulate(c[i][j], a[i], b[j], c[i][j]);
    }

    // The lane's two elements start at this column of each fragment.
    const ushort qid = lane / 4;
    const ushort sn = (qid & 2) * 2 + (lane % 2) * 2;
    for (short i = 0; i < 2; i++) {
        for (short j = 0; j < 2; j++) {
            thread auto& frag = c[i][j].thread_elements();
            frag[0] = max(frag[0] + bias[col + 8 * j + sn], 0.f);
            frag[1] = max(frag[1] + bias[col + 8 * j + sn + 1], 0.f);
            simdgroup_store(c[i][j], C + (row + 8 * i) * N + col + 8 * j, N);
        }
    }
}

typedef decltype(gemm_simdgroup<float>) gemm_float_t;
typedef decltype(gemm_simdgroup<half>) gemm_half_t;
template [[host_name("gemm_simdgroup_float")]] kernel gemm_float_t gemm_simdgroup<float>;
template [[host_name("gemm_simdgroup_half")]] kernel gemm_half_t gemm_simdgroup<half>;
