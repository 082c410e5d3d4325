// A half of a double, rounded once: what clang calls where an x86-64 processor has no instruction for it (AVX-512 FP16).
//
// The double becomes a float first, rounded to odd: toward zero, with the last bit set unless the float is exact. What is
// lost there can make no tie of what was none, as a float has more than two bits more than a half (S. Boldo and
// G. Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).
_Float16 __truncdfhf2(double x);
_Float16 __truncdfhf2(double x) {
    float near = (float)x;
    if (near != x && x == x) {
        unsigned bits = __builtin_bit_cast(unsigned, near);
        bits -= __builtin_fabs(near) > __builtin_fabs(x);
        near = __builtin_bit_cast(float, bits | 1);
    }
    return (_Float16)near;
}
