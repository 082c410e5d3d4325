// What random kernels call on both sides: division by any number, a float rounded to an integer, any value's 32 bits.
template <class T> inline T safe_div(T a, T b) { return b == T(0) || b == T(-1) ? a : T(a / b); }
template <class T> inline T safe_rem(T a, T b) { return b == T(0) || b == T(-1) ? a : T(a % b); }
template <class T> inline T whole(float x) {
  return x != x ? T(0) : x > 1.0e6f ? T(1) : x < -1.0e6f ? T(2) : T(int(x));
}

inline uint bits(char x) { return uint(uchar(x)); }
inline uint bits(uchar x) { return x; }
inline uint bits(short x) { return uint(ushort(x)); }
inline uint bits(ushort x) { return x; }
inline uint bits(int x) { return uint(x); }
inline uint bits(uint x) { return x; }
inline uint bits(ulong x) { return uint(x) ^ uint(x >> 32) * 3u; }
inline uint bits(long x) { return bits(ulong(x)); }
inline uint bits(float x) { return x != x ? 0x7fc00000u : x == 0.0f ? 0u : AS_UINT(x); }
inline uint bits(half x) { return bits(float(x)); }

#define BITS_OF_2(V) inline uint bits(V x) { return bits(x.x) * 7u + bits(x.y); }
#define BITS_OF_3(V) inline uint bits(V x) { return bits(x.x) * 7u + bits(x.y) * 5u + bits(x.z); }
#define BITS_OF_4(V) inline uint bits(V x) { return bits(x.x) * 7u + bits(x.y) * 5u + bits(x.z) * 5u + bits(x.w); }
