// RMS norm of each row in float4 steps, with the weight applied in the row's own type.
#include <metal_stdlib>
using namespace metal;

struct rms_norm_args {
    int32_t ne00_4;
    float   eps;
};

template <typename T4>
kernel void rms_norm_4(
        device const T4 * src,
        device const T4 * weight,
        device       T4 * dst,
        constant rms_norm_args & args,
        threadgroup float * shmem [[threadgroup(0)]],
        uint   tgpig [[threadgroup_position_in_grid]],
        ushort tpitg [[thread_position_in_threadgroup]],
        ushort sgitg [[simdgroup_index_in_threadgroup]],
        ushort tiisg [[thread_index_in_simdgroup]],
        ushort ntg   [[threads_per_threadgroup]]) {
    if (sgitg == 0) {
        shmem[tiisg] = 0.0f;
    }

    device const T4 * x = src + tgpig * args.ne00_4;
    float sumf = 0.0f;
    for (int i = tpitg; i < args.ne00_4; i += ntg) {
        const float4 v = float4(x[i]);
        sumf += dot(v, v);
    }
    sumf = simd_sum(sumf);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tiisg == 0) {
        shmem[sgitg] = sumf;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sumf = shmem[tiisg];
    sumf = simd_sum(sumf);

    const float mean  = sumf / (4 * args.ne00_4);
    const float scale = 1.0f / sqrt(mean + args.eps);

    device T4 * y = dst + tgpig * args.ne00_4;
    for (int i = tpitg; i < args.ne00_4; i += ntg) {
        y[i] = T4(float4(x[i]) * scale) * weight[i];
    }
}

typedef decltype(rms_norm_4<float4>) rms_norm_t;

template [[host_name("rms_norm_f32_4")]] kernel rms_norm_t rms_norm_4<float4>;
template [[host_name("rms_norm_f16_4")]] kernel decltype(rms_norm_4<half4>) rms_norm_4<half4>;
