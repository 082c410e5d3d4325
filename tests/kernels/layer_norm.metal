// Layer norm of each row: the mean, then the variance around it, so that a large mean costs no digits. Function
// constants make the weights optional.
#include <metal_stdlib>

constant bool affine [[function_constant(20)]];

struct Args {
    uint  columns;
    float eps;
};

// Sum over the threadgroup; every thread gets it.
static float group_sum(float x, threadgroup float* scratch, uint lane, uint simdgroup, uint simdgroups) {
    x = metal::simd_sum(x);
    if (lane == 0) {
        scratch[simdgroup] = x;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    x = metal::simd_sum(lane < simdgroups ? scratch[lane] : 0.0f);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return x;
}

kernel void layer_norm(device const float* x          [[buffer(0)]],
                       device float*       y          [[buffer(1)]],
                       device const float* weight     [[buffer(2), function_constant(affine)]],
                       device const float* bias       [[buffer(3), function_constant(affine)]],
                       constant Args&      args       [[buffer(4)]],
                       threadgroup float*  scratch    [[threadgroup(0)]],
                       uint                row        [[threadgroup_position_in_grid]],
                       uint                tid        [[thread_position_in_threadgroup]],
                       uint                threads    [[threads_per_threadgroup]],
                       uint                lane       [[thread_index_in_simdgroup]],
                       uint                simdgroup  [[simdgroup_index_in_threadgroup]],
                       uint                simdgroups [[simdgroups_per_threadgroup]])
{
    x += row * args.columns;
    y += row * args.columns;

    float sum = 0;
    for (uint i = tid; i < args.columns; i += threads) sum += x[i];
    const float mean = group_sum(sum, scratch, lane, simdgroup, simdgroups) / args.columns;

    float squares = 0;
    for (uint i = tid; i < args.columns; i += threads) {
        const float d = x[i] - mean;
        squares += d * d;
    }
    const float variance = group_sum(squares, scratch, lane, simdgroup, simdgroups) / args.columns;
    const float scale = metal::precise::rsqrt(variance + args.eps);

    for (uint i = tid; i < args.columns; i += threads) {
        const float value = (x[i] - mean) * scale;
        y[i] = affine ? metal::fma(value, weight[i], bias[i]) : value;
    }
}
