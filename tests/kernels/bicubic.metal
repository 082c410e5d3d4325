// Bicubic resampling of an image with any number of channels (Keys' kernel, a = -0.75, edges repeated).
#include <metal_stdlib>
using namespace metal;

template <typename accscalar_t>
accscalar_t cubic_convolution1(accscalar_t x, accscalar_t A) {
    return ((A + 2) * x - (A + 3)) * x * x + 1;
}

template <typename accscalar_t>
accscalar_t cubic_convolution2(accscalar_t x, accscalar_t A) {
    return ((A * x - 5 * A) * x + 8 * A) * x - 4 * A;
}

template <typename accscalar_t>
void get_cubic_coefficients(thread accscalar_t coeffs[4], accscalar_t t) {
    const accscalar_t A = -0.75;
    coeffs[0] = cubic_convolution2<accscalar_t>(t + 1.0, A);
    coeffs[1] = cubic_convolution1<accscalar_t>(t, A);
    coeffs[2] = cubic_convolution1<accscalar_t>(1.0 - t, A);
    coeffs[3] = cubic_convolution2<accscalar_t>(2.0 - t, A);
}

template <typename T>
float fetch(constant T* image, long3 sizes, long3 strides, long y, long x, long c) {
    y = clamp(y, 0L, sizes.x - 1);
    x = clamp(x, 0L, sizes.y - 1);
    return static_cast<float>(image[y * strides.x + x * strides.y + c * strides.z]);
}

template <typename T>
kernel void upsample_bicubic(
    constant T* input [[buffer(0)]],
    device T* output [[buffer(1)]],
    constant long4* input_layout [[buffer(2)]],   // sizes, then strides: height, width, channels
    constant float2& scale [[buffer(3)]],         // height, width
    uint3 at [[thread_position_in_grid]],         // channel, x, y
    uint3 size [[threads_per_grid]]) {
    const long3 sizes = input_layout[0].xyz, strides = input_layout[1].xyz;
    const float2 real_at = scale * (float2(at.z, at.y) + 0.5f) - 0.5f;
    const float2 whole = floor(real_at);
    const float2 t = real_at - whole;

    float cx[4], cy[4];
    get_cubic_coefficients(cx, t.y);
    get_cubic_coefficients(cy, t.x);

    float sum = 0;
    for (int i = 0; i < 4; ++i) {
        float line = 0;
        for (int j = 0; j < 4; ++j)
            line += cx[j] * fetch(input, sizes, strides, long(whole.x) + i - 1, long(whole.y) + j - 1, at.x);
        sum += cy[i] * line;
    }
    if constexpr (is_integral_v<T>) {
        output[(at.z * size.y + at.y) * size.x + at.x] = static_cast<T>(clamp(rint(sum), 0.0, 255.0));
    } else {
        output[(at.z * size.y + at.y) * size.x + at.x] = static_cast<T>(sum);
    }
}

#define INSTANTIATE(DTYPE)                                                           \
    template [[host_name("upsample_bicubic_" #DTYPE)]] kernel void upsample_bicubic<DTYPE>( \
        constant DTYPE * input [[buffer(0)]],                                        \
        device DTYPE * output [[buffer(1)]],                                         \
        constant long4 * input_layout [[buffer(2)]],                                 \
        constant float2 & scale [[buffer(3)]],                                       \
        uint3 at [[thread_position_in_grid]],                                        \
        uint3 size [[threads_per_grid]])

INSTANTIATE(float);
INSTANTIATE(uchar);
