// Piecewise linear interpolation: each thread finds the two points around its x by binary search, and interpolates.
// Source: NumPy's interp.
#include <metal_stdlib>
using namespace metal;

struct Ends {
    float left;   // below the first point
    float right;  // beyond the last
    uint n;       // points
};

kernel void interpolate(device const float* x, device const float* xp, device const float* fp, device float* out,
                        constant Ends& ends, uint i [[thread_position_in_grid]]) {
    const float value = x[i];
    uint low = 0, length = ends.n;
    while (length > 1) {  // the last point that is not above the value
        const uint half_length = length / 2;
        const bool after = xp[low + half_length] <= value;
        low = after ? low + half_length : low;
        length = after ? length - half_length : half_length;
    }
    const uint next = min(low + 1, ends.n - 1);
    const float a = fp[low], b = fp[next], from = xp[low], to = xp[next];
    const float x_scale = to - from == INFINITY ? 0.5f : 1.0f, scale = abs(b - a) == INFINITY ? 0.5f : 1.0f;
    const float width = to * x_scale - from * x_scale, rise = b * scale - a * scale;  // do not overflow
    const float up = fma((value * x_scale - from * x_scale) / width, rise, a * scale) / scale;
    const float down = fma((value * x_scale - to * x_scale) / width, rise, b * scale) / scale;
    const float sloped = up == up ? up : down;  // of infinities, one may be NaN
    const float between = width > 0.0f && value != from && a != b ? sloped : a;
    const float within = value < xp[0] ? ends.left : value > xp[ends.n - 1] ? ends.right : between;
    out[i] = value != value ? value : within;
}
