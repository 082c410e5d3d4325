// Included before a random kernel in Metal. shared.h follows.
#include <metal_stdlib>
using namespace metal;
#define AS_UINT(x) as_type<uint>(x)

// A product that no compiler can contract into a sum: its bits are combined with a word that only the caller knows is
// 0.
inline float K(float x, uint zero) { return as_type<float>(as_type<uint>(x) + zero); }
inline half K(half x, uint zero) { return as_type<half>(ushort(as_type<ushort>(x) + ushort(zero))); }

// Another lane's value if that lane exists, otherwise the thread's own.
#define FROM(name, function, lane) \
  template <class T> inline T name(T x, uint by, uint at, uint width) { \
    T there = function(x, ushort(by)); \
    return (lane) < width ? there : x; \
  }
FROM(from_xor, simd_shuffle_xor, at ^ by)
FROM(from_below, simd_shuffle_up, at - by)
FROM(from_above, simd_shuffle_down, at + by)
FROM(from_around, simd_shuffle_rotate_down, (at + by) % 32)
FROM(in_quad_from_xor, quad_shuffle_xor, at ^ by)
