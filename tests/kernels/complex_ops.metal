// Complex numbers as a user-defined type whose members are declared for each address space, with binary operations
// defined by macros, also with a scalar on either side.
#include <metal_stdlib>
using namespace metal;

struct complex64_t {
    float real;
    float imag;

    complex64_t() = default;
    constexpr complex64_t(float real, float imag) : real(real), imag(imag) {}
    constexpr complex64_t(float x) thread : real(x), imag(0) {}

    constexpr operator float2() const thread { return float2(real, imag); }
    constexpr operator float2() const device { return float2(real, imag); }
    constexpr operator float2() const constant { return float2(real, imag); }
    constexpr operator float2() const threadgroup { return float2(real, imag); }
};

constexpr complex64_t operator-(complex64_t x) { return {-x.real, -x.imag}; }
constexpr complex64_t operator+(complex64_t a, complex64_t b) { return {a.real + b.real, a.imag + b.imag}; }
constexpr complex64_t operator-(complex64_t a, complex64_t b) { return a + -b; }
constexpr complex64_t operator*(complex64_t a, complex64_t b) {
    return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
constexpr complex64_t operator/(complex64_t a, complex64_t b) {
    const auto denom = b.real * b.real + b.imag * b.imag;
    const auto x = a * complex64_t(b.real, -b.imag);
    return {x.real / denom, x.imag / denom};
}
constexpr bool operator<(complex64_t a, complex64_t b) {
    return a.real < b.real || (a.real == b.real && a.imag < b.imag);
}

static inline complex64_t larger(complex64_t a, complex64_t b) { return a < b ? b : a; }

#define BINARY(name, expression)                                                          \
    kernel void name(device const complex64_t *x, device const complex64_t *y,            \
                     device complex64_t *out, constant complex64_t &c,                    \
                     uint i [[thread_position_in_grid]]) {                                \
        const complex64_t a = x[i], b = y[i];                                             \
        out[i] = (expression);                                                            \
    }

BINARY(add, a + b)
BINARY(multiply_add, a * b + c)
BINARY(divide, a / b)
BINARY(maximum, larger(a, b))

// |x|, through the conversions of each address space.
kernel void magnitude(device const complex64_t *x, device float *out, constant complex64_t &c,
                      uint i [[thread_position_in_grid]], uint lid [[thread_index_in_threadgroup]]) {
    threadgroup complex64_t tile[256];
    tile[lid] = x[i];
    const complex64_t mine = x[i];
    const float2 v = float2(x[i]) + float2(tile[lid]) - float2(mine) + 0 * float2(c);
    out[i] = length(v);
}
