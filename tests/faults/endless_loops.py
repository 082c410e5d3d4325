"""Bodies of a kernel whose loop never ends, or ends too late."""

HEAD = """#include <metal_stdlib>
using namespace metal;
kernel void forever(device float* x, device atomic_uint* n, constant int& zero, constant uint& many,
                    uint i [[thread_position_in_grid]], uint l [[thread_position_in_threadgroup]]) {
"""
LINE = HEAD.count("\n") + 1
LOOPS = {
    "while true": "while (true) x[i] += 1;",
    "a condition that stays true": "float a = 1; while (a > 0) { a *= 1.001f; if (a > 9) a = 1; } x[i] = a;",
    "nothing but arithmetic": "uint s = i; do s = s * 1664525u + 1013904223u; while (s != 77 + many * 2); x[i] = s;",
    "a spin on an atomic": "while (atomic_load_explicit(n, memory_order_relaxed) == 0) {} x[i] = 1;",
    "a barrier": "threadgroup float t[64]; t[l] = 0; while (true) { threadgroup_barrier(mem_flags::mem_threadgroup); "
    "t[l] += t[63 - l] + 1; threadgroup_barrier(mem_flags::mem_threadgroup); if (t[0] < 0) break; } x[i] = t[l];",
    "a short loop in one that ends too late": "for (uint j = 0; j < many; ++j) for (uint k = 0; k < many >> 20; ++k) "
    "x[k + (j & 7)] += 1;",
    "two loops that end too late": "float s = 0; for (uint j = 0; j < many; ++j) for (uint k = 0; k < many; ++k) "
    "s += sin(float(j * k)); x[i] = s;",
    "unsigned and at least 0": "float s = 0; for (uint j = 10; j >= 0; --j) s += x[i] + j; x[i] = s;",
    "one thread of many": "while (i == 7) x[i] += 1; x[i] = 2;",
    "a step of 0": "float s = 0; for (int j = 0; j < 10; j += zero) s += x[j]; x[i] = s;",
    "a loop within one that ends": "for (int j = 0; j < 4; ++j) { int k = j; while (k != 5 - zero * j) "
    "k = (k + 7) % 4; x[i] += k; }",
    "a loop in a function": "auto g = [&](float a) { while (a < 100) a *= 0.5f; return a; }; x[i] = g(x[i] + 1);",
    "a step that wraps": "uint s = 0; for (uint j = 0; j != 3; j += 2) s += j; x[i] = s;",
    "a step past its end": "float s = 0; for (uint j = many - 16777214u; j != 7; j += 2) s += x[j & 63]; x[i] = s;",
    "up to the largest": "float s = 0; for (uint j = many + 4278190000u; j <= many + 4278190079u; ++j) "
    "s += x[j & 63]; x[i] = s;",
    "beyond the largest": "float s = 0; for (uint j = many + 4278190000u; j < many + 4278190079u; j += 4) "
    "s += x[j & 63]; x[i] = s;",
    "halves of -1 in 64 bits": "int j = -1 - zero; while (j != 0) j = int(ulong(long(j)) >> (1 + zero)); x[i] = j;",
    "a counter that wraps in 16 bits": "int j = 0; while (j < int(many)) { short k = short(j + 1); x[k & 1] = k; "
    "j = k; } x[i] = j;",
}  # fmt: skip
