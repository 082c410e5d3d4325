// Pooling: the largest element, or the mean, of each window of an image. Each thread goes through the window of one place.
// Source: PyTorch's max_pool2d and avg_pool2d.
#include <metal_stdlib>
#include <metalnb/storage.h>
using namespace metal;

struct Pooling {
    uint2 image;     // columns and rows of an image
    uint2 size;      // … of a window
    uint2 stride;
    uint2 padding;
    uint2 dilation;
    uint counted;    // whether a mean counts the padding
    float divisor;   // of means; 0: the number of elements
};

// MAX: the largest, and NaN where there is one; else the mean.
template <typename T, bool MAX>
kernel void pool(device const memory_of<T>* x, device memory_of<T>* out, constant Pooling& p,
                 uint3 place [[thread_position_in_grid]], uint3 places [[threads_per_grid]]) {
    const int2 first = int2(place.xy * p.stride) - int2(p.padding);
    x += place.z * ulong(p.image.x) * p.image.y;
    float found = MAX ? -INFINITY : 0.0f;
    for (uint i = 0; i < p.size.y; ++i) {
        const int row = first.y + int(i * p.dilation.y);
        for (uint j = 0; j < p.size.x; ++j) {
            const int column = first.x + int(j * p.dilation.x);
            const bool inside = row >= 0 && row < int(p.image.y) && column >= 0 && column < int(p.image.x);
            const float value = inside ? storage<T>::load(x[ulong(row) * p.image.x + column]) : MAX ? -INFINITY : 0.0f;
            found = MAX ? (value > found || value != value ? value : found) : found + value;
        }
    }
    if (!MAX) {  // a window that reaches beyond the padding counts up to its end
        const int2 low = p.counted ? first : max(first, int2(0));
        const int2 reach = int2(p.image) + (p.counted ? int2(p.padding) : int2(0));
        const int2 count = min(first + int2(p.size), reach) - low;
        found /= p.divisor != 0.0f ? p.divisor : float(count.x * count.y);
    }
    out[(place.z * ulong(places.y) + place.y) * places.x + place.x] = storage<T>::store(found);
}
