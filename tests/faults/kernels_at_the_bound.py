"""Kernels that access exactly the elements that their arrays have, and kernels that access one more."""

HEAD = """#include <metal_stdlib>
using namespace metal;
struct Shape { uint2 size; int n; };
void add(thread float* w, int at, float x) { w[at] += x; }
kernel void f(device const float* x, device float* y, constant Shape& s, threadgroup float* t,
              uint2 i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]],
              uint2 size [[threads_per_grid]]) {
"""
# x and y have 64 elements, the grid 8 by 8 threads, t 64 elements; s is {8, 8}, 64.
PROVEN = {
    "a row and a column": "y[i.y * s.size.x + i.x] = x[i.x * s.size.y + i.y];",
    "a guard for both axes": "if (any(i >= s.size)) return; y[i.y * s.size.x + i.x] = x[i.y * 8 + i.x];",
    "all of a vector": "if (all(i < s.size)) y[i.y * s.size.x + i.x] = x[i.x * 8 + i.y];",
    "a loop that ends on equality": "float r = 0; for (int k = 0; k != s.n; ++k) r += x[k]; y[i.x * 8 + i.y] = r;",
    "downwards to equality": "float r = 0; for (int k = s.n; k != 0; --k) r += x[k - 1]; y[i.x * 8 + i.y] = r;",
    "in steps of two": "float r = 0; for (int k = 0; k < s.n; k += 2) r += x[k] - x[k + 1]; y[i.x * 8 + i.y] = r;",
    "short counters in two loops": "float r = 0; for (short a = 0; a < 8; ++a) for (short b = 0; b < 8; ++b) "
    "r += x[a * 8 + b]; y[i.x * 8 + i.y] = r;",
    "around a neighborhood": "float r = 0; for (int a = -1; a <= 1; ++a) for (int b = -1; b <= 1; ++b) "
    "r += x[((int(i.y) + a + 8) % 8) * 8 + (int(i.x) + b + 8) % 8]; y[i.y * 8 + i.x] = r;",
    "a pointer that walks with a step": "device const float* p = x + i.x; float r = 0; "
    "for (int k = 0; k < 8; ++k, p += 8) r += *p; y[i.y * 8 + i.x] = r;",
    "a tile that is filled in turns": "for (uint k = l; k < 64; k += 32) t[k] = x[k]; "
    "threadgroup_barrier(mem_flags::mem_threadgroup); y[i.y * 8 + i.x] = t[63 - (i.y * 8 + i.x)];",
    "the place of the best": "uint best = 0; for (uint k = 1; k < 64; ++k) if (x[k] > x[best]) best = k; "
    "y[i.y * 8 + i.x] = x[best];",
    "a thread's array in a helper": "float w[8] = {}; for (int k = 0; k < 64; ++k) add(w, k % 8, x[k]); "
    "y[i.y * 8 + i.x] = w[i.x];",
    "one of several sizes": "const uint width = ((constant uint*)&s)[i.x & 1]; "
    "y[i.y * width + i.x] = x[i.x * width + i.y];",
    "a place that each iteration adds to": "uint at = 0; for (uint d = 0; d < s.size.x / 4; ++d) at += (i.x ^ d) * 4; "
    "y[i.y * 8 + i.x] = x[at] + x[63];",
    "a common divisor": "uint a = i.x + 1, b = i.y; while (b != 0) { const uint r = a % b; a = b; b = r; } "
    "y[i.y * 8 + i.x] = x[a & 63];",
    "a stretch of each thread": "const uint first = i.x * 9, end = min(first + 9, uint(s.n)); float r = 0; "
    "for (uint k = first; k < end; ++k) r += x[k]; y[i.y * 8 + i.x] = r;",
    "a stretch counted from its start": "const uint first = i.x * 9, count = min(first + 9, uint(s.n)) - first; "
    "float r = 0; for (uint k = 0; k < count; ++k) r += (x + first)[k]; y[i.y * 8 + i.x] = r;",
    "a stretch of longs": "const ulong first = i.x * 9, end = min(first + 9, ulong(s.n)); float r = 0; "
    "for (ulong k = first; k < end; ++k) r += x[k]; y[i.y * 8 + i.x] = r;",
    "a stretch that ends on equality": "const uint first = i.x * 9, end = min(first + 9, uint(s.n)); float r = 0; "
    "uint k = first; if (first < end) do { r += x[k]; ++k; } while (k != end); y[i.y * 8 + i.x] = r;",
    "a short stretch far away": "const uint first = i.x * 100000000, end = min(first + 9, 2000000000u); float r = 0; "
    "for (uint k = first; k < end; ++k) r += x[k & 63]; y[i.y * 8 + i.x] = r;",
    "what is left of a number": "uint left = i.y * 8 + i.x, at = 0; for (int d = 0; d < s.n / 32; ++d) "
    "{ at = at * 8 + left % 8; left /= 8; } y[i.y * 8 + i.x] = x[at + left * 100];",
    "a search by halves": "uint at = 0; for (uint length = s.n; length > 1;) { const uint half_length = length / 2; "
    "const bool after = x[(at + half_length) & 63] < 0.5f; at = after ? at + half_length : at; "
    "length = after ? length - half_length : half_length; } y[i.y * 8 + i.x] = x[at & 63] + x[63];",
    "the columns of a row around a place": "device const float* row = x + i.y * 8 - 1; float r = 0; "
    "for (uint k = 0; k < s.size.x - 5; ++k) { const int column = int(i.x + k) - 1; "
    "if (column >= 0 && column < 8) r += row[i.x + k]; } y[i.y * 8 + i.x] = r;",
    "part of a row for each thread": "device float* row = y + i.y * 8; for (uint c = 0; c < 8; c += s.size.x - 5) "
    "if (c + i.x / 3 < 8) (row + c)[i.x / 3] = x[(i.y * 8 + c + i.x / 3) & 63];",
    "the last of a SIMD-group": "y[i.y * 8 + i.x] = x[simd_max(l) * 2 + 1];",
    "two buffers in turn": "device const float* from = x; device const float* to = y; float r = 0; "
    "for (int k = 0; k < s.n; ++k) { r += from[k] + to[63 - k]; "
    "device const float* other = from; from = to; to = other; } y[i.y * 8 + i.x] = r;",
    "a sum that may wrap very often": "const uint big = uint(s.n) * 33554431; float r = 0; "
    "for (uint k = 0; k < 4; ++k) if ((i.x + k) * big * big < 9) r += x[63 - i.y / 8]; y[i.y * 8 + i.x] = r;",
    "an int that counts for a long": "float r = 0; for (long k = 0; int(k) < s.n; ++k) r += x[k]; "
    "y[i.x * 8 + i.y] = r;",
}  # fmt: skip

