// Conversions from and to half, which clang calls where an x86-64 processor has no instruction for them. (Processors
// with AVX2 convert between half and float by F16C; vector code converts whole vectors, see half_functions.py.)
//
// Between half and float, without F16C: F. Giesen, "Float->half variants", 2012.
#ifndef __F16C__
float __extendhfsf2(_Float16 x);
float __extendhfsf2(_Float16 x) {
    const unsigned bits = __builtin_bit_cast(unsigned short, x), magnitude = (bits & 0x7fffu) << 13;
    float value = __builtin_bit_cast(float, magnitude) * 0x1p112f;  // exact, even for the least halves
    unsigned result = __builtin_bit_cast(unsigned, value);
    if (magnitude >= 0x7c00u << 13) result = 0x7f800000u | magnitude;  // infinity or NaN
    return __builtin_bit_cast(float, result | (bits & 0x8000u) << 16);
}
_Float16 __truncsfhf2(float x);
_Float16 __truncsfhf2(float x) {
    const unsigned bits = __builtin_bit_cast(unsigned, x), sign = bits >> 16 & 0x8000u;
    unsigned magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) magnitude = 0x7e00u | (magnitude >> 13 & 0x1ffu);
    else if (magnitude >= 0x47800000u) magnitude = 0x7c00u;  // from 2^16 on
    else if (magnitude < 0x38800000u) {                       // below 2^-14: the sum's last bits are the half's
        const float sum = __builtin_bit_cast(float, magnitude) + 0.5f;
        magnitude = __builtin_bit_cast(unsigned, sum) - 0x3f000000u;
    } else magnitude = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    return __builtin_bit_cast(_Float16, (unsigned short)(magnitude | sign));
}
#endif

// From double to half, rounded once (AVX-512 FP16 has an instruction).
//
// The double becomes a float first, rounded to odd: toward zero, with the last bit set unless the float is exact.
// So rounding twice gives the same result as rounding once, since a float has over two bits more than a half (S. Boldo
// and G. Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).
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
