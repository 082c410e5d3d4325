// Gravity between n bodies, read in tiles through threadgroup memory, then a leapfrog step.
#include <metal_stdlib>

using namespace metal;

typedef struct {
    float3 position;
    float mass;
    packed_float3 velocity;
    float spare;
} Body;

struct Step {
    uint count;
    float dt;
    float softening_squared;
};

METAL_FUNC float3 attraction(float3 at, float4 other, float softening_squared) {
    const float3 r = other.xyz - at;
    const float d = dot(r, r) + softening_squared;
    const float inverse = rsqrt(d);
    return other.w * inverse * inverse * inverse * r;
}

kernel void nbody(device const Body *now, device Body *next, constant Step &step, threadgroup float4 *tile,
                  uint i [[thread_position_in_grid]],
                  uint lid [[thread_position_in_threadgroup]],
                  uint threads [[threads_per_threadgroup]]) {
    const bool live = i < step.count;
    const float3 at = live ? now[i].position : float3(0);
    float3 acceleration = 0;

    for (uint start = 0; start < step.count; start += threads) {
        const uint other = start + lid;
        tile[lid] = other < step.count ? float4(now[other].position, now[other].mass) : float4(0);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        #pragma clang loop unroll_count(8)
        for (uint j = 0; j < threads; ++j) acceleration += attraction(at, tile[j], step.softening_squared);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (!live) return;

    Body body = now[i];
    body.velocity += acceleration * step.dt;
    body.position += step.dt * float3(body.velocity);
    next[i] = body;
}
