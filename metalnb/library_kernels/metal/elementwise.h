// Elementwise ops: thread (x, y) computes one element of the result, x along the innermost axis, y along all others.
// Adjacent threads access adjacent elements, so that a SIMD-group's accesses are contiguous.
// Source: Metal's "one thread per element"; strides and broadcasting as in NumPy's nditer.
#pragma once
#include <metal_stdlib>
#include <metalnb/integers.h>
#include <metalnb/special.h>
#include <metalnb/storage.h>
using namespace metal;

constant constexpr uint RANK = 8;

// The layout of each operand, in elements; axis 0 is the innermost. A broadcast axis has stride 0.
struct Layout {
    long offset;
    long strides[RANK];
};

struct Walk {
    Layout operands[6];
    uint sizes[RANK];
    uint rank;
};

// The offset of the first element of row y.
inline long row_of(constant Walk& walk, uint which, uint y) {
    constant Layout& operand = walk.operands[which];
    long start = operand.offset;
    if (walk.rank == 1) return start;
    for (uint d = 1; d + 1 < walk.rank; ++d) {
        start += long(y % walk.sizes[d]) * operand.strides[d];
        y /= walk.sizes[d];
    }
    start += long(y) * operand.strides[walk.rank - 1];
    return start;
}

// How an operand is traversed: the offset of row y, and of x within it. These are types, so that the compiler knows the
// stride and loads vectors. Whole and One are for operands without rows or offset, which need no lookup.
struct Unit {
    static long row(constant Walk& walk, uint which, uint y) { return row_of(walk, which, y); }
    static uint at(constant Layout&, uint x) { return x; }
    template <typename M> static void put(device M* start, M value) { *start = value; }
};
struct Same : Unit {
    static uint at(constant Layout&, uint) { return 0; }
};
struct Strided : Unit {
    static long at(constant Layout& operand, uint x) { return long(x) * operand.strides[0]; }
};
// Several elements per thread, for devices with slow loads: a SIMD-group's elements are consecutive runs of 32.
constant constexpr uint RUN = 32;
constant constexpr uint SEVERAL = 4;
inline uint first_of_several(uint thread_) { return thread_ / RUN * (RUN * SEVERAL) + thread_ % RUN; }

struct Whole : Unit {
    static long row(constant Walk&, uint, uint) { return 0; }
};
struct One : Same {
    static long row(constant Walk&, uint, uint) { return 0; }
};

template <typename T, typename Step>
inline auto fetch(device const memory_of<T>* row, constant Walk& walk, uint which, uint x) {
    return storage<T>::load(row[Step::at(walk.operands[which], x)]);
}

template <typename T, typename Step, typename V>
inline void keep(device memory_of<T>* row, constant Walk& walk, uint which, uint x, V value) {
    Step::put(row + Step::at(walk.operands[which], x), storage<T>::store(value));
}
