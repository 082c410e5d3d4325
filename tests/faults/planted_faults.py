"""Kernels with one planted fault each, similar kernels that are right, and arguments between margins.

The arrays have 64 elements and are in the middle of larger ones, whose margins must not change.
"""

from typing import Any, NamedTuple

import numpy as np

HEAD = """#include <metal_stdlib>
using namespace metal;
struct Pair { float first; int second[3]; };
struct Row { device float* of(device float* x, int n) { return x + n; } };
float helper(device const float* x, uint n) { return x[n]; }
void put(device float& x) { x = 7; }
template <class T> T pick(device const T* x, int n) { return x[n]; }
kernel void f(
    device float* a, device const float* b, constant float* c, device atomic_uint* n, device float4* v,
    device packed_float3* p, device Pair* s, device ushort* h, constant int& k, threadgroup float* t,
    uint i [[thread_position_in_grid]], uint l [[thread_position_in_threadgroup]]
) {
"""
LINE = HEAD.count("\n") + 1
EXTENT = 64
MARGIN = 256


class Fault(NamedTuple):
    """A body with one wrong access, the value of k that triggers it, and the message."""

    body: str
    k: int
    kind: str
    name: str
    index: int | None = None
    line: int = LINE


R, W, U = "reads", "writes", "updates"
FAULTS = {
    # A device buffer, read
    "read at the end": Fault("a[i] = b[k];", 64, R, "b", 64),
    "read below 0": Fault("a[i] = b[k];", -1, R, "b", -1),
    "read far beyond": Fault("a[i] = b[k];", 1 << 24, R, "b", 1 << 24),
    "read near 2^31": Fault("a[i] = b[k];", 2**31 - 1, R, "b", 2**31 - 1),
    "read at uint(-1)": Fault("a[i] = b[uint(k)];", -1, R, "b"),
    "read near 2^32 elements, as long": Fault("a[i] = b[long(k) * 4];", 2**30, R, "b"),
    "read one past the last": Fault("a[i] = b[i + 1];", 0, R, "b", 64),
    "read one before the first": Fault("a[i] = b[i - 1];", 0, R, "b"),
    "read in a loop that runs on": Fault(
        "float x = 0; for (int j = 0; j <= k; ++j) x += b[j]; a[i] = x;", 64, R, "b", 64),
    "read under a wrong guard": Fault("if (int(i) <= k) a[i] = b[i + 1];", 63, R, "b", 64),
    "read by a stride": Fault("a[i] = b[i * k];", 2, R, "b"),
    "read at an index from memory": Fault("a[i] = b[h[i] + k];", 64, R, "b", 64),
    # A device buffer, written
    "write at the end": Fault("if (i == 3) a[k] = 1;", 64, W, "a", 64),
    "write below 0": Fault("if (i == 3) a[k] = 1;", -1, W, "a", -1),
    "write far below": Fault("if (i == 3) a[k] = 1;", -100000, W, "a", -100000),
    "write far beyond": Fault("if (i == 3) a[k] = 1;", 1 << 22, W, "a", 1 << 22),
    "write near 2^31": Fault("if (i == 3) a[k] = 1;", 2**31 - 5, W, "a", 2**31 - 5),
    "write by every thread": Fault("a[int(i) + k] = 1;", 32, W, "a"),
    "write of what is read there": Fault("a[k] += 1;", 64, R, "a", 64),
    "write to an index from memory": Fault("a[h[i] + k] = 1;", 64, W, "a", 64),
    # Atomics
    "atomic at the end": Fault("atomic_fetch_add_explicit(&n[k], 1u, memory_order_relaxed);", 64, U, "n", 64),
    "atomic below 0": Fault("atomic_fetch_add_explicit(&n[k], 1u, memory_order_relaxed);", -2, U, "n", -2),
    "atomic max": Fault("atomic_fetch_max_explicit(&n[k], 1u, memory_order_relaxed);", 70, U, "n", 70),
    "atomic exchange": Fault("atomic_exchange_explicit(&n[k], 1u, memory_order_relaxed);", 64, U, "n", 64),
    "atomic store": Fault("atomic_store_explicit(&n[k], 1u, memory_order_relaxed);", 64, W, "n", 64),
    "atomic load": Fault("a[i] = atomic_load_explicit(&n[k], memory_order_relaxed);", 64, R, "n", 64),
    "atomic compare": Fault(
        "uint e = 0; atomic_compare_exchange_weak_explicit(&n[k], &e, 1u, memory_order_relaxed, memory_order_relaxed);",
        64, U, "n", 64),
    # A constant buffer
    "constant at the end": Fault("a[i] = c[k];", 64, R, "c", 64),
    "constant below 0": Fault("a[i] = c[k];", -7, R, "c", -7),
    "constant far beyond": Fault("a[i] = c[k];", 1 << 28, R, "c", 1 << 28),
    # A threadgroup array
    "tile read at the end": Fault("threadgroup float w[32]; w[l] = 1; a[i] = w[k];", 32, R, "w", 32),
    "tile read below 0": Fault("threadgroup float w[32]; w[l] = 1; a[i] = w[k];", -1, R, "w", -1),
    "tile read far beyond": Fault("threadgroup float w[32]; w[l] = 1; a[i] = w[k];", 1 << 26, R, "w", 1 << 26),
    "tile written at the end": Fault("threadgroup float w[32]; w[k] = 1; a[i] = w[l];", 32, W, "w", 32),
    "tile written far beyond": Fault("threadgroup float w[32]; w[k] = 1; a[i] = w[l];", 1 << 26, W, "w", 1 << 26),
    "tile written by too many": Fault("threadgroup float w[16]; w[l ^ 16] = 1; a[i] = w[l % 16];", 0, W, "w"),
    "tile of two dimensions": Fault("threadgroup float w[8][8]; w[k][l % 8] = 1; a[i] = w[l % 8][0];", 8, W, "w"),
    "tile, atomic": Fault(
        "threadgroup atomic_uint w[8]; atomic_fetch_add_explicit(&w[k], 1u, memory_order_relaxed); a[i] = 1;",
        8, U, "w", 8),
    # A threadgroup argument
    "threadgroup argument read": Fault("t[l] = 1; a[i] = t[k];", 32, R, "t", 32),
    "threadgroup argument written": Fault("t[k] = 1; a[i] = t[l];", 32, W, "t", 32),
    "threadgroup argument below 0": Fault("t[k] = 1; a[i] = t[l];", -1, W, "t", -1),
    "threadgroup argument far beyond": Fault("t[k] = 1; a[i] = t[l];", 1 << 26, W, "t", 1 << 26),
    # A thread's array
    "thread array read": Fault("float w[8]; for (int j = 0; j < 8; ++j) w[j] = b[j]; a[i] = w[k];", 8, R, "w", 8),
    "thread array read below 0": Fault(
        "float w[8]; for (int j = 0; j < 8; ++j) w[j] = b[j]; a[i] = w[k];", -1, R, "w", -1),
    "thread array written": Fault("float w[8] = {}; w[k] = 1; a[i] = w[i % 8];", 8, W, "w", 8),
    "thread array written below 0": Fault("float w[8] = {}; w[k] = 1; a[i] = w[i % 8];", -3, W, "w", -3),
    "thread array written far beyond": Fault("float w[8] = {}; w[k] = 1; a[i] = w[i % 8];", 1 << 26, W, "w", 1 << 26),
    "thread array in a loop": Fault(
        "float w[8]; for (int j = 0; j <= k; ++j) w[j] = j; a[i] = w[i % 8];", 8, W, "w", 8),
    "thread array of structs": Fault("Pair w[4] = {}; w[k].second[1] = 3; a[i] = w[i % 4].second[1];", 4, W, "w", 4),
    # Ways to get there
    "through a helper": Fault("a[i] = helper(b, k);", 64, R, "b", 64, 5),
    "through a reference": Fault("if (i == 0) put(a[k]);", 64, W, "a", 64, 6),
    "through a template": Fault("a[i] = pick<float>(b, k);", -4, R, "b", -4, 7),
    "through a method": Fault("Row r; if (i == 0) *r.of(a, k) = 1;", 64, W, "a", 64),
    "through a row's pointer": Fault("device const float* row = b + 16 * k; a[i] = row[i % 16];", 4, R, "b"),
    "through a pointer that walks": Fault(
        "device const float* q = b; float x = 0; for (int j = 0; j <= k; ++j) x += *q++; a[i] = x;", 64, R, "b", 64),
    "through a lambda": Fault("auto g = [&](int j) { return b[j]; }; a[i] = g(k);", 64, R, "b", 64),
    "a struct's member": Fault("s[k].first = 1;", 64, W, "s", 64),
    "a struct's array": Fault("s[i].second[k] = 1;", 1 << 20, W, "s"),
    "a vector": Fault("v[k] = 1;", 64, W, "v", 64),
    "a vector's component": Fault("v[k].y = 1;", 64, W, "v", 64),
    "a vector's swizzle": Fault("v[k].zx = 1;", -1, W, "v", -1),
    "a packed vector": Fault("p[k] = 1;", 64, W, "p", 64),
    "a packed vector's component": Fault("a[i] = p[k].z;", 64, R, "p", 64),
    "a cast to wider elements": Fault("((device float4*)a)[k] = 1;", 16, W, "a", 64),
    "a cast to narrower elements": Fault("((device uchar*)a)[k] = 1;", 256, W, "a", 64),
    "16-bit elements": Fault("h[k] = 1;", 64, W, "h", 64),
    "a copied struct": Fault("Pair x = s[k]; a[i] = x.first + x.second[i % 3];", 64, R, "s", 64),
    "two buffers in one pointer": Fault(
        "device float* q = k > 0 ? a : (device float*)v; if (i == 3) q[k] = 1;", 64, W, "a", 64),
    "two buffers, chosen by each thread": Fault(
        "device const float* q = i % 2 ? b : a; float x = q[k]; a[i] = x;", 1 << 20, R, ""),
}  # fmt: skip


