// A pass of a radix sort: the parameters of its dispatches, and its digits. sort.metal and sort_serial.metal implement
// it in two ways, and one launcher serves both. Source: as sort.metal.
#pragma once
#include <metalnb/order.h>

constant bool INDEXED [[function_constant(2)]];  // an index travels with each key: argsort

constant constexpr uint DIGITS = 256;

// Rows of n keys, each split into tiles.
struct Shape {
    uint n;
    uint tile;
    uint tiles;
};

struct Pass {
    Shape shape;
    uint shift;  // the digit: bits shift … shift + 7
    uint first;  // the first pass: a key's index is its position
};

template <typename U>
inline uint digit_of(U bits, uint shift) {
    return uint(ordered(bits) >> shift) & (DIGITS - 1);
}
