// Metal's types and functions for the host, written without any library. shared.h follows.
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned uint;
typedef unsigned long ulong;
typedef _Float16 half;
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define AS_UINT(x) __builtin_bit_cast(uint, x)

// The compiler inserts calls to these.
extern "C" void* memset(void* to, int value, ulong count) {
  for (ulong i = 0; i < count; ++i) ((volatile char*)to)[i] = value;
  return to;
}
extern "C" void* memcpy(void* to, const void* from, ulong count) {
  for (ulong i = 0; i < count; ++i) ((volatile char*)to)[i] = ((const char*)from)[i];
  return to;
}

// Products are not contracted into fused multiply-adds.
inline float K(float x, uint) { return x; }
inline half K(half x, uint) { return x; }

// Integers
template <class T> struct wide_of { typedef __int128 type; };
template <> struct wide_of<ulong> { typedef unsigned __int128 type; };
template <class T> inline T min(T a, T b) { return b < a ? b : a; }
template <class T> inline T max(T a, T b) { return a < b ? b : a; }
template <class T> inline T clamp(T x, T low, T high) { return min(max(x, low), high); }
template <class T> inline T median3(T a, T b, T c) { return max(min(a, b), min(max(a, b), c)); }
template <class T> inline T absdiff(T a, T b) { return T(a < b ? ulong(b) - ulong(a) : ulong(a) - ulong(b)); }
template <class T> inline T abs(T a) { return a < T(0) ? T(0 - ulong(a)) : a; }
template <class T> inline T mulhi(T a, T b) {
  typedef typename wide_of<T>::type W;
  return T((W(a) * W(b)) >> (8 * sizeof(T)));
}
template <class T> inline T popcount(T a) {
  T n = 0;
  for (uint i = 0; i < 8 * sizeof(T); ++i) n += (ulong(a) >> i) & 1;
  return n;
}
template <class T> inline T clz(T a) {
  T n = 0;
  for (int i = 8 * sizeof(T) - 1; i >= 0 && !((ulong(a) >> i) & 1); --i) ++n;
  return n;
}
template <class T> inline T ctz(T a) {
  T n = 0;
  for (uint i = 0; i < 8 * sizeof(T) && !((ulong(a) >> i) & 1); ++i) ++n;
  return n;
}

// Floats
template <class T> inline T fmin(T a, T b) { return a != a ? b : b != b ? a : b < a ? b : a; }
template <class T> inline T fmax(T a, T b) { return a != a ? b : b != b ? a : a < b ? b : a; }
template <class T> inline T fabs(T a) { return a < T(0) ? T(-a) : a; }
template <class T> inline T trunc(T a) {
  return a != a || fabs(a) >= T(sizeof(T) == 2 ? 2048 : 8388608) ? a : T(int(a));
}
template <class T> inline T floor(T a) { T w = trunc(a); return w > a ? T(w - T(1)) : w; }
template <class T> inline T ceil(T a) { T w = trunc(a); return w < a ? T(w + T(1)) : w; }

// Vectors
#define VECTORS_OF(T) \
  typedef T T##2 __attribute__((ext_vector_type(2))); \
  typedef T T##3 __attribute__((ext_vector_type(3))); \
  typedef T T##4 __attribute__((ext_vector_type(4))); \
  inline T##2 make_##T##2(T x, T y) { T##2 r; r.x = x; r.y = y; return r; } \
  inline T##3 make_##T##3(T x, T y, T z) { T##3 r; r.x = x; r.y = y; r.z = z; return r; } \
  inline T##4 make_##T##4(T x, T y, T z, T w) { T##4 r; r.x = x; r.y = y; r.z = z; r.w = w; return r; }
#define LANEWISE(V, n, name, sign) \
  inline V name(V a, V b) { V r; for (int i = 0; i < n; ++i) r[i] = a[i] sign b[i] ? a[i] : b[i]; return r; }
#define MIN_AND_MAX_OF(T) \
  LANEWISE(T##2, 2, min, <) LANEWISE(T##2, 2, max, >) \
  LANEWISE(T##3, 3, min, <) LANEWISE(T##3, 3, max, >) \
  LANEWISE(T##4, 4, min, <) LANEWISE(T##4, 4, max, >)
VECTORS_OF(int) MIN_AND_MAX_OF(int)
VECTORS_OF(uint) MIN_AND_MAX_OF(uint)
VECTORS_OF(ushort) MIN_AND_MAX_OF(ushort)
VECTORS_OF(uchar) MIN_AND_MAX_OF(uchar)
VECTORS_OF(long) MIN_AND_MAX_OF(long)
VECTORS_OF(float)
VECTORS_OF(half)

// SIMD functions for an entire threadgroup: `given` and `out` have one element per thread, `on` marks active threads.
// Those of quads are the same for groups of 4.
#define OF_GROUPS(name, lanes, step) \
  template <class T, class R> void name(const T* given, const bool* on, R* out, uint size) { \
    for (uint first = 0; first < size; first += lanes) { \
      bool some = false; R all = 0; \
      for (uint t = first; t < first + lanes && t < size; ++t) if (on[t]) { \
        T x = given[t]; uint lane = t - first; step some = true; \
      } \
      for (uint t = first; t < first + lanes && t < size; ++t) if (on[t]) out[t] = all; \
    } \
  }
#define REDUCTION(name, step) OF_GROUPS(simd_##name, 32, step) OF_GROUPS(quad_##name, 4, step)
REDUCTION(sum, all = R(ulong(all) + ulong(x));)
REDUCTION(min, all = !some || x < all ? x : all;)
REDUCTION(max, all = !some || x > all ? x : all;)
REDUCTION(and, all = some ? R(all & x) : R(x);)
REDUCTION(or, all = R(all | x);)
REDUCTION(xor, all = R(all ^ x);)
REDUCTION(broadcast_first, all = some ? all : R(x);)
REDUCTION(last, all = R(x);)
REDUCTION(product, all = some ? R(ulong(all) * ulong(x)) : R(x);)
REDUCTION(ballot, all = all | R(x ? 1u << lane : 0u);)
REDUCTION(any, all = all | R(x != 0);)
REDUCTION(all, all = some ? R(all & R(x != 0)) : R(x != 0);)
#define SCAN_OF_GROUPS(name, lanes, start, step) \
  template <class T> void name(const T* given, const bool* on, T* out, uint size) { \
    for (uint first = 0; first < size; first += lanes) { \
      T all = start; \
      for (uint t = first; t < first + lanes && t < size; ++t) if (on[t]) { step } \
    } \
  }
#define SCAN(name, start, step) \
  SCAN_OF_GROUPS(simd_##name, 32, start, step) SCAN_OF_GROUPS(quad_##name, 4, start, step)
SCAN(prefix_exclusive_sum, 0, out[t] = all; all = T(ulong(all) + ulong(given[t]));)
SCAN(prefix_inclusive_sum, 0, all = T(ulong(all) + ulong(given[t])); out[t] = all;)
SCAN(prefix_exclusive_product, 1, out[t] = all; all = T(ulong(all) * ulong(given[t]));)
