// Shared by the tiled products: a threadgroup's tile, and the addresses of the elements that a thread loads.
#pragma once
#include <metalnb/product.h>

// A factor's layout: WINDOWS of images, whose elements are located when they are read; WIDE, contiguous along K or
// across it, and a multiple of the four or eight elements that are read at once; ANY strides otherwise. A_WAY and B_WAY
// are macros.
enum Way { ANY, WIDE_ALONG, WIDE_ACROSS, WINDOWS };

constant uint BAND = 8;  // rows of tiles that are traversed column by column, so that both factors stay in cache

/// The first row and column of a threadgroup's tile.
inline uint2 corner(uint group, uint M, uint N, uint rows, uint columns) {
    const uint down = (M + rows - 1) / rows, across = (N + columns - 1) / columns;
    const uint first = group / (BAND * across) * BAND, place = group % (BAND * across);
    const uint height = down - first < BAND ? down - first : BAND;
    return uint2((first + place % height) * rows, place / height * columns);
}

/// A thread's elements of a factor, from a tile's corner: `from` advances along K.
template <typename M> struct Lines {
    device const M* from;
    long line, k;  // from one line, a row of A or a column of B, and from one element along K, to the next
    uint count;    // existing lines
};

/// The geometry of windows over images: columns first. A convolution's terms are its window's elements, each with all
/// channels.
struct Window {
    uint2 image, places, size, stride, dilation;
    int2 padding;   // before the first column and row
    uint channels;  // of a group, in full strips
    uint pitch;     // from one position to the next, if an image's channels are neighbors
};

/// A column of the factor from windows: the position of a window, from its first element.
template <typename M> struct Seen {
    device const M* image;
    int x, y;
    uint strip;  // along K
    bool there;
};

/// Loads strips of H such columns, DEPTH deep: a thread has N elements of one column.
template <typename M, uint H, uint THREADS, uint DEPTH> struct WindowStrips {
    static constexpr constant uint N = H * DEPTH / THREADS, STEP = THREADS / H;

    static Seen<M> lines(device const M* image, uint first, uint count, uint strip, constant Window& w, uint t) {
        const uint place = first + t % H;
        const int2 at = int2(place % w.places.x * w.stride.x, place / w.places.x * w.stride.y) - w.padding;
        return {image + t / H * ulong(w.image.x) * w.image.y, at.x, at.y, strip, t % H < count};
    }
    /// The next N elements.
    static void read(thread M (&held)[N], thread Seen<M>& seen, constant Window& w) {
        const uint strips = w.channels / DEPTH, tap = seen.strip / strips, channel = seen.strip % strips * DEPTH;
        const int x = seen.x + int(tap % w.size.x * w.dilation.x), y = seen.y + int(tap / w.size.x * w.dilation.y);
        const bool inside = seen.there && x >= 0 && x < int(w.image.x) && y >= 0 && y < int(w.image.y);
        const ulong pitch = ulong(w.image.x) * w.image.y;
        device const M* from = seen.image + channel * pitch + (inside ? y * long(w.image.x) + x : 0);
        UNROLL for (uint e = 0; e < N; ++e) held[e] = inside ? from[e * STEP * pitch] : M(0);
        ++seen.strip;
    }
};
