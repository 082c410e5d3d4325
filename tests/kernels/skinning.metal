// Skeletal animation: each vertex moves by the weighted matrices of up to four bones, its normal by their upper 3x3;
// atomics on order-preserving bits of floats keep the bounding box.
#include <metal_stdlib>
#include <simd/simd.h>
using namespace metal;

struct Vertex {
    packed_float3 position;
    packed_half4 weights;
    uchar4 bones;
    packed_float3 normal;
};

struct Skinned {
    float4 position;
    float3 normal;
};

// As unsigned numbers these bits have the floats' order.
static uint ordered(float x) {
    const uint bits = as_type<uint>(x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

kernel void skin(const device Vertex *vertices [[buffer(0)]],
                 constant simd::float4x4 *bones [[buffer(1)]],
                 device Skinned *out [[buffer(2)]],
                 device atomic_uint *box [[buffer(3)]],   // least x, y, z; greatest x, y, z
                 uint i [[thread_position_in_grid]]) {
    const device Vertex &v = vertices[i];
    float4x4 m(0.0f);
    for (ushort k = 0; k < 4; ++k) m += bones[v.bones[k]] * float(v.weights[k]);

    Skinned result;
    result.position = m * float4(v.position, 1);
    const float3x3 turn(m[0].xyz, m[1].xyz, m[2].xyz);
    result.normal = normalize(turn * v.normal);
    out[i] = result;

    for (ushort k = 0; k < 3; ++k) {
        atomic_fetch_min_explicit(&box[k], ordered(result.position[k]), memory_order_relaxed);
        atomic_fetch_max_explicit(&box[3 + k], ordered(result.position[k]), memory_order_relaxed);
    }
}
