// Rotary embedding: pairs of a head's elements are rotated by position times a frequency that decreases with the pair's
// index. A grid of (pairs, heads, positions); interleaved or split pairs, forward or inverse, by template.
#include <metal_math>
#include <metal_stdlib>
using namespace metal;

template <typename T, bool traditional, bool forward>
void rope_impl(
    const device T* in,
    device T* out,
    constant const int& offset,
    constant const float& base,
    constant const float& scale,
    uint3 pos,
    uint3 grid) {
  const uint dims = 2 * grid.x;
  const float L = scale * static_cast<float>(pos.z + offset);
  const float d = static_cast<float>(pos.x) / static_cast<float>(grid.x);
  const float inv_freq = metal::exp2(-d * base);
  const float theta = L * inv_freq;
  float costheta = metal::fast::cos(theta);
  float sintheta = metal::fast::sin(theta);

  const size_t head = (size_t(pos.z) * grid.y + pos.y) * dims;
  size_t index_1, index_2;
  if constexpr (traditional) {
    index_1 = head + 2 * pos.x;
    index_2 = index_1 + 1;
  } else {
    index_1 = head + pos.x;
    index_2 = index_1 + grid.x;
  }

  const float x1 = static_cast<float>(in[index_1]);
  const float x2 = static_cast<float>(in[index_2]);
  if (!forward) {
    sintheta = -sintheta;
  }
  out[index_1] = static_cast<T>(x1 * costheta - x2 * sintheta);
  out[index_2] = static_cast<T>(x1 * sintheta + x2 * costheta);
}

template <typename T, bool traditional, bool forward = true>
[[kernel]] void rope(
    const device T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    constant const int& offset,
    constant const float& base,
    constant const float& scale,
    uint3 pos [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]]) {
  rope_impl<T, traditional, forward>(in, out, offset, base, scale, pos, grid);
}

#define instantiate_rope(name, ...) \
  template [[host_name(#name)]] [[kernel]] decltype(rope<__VA_ARGS__>) rope<__VA_ARGS__>;

instantiate_rope(rope_traditional_float, float, true)
instantiate_rope(rope_float, float, false)
instantiate_rope(rope_inverse_float, float, false, false)
instantiate_rope(rope_half, half, false)
