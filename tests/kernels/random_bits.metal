// Counter-based random bits: Threefry-2x32 (20 rounds) and Philox-4x32 (10 rounds), one counter per thread, as in
// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). Each thread's numbers are independent of the
// others'.
#include <metal_stdlib>

static constexpr constant uint32_t rotations[2][4] = {
    {13, 15, 26, 6},
    {17, 29, 16, 24}};

union rbits {
  metal::uint2 val;
  metal::uchar4 bytes[2];
};

static rbits threefry2x32_hash(const thread metal::uint2& key, metal::uint2 count) {
  metal::uint4 ks = {key.x, key.y, key.x ^ key.y ^ 0x1BD11BDA};

  rbits v;
  v.val.x = count.x + ks[0];
  v.val.y = count.y + ks[1];

  for (int i = 0; i < 5; ++i) {
    for (auto r : rotations[i % 2]) {
      v.val.x += v.val.y;
      v.val.y = (v.val.y << r) | (v.val.y >> (32 - r));
      v.val.y ^= v.val.x;
    }
    v.val.x += ks[(i + 1) % 3];
    v.val.y += ks[(i + 2) % 3] + i + 1;
  }
  return v;
}

[[kernel]] void threefry(
    device const uint32_t* keys [[buffer(0)]],
    device char* out [[buffer(1)]],
    constant const uint& bytes_per_key,
    metal::uint2 grid_dim [[threads_per_grid]],
    metal::uint2 index [[thread_position_in_grid]]) {
  auto key = metal::uint2(keys[2 * index.x], keys[2 * index.x + 1]);
  const uint half_size = grid_dim.y;
  out += index.x * bytes_per_key;
  const bool drop_last = 8 * index.y + 8 > bytes_per_key;

  auto bits = threefry2x32_hash(key, metal::uint2(index.y, half_size + index.y));
  const uint end = drop_last ? bytes_per_key - 8 * index.y : 8;
  for (uint i = 0; i < end; i++) {
    out[8 * index.y + i] = bits.bytes[i / 4][i % 4];
  }
}

namespace philox {

struct state {
  metal::uint4 counter;
  metal::uint2 key;

  void round() {
    const uint hi0 = metal::mulhi(counter.x, 0xD2511F53u), lo0 = counter.x * 0xD2511F53u;
    const uint hi1 = metal::mulhi(counter.z, 0xCD9E8D57u), lo1 = counter.z * 0xCD9E8D57u;
    counter = metal::uint4(hi1 ^ counter.y ^ key.x, lo1, hi0 ^ counter.w ^ key.y, lo0);
    key += metal::uint2(0x9E3779B9u, 0xBB67AE85u);
  }
};

}  // namespace philox

// Four floats in [0, 1), and the bits that they are made from.
kernel void philox_uniform(device metal::uint4* bits [[buffer(0)]],
                           device metal::float4* uniform [[buffer(1)]],
                           constant ulong& seed [[buffer(2)]],
                           constant ulong& offset [[buffer(3)]],
                           uint i [[thread_position_in_grid]])
{
  const ulong count = offset + i;
  philox::state s{{uint(count), uint(count >> 32), 0, 0}, metal::as_type<metal::uint2>(seed)};
  for (int r = 0; r < 10; ++r) s.round();
  bits[i] = s.counter;
  uniform[i] = metal::float4(s.counter >> 8) * 0x1p-24f;
}
