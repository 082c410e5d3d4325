// Shared by the kernels that multiply by weights in blocks along K; see quantized.metal.
#pragma once
#include <metal_stdlib>
using namespace metal;

constant constexpr uint BLOCK = 32;  // elements that share a scale: one for each lane of a SIMD-group

/// The offsets of the operands, in elements, and the lengths of a product: x is M x K, w N x K.
struct Quantized {
    ulong x, words, scales, minima;
    uint M, N, K, unused;
};
