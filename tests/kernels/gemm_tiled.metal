// D = act(alpha * op(A) op(B) + bias), in tiles through threadgroup memory; each thread keeps TM x TN results in
// registers. Transposition, bias and activation are function constants; without a bias its argument does not exist.
#include <metal_stdlib>
#include <metal_simdgroup>
using namespace metal;

constant bool transpose_a [[function_constant(0)]];
constant bool transpose_b [[function_constant(1)]];
constant bool has_bias [[function_constant(2)]];
constant int activation [[function_constant(3)]];
constant float alpha_opt [[function_constant(4)]];
constant float alpha = is_function_constant_defined(alpha_opt) ? alpha_opt : 1.0;

struct GemmParams {
    int M;
    int N;
    int K;
    int lda;
    int ldb;
    int ldd;
};

template <typename T, short rows, short cols, bool transposed>
struct Loader {
    // The tile is stored as rows x cols for either memory layout; an extra column avoids bank conflicts.
    static void load(
        const device T* src, int ld, int row0, int col0, int row_end, int col_end,
        threadgroup T (&tile)[rows][cols + 1], uint tid, uint n_threads) {
        for (uint i = tid; i < uint(rows * cols); i += n_threads) {
            const short r = transposed ? i % rows : i / cols;
            const short c = transposed ? i / rows : i % cols;
            const int row = row0 + r, col = col0 + c;
            const bool inside = row < row_end && col < col_end;
            tile[r][c] = inside ? src[transposed ? long(col) * ld + row : long(row) * ld + col] : T(0);
        }
    }
};

inline float activate(float x) {
    switch (activation) {
        case 1: return max(x, 0.0);
        case 2: return x / (1.0 + exp(-x));
        default: return x;
    }
}

template <typename T, short BM, short BN, short BK, short TM, short TN>
kernel void gemm(
    const device T* A [[buffer(0)]],
    const device T* B [[buffer(1)]],
    device T* D [[buffer(2)]],
    constant GemmParams& params [[buffer(3)]],
    const device T* bias [[buffer(4), function_constant(has_bias)]],
    uint2 tgid [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]]) {
    constexpr short threads_x = BN / TN;
    constexpr short threads_y = BM / TM;
    constexpr uint n_threads = threads_x * threads_y;

    threadgroup T As[BM][BK + 1];
    threadgroup T Bs[BK][BN + 1];

    const short ty = tid / threads_x;
    const short tx = tid % threads_x;
    const int row0 = tgid.y * BM;
    const int col0 = tgid.x * BN;

    float acc[TM][TN] = {{0}};
    for (int k0 = 0; k0 < params.K; k0 += BK) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (transpose_a) {
            Loader<T, BM, BK, true>::load(A, params.lda, row0, k0, params.M, params.K, As, tid, n_threads);
        } else {
            Loader<T, BM, BK, false>::load(A, params.lda, row0, k0, params.M, params.K, As, tid, n_threads);
        }
        if (transpose_b) {
            Loader<T, BK, BN, true>::load(B, params.ldb, k0, col0, params.K, params.N, Bs, tid, n_threads);
        } else {
            Loader<T, BK, BN, false>::load(B, params.ldb, k0, col0, params.K, params.N, Bs, tid, n_threads);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        for (short k = 0; k < BK; ++k) {
            float a[TM], b[TN];
            #pragma clang loop unroll(full)
            for (short i = 0; i < TM; ++i) a[i] = static_cast<float>(As[ty + i * threads_y][k]);
            #pragma clang loop unroll(full)
            for (short j = 0; j < TN; ++j) b[j] = static_cast<float>(Bs[k][tx + j * threads_x]);
            #pragma clang loop unroll(full)
            for (short i = 0; i < TM; ++i)
                #pragma clang loop unroll(full)
                for (short j = 0; j < TN; ++j) acc[i][j] = fma(a[i], b[j], acc[i][j]);
        }
    }

    for (short i = 0; i < TM; ++i) {
        const int row = row0 + ty + i * threads_y;
        for (short j = 0; j < TN; ++j) {
            const int col = col0 + tx + j * threads_x;
            if (row < params.M && col < params.N) {
                float value = alpha * acc[i][j];
                if (has_bias) {
                    value += float(bias[col]);
                }
                D[long(row) * params.ldd + col] = T(activate(value));
            }
        }
    }
}

#define instantiate_gemm(type, bm, bn, bk, tm, tn)                                        \
    template [[host_name("gemm_" #type "_" #bm "_" #bn "_" #bk)]]                         \
    kernel void gemm<type, bm, bn, bk, tm, tn>(                                           \
        const device type* A [[buffer(0)]],                                               \
        const device type* B [[buffer(1)]],                                               \
        device type* D [[buffer(2)]],                                                     \
        constant GemmParams& params [[buffer(3)]],                                        \
        const device type* bias [[buffer(4), function_constant(has_bias)]],               \
        uint2 tgid [[threadgroup_position_in_grid]],                                      \
        uint tid [[thread_index_in_threadgroup]]);

instantiate_gemm(float, 32, 32, 8, 4, 4)
instantiate_gemm(float, 16, 64, 16, 2, 4)
instantiate_gemm(half, 32, 32, 16, 2, 2)