# In each of these at least one thread goes out of bounds, in a way that a careless proof would miss.
WRONG = {
    "a stretch whose end wraps": "const uint first = i.x * 536870912 + 9, end = min(first + 536870911, 4294967295u); "
    "float r = 0; for (uint k = first; k < end; k += 134217728) r += x[k >> 25]; y[i.y * 8 + i.x] = r;",
    "the smaller one as signed numbers": "const int first = int(i.x) * 9; const uint end = uint(min(first - 60, 64)); "
    "float r = 0; for (uint k = first; k < end; ++k) { r += x[k]; if (k > 80) break; } y[i.y * 8 + i.x] = r;",
    "a stretch that may be empty": "const uint first = i.x * 10, count = min(first + 9, 64u) - first; float r = 0; "
    "for (uint k = 0; k < min(count, 100u); ++k) r += x[first + k]; y[i.y * 8 + i.x] = r;",
    "a step over the end": "const uint first = i.x * 9, end = min(first + 9, 63u); float r = 0; "
    "uint n = 0; for (uint k = first; k != end; k += 2) { r += x[k]; if (++n > 9) break; } y[i.y * 8 + i.x] = r;",
    "an empty stretch that ends on equality": "const uint first = i.x * 9, end = min(first + 9, 63u); float r = 0; "
    "uint k = first; if (first <= end) do { if (k > 70) break; r += x[k]; ++k; } while (k != end); "
    "y[i.y * 8 + i.x] = r;",
    "a part that wraps before it is made wider":
    "y[i.y * 8 + i.x] = x[ulong(i.y * 8 + 1) + ulong(i.x - (s.size.x - 7))];",
    "a column guarded on one side": "device const float* row = x + i.y * 8 - 1; float r = 0; "
    "for (uint k = 0; k < s.size.x - 5; ++k) { const int column = int(i.x + k) - 1; "
    "if (column < 8) r += row[i.x + k]; } y[i.y * 8 + i.x] = r;",
    "a turn too few": "uint left = i.y * 8 + i.x, at = 0; for (int d = 0; d < s.n / 64; ++d) "
    "{ at = at * 8 + left % 8; left /= 8; } y[i.y * 8 + i.x] = x[at + left * 100];",
    "a column further": "device const float* row = x + i.y * 8; float r = 0; for (uint k = 0; k < s.size.x - 5; ++k) "
    "{ const int column = int(i.x + k) - 1; if (column >= 0 && column < 8) r += row[i.x + k]; } "
    "y[i.y * 8 + i.x] = r;",
    "another row's column": "device const float* row = x + i.x * 8 - 1; float r = 0; "
    "for (uint k = 0; k < s.size.x - 5; ++k) { const int column = int(i.y + k) - 1; "
    "if (column >= 0 && column < 8) r += row[i.x + k]; } y[i.y * 8 + i.x] = r;",
    "a column that is known in the turn before": "device const float* row = x + i.y * 8 - 1; float r = 0; "
    "uint k = 0; while (k < s.size.x - 5) { const int column = int(i.x + k) - 1; ++k; "
    "if (column >= 0 && column < 8) r += row[i.x + k]; } y[i.y * 8 + i.x] = r;",
    "two buffers in turn, and one of them further on": "device const float* from = x; device const float* to = x + 1; "
    "float r = 0; for (int k = 0; k < s.n; ++k) { r += from[k]; "
    "device const float* other = from; from = to; to = other; } y[i.y * 8 + i.x] = r;",
    "two buffers that move on": "device const float* from = x; device const float* to = y; float r = 0; "
    "for (int k = 0; k < s.n; ++k) { r += *from; device const float* other = from + 4; from = to; to = other; } "
    "y[i.y * 8 + i.x] = r;",
    "the sum of a SIMD-group": "y[i.y * 8 + i.x] = x[simd_sum(l & 1) * 4 + 1];",
    "the largest of all lanes, in the branch of some": "const uint m = simd_max(l); float r = 0; "
    "if (l < 4) r = x[m * 16]; y[i.y * 8 + i.x] = r;",
    "before the first of a SIMD-group": "y[i.y * 8 + i.x] = x[63 + simd_prefix_exclusive_sum(l & 1)];",
}  # fmt: skip
