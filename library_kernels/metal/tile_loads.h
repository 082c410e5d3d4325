// What the tiled products share: which tile a threadgroup makes, and where a thread finds what it brings to it.
#pragma once
#include <metalnb/product.h>

// How a factor lies: WIDE along K or across it where neighbours lie side by side, and so many that they are read four or
// eight at once and none is left over; ANY strides otherwise. A_WAY and B_WAY are told to the compiler.
enum Way { ANY, WIDE_ALONG, WIDE_ACROSS };

constant uint BAND = 8;  // rows of tiles that are gone through column by column, so that both factors stay in cache

/// The first row and column of a threadgroup's tile.
inline uint2 corner(uint group, uint M, uint N, uint rows, uint columns) {
    const uint down = (M + rows - 1) / rows, across = (N + columns - 1) / columns;
    const uint first = group / (BAND * across) * BAND, place = group % (BAND * across);
    const uint height = down - first < BAND ? down - first : BAND;
    return uint2((first + place % height) * rows, place / height * columns);
}

/// What a thread brings of a factor, from a tile's corner on: `from` moves on along K.
template <typename M> struct Lines {
    device const M* from;
    long line, k;  // from one line, a row of A or a column of B, and from one element along K, to the next
    uint count;    // lines that are there
};
