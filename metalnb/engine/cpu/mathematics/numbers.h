// Shared by this folder's functions: a number's bits, and its nearest integer.
//
// Values are computed before one is selected: clang turns `a ? b : c` into a branch unless b and c are names or
// numbers.
#pragma once

inline metal::uint $bits_of(float x) { return __builtin_bit_cast(metal::uint, x); }
inline metal::ulong $bits_of(double x) { return __builtin_bit_cast(metal::ulong, x); }
inline float $of_bits(metal::uint x) { return __builtin_bit_cast(float, x); }
inline double $of_bits(metal::ulong x) { return __builtin_bit_cast(double, x); }

/// x, with its sign flipped if the highest of these bits is set.
inline float $flip_sign(float x, metal::uint bits) { return $of_bits($bits_of(x) ^ (bits & 0x80000000)); }

/// The integer n nearest to x, for |x| < 2^22; the last bits of `shifted` are n's.
struct $nearest {
    float shifted;
    inline explicit $nearest(float x) : shifted(x + 0x1.8p23f) {}
    inline float value() const { return shifted - 0x1.8p23f; }
    inline metal::uint bits() const { return $bits_of(shifted); }
};
/// The same for a double, for |x| < 2^51.
struct $nearest_wide {
    double shifted;
    inline explicit $nearest_wide(double x) : shifted(x + double(0x1.8p52L)) {}
    inline double value() const { return shifted - double(0x1.8p52L); }
    inline metal::ulong bits() const { return $bits_of(shifted); }
    /// x times 2^n, and times 2^-n, as long as these are normal numbers.
    inline double scale_up(double x) const { return $of_bits($bits_of(x) + (bits() << 52)); }
    inline double scale_down(double x) const { return $of_bits($bits_of(x) - (bits() << 52)); }
};
