// Shared by the products' kernels: the parameters, a SIMD-group's part of the product, and how sums are stored.
#pragma once
#include <metal_stdlib>
#include <metalnb/storage.h>
#include <metalnb/unroll.h>
using namespace metal;

constant uint panel = 32;  // columns side by side: one for each lane of a SIMD-group

/// The shapes, A: M x K, B: K x N, C: M x N, and the strides, in elements.
struct Product {
    uint M, N, K;
    uint splits, depth;   // K is split into `splits` parts of `depth`, whose matrices add_parts adds up
    uint blocks;          // M is split into `blocks`, so that a block's rows of A stay in cache as all of B is read
    long a_row, a_k;      // from one row of A, and from one column, to the next
    long b_k, b_panel;    // from one row of B, and from one panel, to the next; C's rows are contiguous
};

/// A SIMD-group's part of the product.
struct Part {
    uint batch;  // the index of the product in the batch
    uint block;  // the index of the block of rows
    uint c;      // the index of the matrix in C
    uint first;  // the first element of its part of K
    uint K;
};

inline Part part_of(uint z, constant Product& p) {
    Part part;
    part.c = z / p.blocks;
    part.block = z % p.blocks;
    part.batch = part.c / p.splits;
    part.first = part.c % p.splits * p.depth;
    part.K = min(p.depth, p.K - part.first);
    return part;
}

// Sums have the accumulator's type: float for half and bfloat; integers wrap as they do in their own type.
inline float  multiply_add(float x, float y, float sum) { return fma(x, y, sum); }
inline ushort multiply_add(ushort x, ushort y, ushort sum) { return ushort(uint(x) * y + sum); }
inline uint   multiply_add(uint x, uint y, uint sum) { return x * y + sum; }
inline ulong  multiply_add(ulong x, ulong y, ulong sum) { return x * y + sum; }

/// V adjacent elements, read at once by one lane.
template <typename M, ushort V>
struct Neighbors {
    using type = vec<M, V>;
    static type read(device const M* from, uint lane) { return reinterpret_cast<device const type*>(from)[lane]; }
    static M at(const type held, ushort i) { return held[i]; }
};
template <typename M>
struct Neighbors<M, 1> {
    using type = M;
    static M read(device const M* from, uint lane) { return from[lane]; }
    static M at(M held, ushort) { return held; }
};
