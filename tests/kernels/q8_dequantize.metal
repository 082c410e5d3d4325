// Blocks of 32 signed bytes with a half scale, to any floating type: one thread writes four neighboring values
// as one vector.
#include <metal_stdlib>

using namespace metal;

struct block_q8 {
    half   scale;
    int8_t q[32];
};

template <typename T>
[[kernel]] void dequantize_q8(
    const device block_q8* blocks [[buffer(0)]],
    device vec<T, 4>* out [[buffer(1)]],
    uint index [[thread_position_in_grid]]) {
  using T4 = vec<T, 4>;
  const device block_q8& b = blocks[index / 8];
  const device int8_t* q = b.q + 4 * (index % 8);
  out[index] = T4(T(b.scale * q[0]), T(b.scale * q[1]), T(b.scale * q[2]), T(b.scale * q[3]));
}

template [[host_name("dequantize_q8_float")]] [[kernel]] decltype(dequantize_q8<float>) dequantize_q8<float>;
template [[host_name("dequantize_q8_half")]] [[kernel]] decltype(dequantize_q8<half>) dequantize_q8<half>;
