// Integer arithmetic that is defined for every operand, as in NumPy: a division by zero
// would stop the program, and C++ leaves overflow undefined (C++14, 5.6 and 5.8).
#pragma once
#include <metal_stdlib>
using namespace metal;

template <typename T> struct unsigned_of { using type = T; };
template <> struct unsigned_of<char> { using type = uchar; };
template <> struct unsigned_of<short> { using type = ushort; };
template <> struct unsigned_of<int> { using type = uint; };
template <> struct unsigned_of<long> { using type = ulong; };
template <typename T>
using unsigned_t = typename unsigned_of<T>::type;

// Sums, differences and products that wrap. C++ computes products of types narrower than int as int.
template <typename T> struct wrapping { using type = uint; };
template <> struct wrapping<long> { using type = ulong; };
template <> struct wrapping<ulong> { using type = ulong; };
template <typename T>
using wrapping_t = typename wrapping<T>::type;
template <typename T>
inline T sum_of(T x, T y) { return T(wrapping_t<T>(x) + wrapping_t<T>(y)); }
template <typename T>
inline T difference_of(T x, T y) { return T(wrapping_t<T>(x) - wrapping_t<T>(y)); }
template <typename T>
inline T product_of(T x, T y) { return T(wrapping_t<T>(x) * wrapping_t<T>(y)); }
template <typename T>
inline T negated(T x) { return T(wrapping_t<T>(0) - wrapping_t<T>(x)); }

template <typename T>
constexpr bool is_negative_one(T x) { return T(-1) < T(0) && x == T(-1); }

// A safe divisor: 1 replaces 0, and -1, by which the smallest number cannot be divided.
template <typename T>
inline T divisor(T y) { return y == T(0) || is_negative_one(y) ? T(1) : y; }

// Return the quotient rounded down; 0 for division by zero.
template <typename T>
inline T floor_quotient(T x, T y) {
    const T d = divisor(y), q = T(x / d), r = T(x - q * d);
    const T down = T(q - T(r != T(0) && (r < T(0)) != (d < T(0))));
    return y == T(0) ? T(0) : is_negative_one(y) ? negated(x) : down;
}

// The remainder: first with the divisor's sign, then with the dividend's. It is 0 for division by zero.
template <typename T>
inline T floor_remainder(T x, T y) {
    const T d = divisor(y), r = T(x % d);
    const T moved = r != T(0) && (r < T(0)) != (d < T(0)) ? T(r + d) : r;
    return y == T(0) || is_negative_one(y) ? T(0) : moved;
}
template <typename T>
inline T remainder_towards_zero(T x, T y) {
    const T r = T(x % divisor(y));
    return y == T(0) || is_negative_one(y) ? T(0) : r;
}

// The greatest common divisor and the least common multiple, by Euclid's algorithm on the magnitudes.
template <typename T>
inline unsigned_t<T> magnitude_of(T x) { return x < T(0) ? unsigned_t<T>(negated(x)) : unsigned_t<T>(x); }
template <typename T>
inline T gcd_of(T x, T y) {
    unsigned_t<T> a = magnitude_of(x), b = magnitude_of(y);
    while (b != 0) {
        const unsigned_t<T> left = unsigned_t<T>(a % b);
        a = b;
        b = left;
    }
    return T(a);
}
template <typename T>
inline T lcm_of(T x, T y) {
    const T common = gcd_of(x, y);
    const unsigned_t<T> least = product_of(unsigned_t<T>(magnitude_of(x) / magnitude_of(divisor(common))), magnitude_of(y));
    return common == T(0) ? T(0) : T(least);
}

// Shift by any number: beyond the width, only sign bits are left. The count is clamped first, since clang's back end
// for NVIDIA turns `y < 64 ? x << y : 0` into one shift by the lower 32 bits of y.
template <typename T>
inline unsigned_t<T> bounded(T y) { return min(unsigned_t<T>(y), unsigned_t<T>(8 * sizeof(T) - 1)); }
template <typename T>
inline T shifted_left(T x, T y) {
    const T moved = T(unsigned_t<T>(x) << bounded(y));
    return unsigned_t<T>(y) == bounded(y) ? moved : T(0);
}
template <typename T>
inline T shifted_right(T x, T y) {
    const T moved = T(x >> bounded(y));
    return T(-1) < T(0) || unsigned_t<T>(y) == bounded(y) ? moved : T(0);
}

// x to the power y >= 0, wrapping: squaring, bit by bit (D. Knuth, "The Art of Computer Programming", 4.6.3).
template <typename T>
inline T integer_power(T x, T y) {
    ulong result = 1, square = ulong(x);
    for (unsigned_t<T> e = unsigned_t<T>(y); e != 0; e = unsigned_t<T>(e >> 1)) {
        result *= (e & 1) ? square : ulong(1);
        square *= square;
    }
    return T(result);
}
