// Escape times of the Mandelbrot set, colored by a palette in constant memory.
#include <metal_stdlib>
using namespace metal;

struct View {
    float2 center;
    float scale;      // of one pixel
    ushort iterations;
};

constant uchar4 palette[4] = {
    uchar4(0, 7, 100, 255), uchar4(32, 107, 203, 255), uchar4(237, 255, 255, 255), uchar4(255, 170, 0, 255),
};

kernel void mandelbrot(device uchar4 *image, device ushort *escape, constant View &view,
                       ushort2 at [[thread_position_in_grid]], ushort2 size [[threads_per_grid]]) {
    const float2 c = view.center + view.scale * (float2(at) - 0.5 * float2(size));
    float2 z = 0;
    ushort n = 0;
    while (n < view.iterations && length_squared(z) <= 4.0) {
        z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c;
        ++n;
    }
    const uint i = uint(at.y) * size.x + at.x;
    escape[i] = n;
    image[i] = n == view.iterations ? uchar4(0, 0, 0, 255) : palette[n % 4];
}
