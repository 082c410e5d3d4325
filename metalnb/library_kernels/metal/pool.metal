// Pooling: the largest element, or the mean, of each window of an image. Each thread computes one output element.
// Source: PyTorch's max_pool2d and avg_pool2d.
#include <metal_stdlib>
#include <metalnb/storage.h>
using namespace metal;

struct Pooling {
    uint2 image;     // columns and rows of an image
    uint2 size;      // columns and rows of a window
    uint2 stride;
    uint2 padding;
    uint2 dilation;
    uint counted;    // whether a mean counts the padding
    float divisor;   // of means; 0: the number of elements in the window
};

// Return the divisor of a window's mean. A window that reaches beyond the padding counts elements only up to the end of
// the padding.
inline float counted(constant Pooling& p, int2 first) {
    const int2 low = p.counted ? first : max(first, int2(0));
    const int2 reach = int2(p.image) + (p.counted ? int2(p.padding) : int2(0));
    const int2 count = min(first + int2(p.size), reach) - low;
    return p.divisor != 0.0f ? p.divisor : float(count.x * count.y);
}

// MAX: the largest element, or NaN if the window has one; otherwise the mean.
template <typename T, bool MAX>
kernel void pool(device const memory_of<T>* x, device memory_of<T>* out, constant Pooling& p,
                 uint3 position [[thread_position_in_grid]], uint3 positions [[threads_per_grid]]) {
    const int2 first = int2(position.xy * p.stride) - int2(p.padding);
    x += position.z * ulong(p.image.x) * p.image.y;
    float result = MAX ? -INFINITY : 0.0f;
    for (uint i = 0; i < p.size.y; ++i) {
        const int row = first.y + int(i * p.dilation.y);
        for (uint j = 0; j < p.size.x; ++j) {
            const int column = first.x + int(j * p.dilation.x);
            const bool inside = row >= 0 && row < int(p.image.y) && column >= 0 && column < int(p.image.x);
            const float value = inside ? storage<T>::load(x[ulong(row) * p.image.x + column]) : MAX ? -INFINITY : 0.0f;
            result = MAX ? (value > result || value != value ? value : result) : result + value;
        }
    }
    if (!MAX) result /= counted(p, first);
    out[(position.z * ulong(positions.y) + position.y) * positions.x + position.x] = storage<T>::store(result);
}

struct Windowed {
    Pooling pooling;
    uint2 positions;
    ulong start;     // offset of the first image, in elements
};

// The same for window sizes known at compile time, on devices with slow loads: all loads of a window are in flight at
// once. Grid: x is the output element, y the image.
template <typename T, bool MAX, uint W, uint H>
kernel void pool_windows(device const memory_of<T>* x, device memory_of<T>* out, constant Windowed& w,
                         uint2 at [[thread_position_in_grid]]) {
    constant Pooling& p = w.pooling;
    const int2 first = int2(uint2(at.x % w.positions.x, at.x / w.positions.x) * p.stride) - int2(p.padding);
    x += w.start + at.y * ulong(p.image.x) * p.image.y;
    float value[H][W];
    _Pragma("clang loop unroll(full)") for (uint i = 0; i < H; ++i)
        _Pragma("clang loop unroll(full)") for (uint j = 0; j < W; ++j) {
            const int row = first.y + int(i * p.dilation.y), column = first.x + int(j * p.dilation.x);
            const bool inside = row >= 0 && row < int(p.image.y) && column >= 0 && column < int(p.image.x);
            value[i][j] = inside ? storage<T>::load(x[ulong(row) * p.image.x + column]) : MAX ? -INFINITY : 0.0f;
        }
    float result = MAX ? -INFINITY : 0.0f;
    _Pragma("clang loop unroll(full)") for (uint i = 0; i < H; ++i)
        _Pragma("clang loop unroll(full)") for (uint j = 0; j < W; ++j) {
            const float next = value[i][j];
            result = MAX ? (next > result || next != next ? next : result) : result + next;
        }
    out[at.y * (ulong(w.positions.x) * w.positions.y) + at.x] = storage<T>::store(MAX ? result : result / counted(p, first));
}

struct Lines {
    uint columns, rows;  // of the output
    uint rows_per_simdgroup;  // output rows per SIMD-group
};

// The same, with several output rows of an image per SIMD-group, one after another, so that lanes check only columns.
// On a CPU one window per thread takes 1.1 to 3 times as long, from 56 × 56 on.
// Threadgroups: x is the block of rows, y the image.
template <typename T, bool MAX, uint stride>  // between columns; 0: not known at compile time, read from p.stride
kernel void pool_lines(device const memory_of<T>* x, device memory_of<T>* out, constant Pooling& p, constant Lines& lines,
                       uint2 group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    const uint step = stride == 0 ? p.stride.x : stride;
    const int width = int(p.image.x), height = int(p.image.y), beyond = p.counted ? int(p.padding.x) : 0;
    x += group.y * ulong(p.image.x) * p.image.y;
    out += group.y * ulong(lines.rows) * lines.columns;
    uint last = (group.x + 1) * lines.rows_per_simdgroup;
    if (last > lines.rows) last = lines.rows;
    for (uint y = group.x * lines.rows_per_simdgroup; y < last; ++y) {
        const int top = int(y * p.stride.y) - int(p.padding.y);
        const int low = p.counted || top > 0 ? top : 0, end = height + (p.counted ? int(p.padding.y) : 0);
        const int high = top + int(p.size.y) < end ? top + int(p.size.y) : end;  // the rows from low up to high count
        for (uint c = 0; c < lines.columns; c += 32) {
            const int left = int((c + lane) * step) - int(p.padding.x);
            float result = MAX ? -INFINITY : 0.0f;
            for (uint i = 0; i < p.size.y; ++i) {
                const int row = top + int(i * p.dilation.y);
                if (row < 0 || row >= height) continue;
                device const memory_of<T>* from = x + long(row) * width + c * step - int(p.padding.x);
                for (uint j = 0; j < p.size.x; ++j) {
                    const int column = left + int(j * p.dilation.x);
                    float value = MAX ? -INFINITY : 0.0f;
                    if (column >= 0 && column < width) value = storage<T>::load((from + j * p.dilation.x)[lane * step]);
                    result = MAX ? (value > result || value != value ? value : result) : result + value;
                }
            }
            if (!MAX) {
                const int first = p.counted || left > 0 ? left : 0, room = width + beyond;
                const int right = left + int(p.size.x) < room ? left + int(p.size.x) : room;
                result /= p.divisor != 0.0f ? p.divisor : float((right - first) * (high - low));
            }
            if (c + lane < lines.columns) (out + y * lines.columns + c)[lane] = storage<T>::store(result);
        }
    }
}