def arguments() -> tuple[dict[str, Any], dict[str, tuple[Any, Any]]]:
    """Return the arrays, and for each its memory with the margins, and a copy of that to compare with."""
    kinds = {"a": (np.float32, 1), "b": (np.float32, 1), "c": (np.float32, 1), "n": (np.uint32, 1),
             "v": (np.float32, 4), "p": (np.float32, 3), "s": (np.int32, 4), "h": (np.uint16, 1)}  # fmt: skip
    arrays, margins = {}, {}
    for name, (dtype, width) in kinds.items():
        whole = np.full((MARGIN + EXTENT + MARGIN, width), 85, dtype)
        middle = whole[MARGIN : MARGIN + EXTENT]
        middle[:] = 0
        margins[name] = (whole, whole.copy())
        arrays[name] = middle if width > 1 else middle[:, 0]
    return arrays, margins


RIGHT = {
    "at its own place": "a[i] = b[i];",
    "under a guard": "if (i < uint(k)) a[i] = b[i];",
    "neighbors under a guard": "if (i > 0 && i + 1 < uint(k)) a[i] = b[i - 1] + b[i + 1];",
    "an early return": "if (int(i) >= k - 1) return; a[i] = b[i + 1];",
    "clamped from above": "a[i] = b[min(i + 5, uint(k) - 1)];",
    "clamped from both sides": "a[i] = b[clamp(int(i) - 3, 0, k - 1)];",
    "folded by a mask": "a[i] = b[(i * 7) & 63];",
    "folded by a remainder": "a[i] = b[(i * 7 + 3) % uint(k)];",
    "mirrored": "a[i] = b[k - 1 - int(i)];",
    "a constant index": "a[i] = b[0] + b[63] + c[17];",
    "a loop over all": "float r = 0; for (int j = 0; j < k; ++j) r += b[j]; a[i] = r;",
    "a loop downwards": "float r = 0; for (int j = k - 1; j >= 0; --j) r += b[j]; a[i] = r;",
    "a grid-stride loop": "for (uint j = i; j < uint(k); j += 64) a[j] = b[j];",
    "two loops": "float r = 0; for (int y = 0; y < 8; ++y) for (int x = 0; x < 8; ++x) r += b[8 * y + x]; a[i] = r;",
    "a matrix's row and column": "uint y = i / 8, x = i % 8; float r = 0; "
    "for (uint j = 0; j < 8; ++j) r += b[y * 8 + j] * c[j * 8 + x]; a[i] = r;",
    "a tile": "threadgroup float w[32]; w[l] = b[i]; threadgroup_barrier(mem_flags::mem_threadgroup); "
    "a[i] = w[31 - l];",
    "a threadgroup argument": "t[l] = b[i]; threadgroup_barrier(mem_flags::mem_threadgroup); a[i] = t[l ^ 1];",
    "a tree": "t[l] = b[i]; for (uint s = 16; s > 0; s /= 2) { threadgroup_barrier(mem_flags::mem_threadgroup); "
    "if (l < s) t[l] += t[l + s]; } if (l == 0) a[i / 32] = t[0];",
    "a thread's array": "float w[8]; for (int j = 0; j < 8; ++j) w[j] = b[j]; a[i] = w[i % 8];",
    "a histogram": "atomic_fetch_add_explicit(&n[(i * 37) % 64], 1u, memory_order_relaxed);",
    "a gather": "a[i] = b[h[i] % 64];",
    "a search": "uint low = 0, high = k; while (low < high) { uint m = (low + high) / 2; "
    "if (b[m] < float(i)) low = m + 1; else high = m; } a[i] = low;",
    "a swizzle": "v[i].zyx = v[63 - i].xyz;",
    "a packed vector": "p[i] = packed_float3(1, 2, 3); a[i] = p[i].y;",
    "a struct": "s[i].second[i % 3] = 4; a[i] = s[i].first;",
    "a row's pointer": "device const float* row = b + 8 * (i / 8); a[i] = row[i % 8];",
    "a pointer that walks": "device const float* q = b; float x = 0; for (int j = 0; j < k; ++j) x += *q++; a[i] = x;",
    "one of two buffers": "device const float* q = i % 2 ? b : a; float x = q[i]; a[i] = x + 1;",
    "shifted to and fro": "a[(i << 1) >> 1] = b[i ^ 1];",
    "signed and small": "short j = short(i); a[j] = b[63 - j];",
    "the vote of a SIMD-group": "if (simd_any(b[i] > 0)) a[i] = simd_sum(b[i]); else a[i] = 3;",
}
