// Numbers at equal steps: thread i writes start + i·step; if requested, the last thread writes `stop`.
// A float has 24 bits, too few for i·step to be exact; so start, step and the product are each a sum of two floats, and
// only the final sum is rounded. Source: Dekker, "A floating-point technique for extending the available precision",
// 1971.
#include <metal_stdlib>
#include <metalnb/storage.h>
using namespace metal;

struct Ramp {
    float start, start_rest, step, step_rest, stop;
    float scale;  // 2 if start and step are halves, since their range exceeds the largest float; otherwise 1
    uint last;    // the position that gets `stop`; none when it is past the end
};

// The macro TO is the dtype of the result.
kernel void floats(
    device memory_of<TO>* out,
    constant Ramp& ramp,
    uint i [[thread_position_in_grid]]) {
    uint low = i >> 24 ? i & 255u : 0u;
    float n = float(i - low);
    float n_rest = float(low);
    float p = n * ramp.step;
    float p_rest = fma(n, ramp.step, -p) + fma(n, ramp.step_rest, n_rest * ramp.step);
    float s = ramp.start + p;
    float b = s - ramp.start;
    float s_rest = (ramp.start - (s - b)) + (p - b);
    float value = i == 0 || abs(s) == INFINITY ? s : s + (s_rest + (p_rest + ramp.start_rest));
    out[i] = storage<TO>::store(i == ramp.last ? ramp.stop : value * ramp.scale);
}

// A simpler kernel for start and step in float32 and at most 2^24 numbers, for which one fma is exact enough.
kernel void short_floats(
    device memory_of<TO>* out,
    constant Ramp& ramp,
    uint i [[thread_position_in_grid]]) {
    out[i] = storage<TO>::store(fma(float(i), ramp.step, ramp.start) * ramp.scale);
}

kernel void integers(
    device memory_of<TO>* out,
    constant ulong& start,
    constant ulong& step,
    uint i [[thread_position_in_grid]]) {
    out[i] = storage<TO>::store(start + ulong(i) * step);  // wraps in every width of integer
}
