// Complex FFT of each row in threadgroup memory (Stockham, so that the result needs no reordering): radix-4 steps and, where
// the size is an odd power of two, one of radix 2. The size is a function constant; the inverse is not scaled.
#include <metal_stdlib>
using namespace metal;

constant int N [[function_constant(0)]];
constant bool inverse [[function_constant(1)]];

constant constexpr int MAX_N = 2048;

METAL_FUNC float2 complex_mul(float2 a, float2 b) {
    return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

METAL_FUNC float2 twiddle(int k, int n) {
    const float theta = -2 * M_PI_F * float(k) / float(n);
    float c;
    const float s = precise::sincos(theta, c);
    return float2(c, inverse ? -s : s);
}

// Multiply by -i, or by i for the inverse.
METAL_FUNC float2 quarter_turn(float2 a) {
    return inverse ? float2(-a.y, a.x) : float2(a.y, -a.x);
}

struct Radix2 {
    static constant constexpr int radix = 2;
    METAL_FUNC static void butterfly(thread float2 *x) {
        const float2 a = x[0];
        x[0] = a + x[1];
        x[1] = a - x[1];
    }
};

struct Radix4 {
    static constant constexpr int radix = 4;
    METAL_FUNC static void butterfly(thread float2 *x) {
        const float2 sum02 = x[0] + x[2], diff02 = x[0] - x[2];
        const float2 sum13 = x[1] + x[3], turned = quarter_turn(x[1] - x[3]);
        x[0] = sum02 + sum13;
        x[1] = diff02 + turned;
        x[2] = sum02 - sum13;
        x[3] = diff02 - turned;
    }
};

// One pass: transforms of length p become transforms of length p * radix.
template <typename Step>
METAL_FUNC void pass(threadgroup float2 *buf, int p, uint tid, uint threads) {
    constexpr int R = Step::radix;
    const int m = N / R;
    float2 x[R];
    // A thread does at most one butterfly per pass, so all reads come before the barrier.
    const int i = tid;
    const int k = i % p;
    if (i < m) {
        for (int r = 0; r < R; r++) {
            x[r] = complex_mul(buf[i + r * m], twiddle(r * k, p * R));
        }
        Step::butterfly(x);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i < m) {
        const int j = (i - k) * R + k;
        for (int r = 0; r < R; r++) buf[j + r * p] = x[r];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

[[kernel]] void fft(const device float2 *in [[buffer(0)]],
                    device float2 *out [[buffer(1)]],
                    uint row [[threadgroup_position_in_grid]],
                    uint tid [[thread_index_in_threadgroup]],
                    uint threads [[threads_per_threadgroup]]) {
    threadgroup float2 buf[MAX_N];
    for (int i = tid; i < N; i += threads) buf[i] = in[row * N + i];
    threadgroup_barrier(mem_flags::mem_threadgroup);

    int p = 1;
    if (ctz(N) % 2 == 1) {
        pass<Radix2>(buf, p, tid, threads);
        p = 2;
    }
    for (; p < N; p *= 4) {
        pass<Radix4>(buf, p, tid, threads);
    }
    for (int i = tid; i < N; i += threads) out[row * N + i] = buf[i];
}
